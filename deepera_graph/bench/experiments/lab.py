"""Where experiments get their rankings: each is made once, kept, and shared by all of them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from deepera_graph.bench.dataset import Dataset
from deepera_graph.bench.errors import MetricError, UnavailableError
from deepera_graph.bench.experiments.scored import Labels, Scored
from deepera_graph.bench.experiments.setup import Setup
from deepera_graph.bench.instance import Instance
from deepera_graph.bench.kept import rankings
from deepera_graph.bench.rank import Ranked
from deepera_graph.bench.rankers.again import again
from deepera_graph.bench.rankers.ranker import NotingRanker, Ranker, RepeatedRanker
from deepera_graph.bench.run import Step, Watch
from deepera_graph.bench.survey import Survey, survey
from deepera_graph.errors import BackendError, SettingsError


@dataclass(frozen=True, slots=True)
class Material:
    """A data set with what is known of it; `labels` holds one a question."""

    dataset: Dataset
    survey: Survey
    labels: tuple[Labels, ...]

    @property
    def name(self) -> str:
        """Name of the data set."""
        return self.survey.name


class NoFilterError(SettingsError):
    """No ranker says what to keep."""


class Pass(NamedTuple):
    """A ranker that went over a data set once."""

    ranker: Ranker
    material: Material
    questions: tuple[Scored, ...]


class Lab:
    """Rankers, data sets and a setup.

    Args:
        rankers: Each with its own name.
        datasets: Each with its own name.
        setup: How to measure; the defaults when None.
        watch: Told whenever a question is ranked.

    Raises:
        MetricError: A name is used twice.
    """

    def __init__(
        self,
        rankers: Sequence[Ranker],
        datasets: Sequence[Dataset],
        setup: Setup | None = None,
        *,
        watch: Watch = lambda step: None,
    ) -> None:
        for names in ([one.name for one in rankers], [one.name for one in datasets]):
            if len(set(names)) < len(names):
                raise MetricError(f"names must differ, got {names}")
        self.rankers, self.datasets = tuple(rankers), tuple(datasets)
        self.setup = setup or Setup()
        self.missing: dict[tuple[str, str], str] = {}
        self._watch = watch
        self._materials: dict[str, Material] = {}
        self._passes: dict[tuple[str, str, str], Pass] = {}

    def materials(self) -> Iterator[Material]:
        """Yield the data sets; each is read once.

        Raises:
            DatasetError: One cannot be read.
        """
        for dataset in self.datasets:
            if dataset.name not in self._materials:
                self._materials[dataset.name] = read_material(dataset)
            yield self._materials[dataset.name]

    def passes(self) -> Iterator[Pass]:
        """Yield one pass a data set and ranker, those that are available.

        Raises:
            UnavailableError, BackendError: None is available, or one is not and the setup is
                strict.
        """
        for repeats in self.repeated():
            yield repeats[0]

    def repeated(self) -> Iterator[list[Pass]]:
        """Yield all passes of each ranker over each data set: several if it differs by the run."""
        yield from self._over(self.materials(), self.rankers, self._repeats)

    def asked_again(self) -> Iterator[list[Pass]]:
        """Yield passes over the first questions of each data set, every one judged anew."""
        sampled = (read_material(one.first(self.setup.n_sampled)) for one in self.datasets)
        yield from self._over(sampled, self.rankers, self._again)

    def filtering(self) -> Iterator[Pass]:
        """Yield the passes of the rankers whose scores in [0, 1] say what to keep.

        Raises:
            NoFilterError: There is none.
            SettingsError: One of them drops passages itself.
        """
        rankers = [one for one in self.rankers if isinstance(one, NotingRanker)]
        if not rankers:
            raise NoFilterError(
                "this experiment needs a ranker that filters, e.g. deepera:local; got "
                f"{', '.join(one.name for one in self.rankers) or 'none'}"
            )
        for repeats in self._over(self.materials(), rankers, self._repeats):
            _check_whole(repeats[0])
            yield repeats[0]

    def once(self, ranker: Ranker, material: Material) -> Pass:
        """Return a pass, from what is kept if it is there.

        Raises:
            UnavailableError, BackendError: The ranker cannot run here.
        """
        told = ranker.fingerprint
        what = str(id(ranker)) if told is None else repr(told)  # the pass keeps the ranker alive
        key = (material.survey.fingerprint, ranker.name, what)
        if key not in self._passes:
            self._passes[key] = self._run(ranker, material)
        return self._passes[key]

    def _over(
        self,
        materials: Iterable[Material],
        rankers: Sequence[Ranker],
        repeats: Callable[[Ranker], Sequence[Ranker]],
    ) -> Iterator[list[Pass]]:
        n_done, problem = 0, None
        for material in materials:
            for ranker in rankers:
                try:
                    passes = [self.once(one, material) for one in repeats(ranker)]
                except (UnavailableError, BackendError) as error:
                    if self.setup.strict:
                        raise
                    self.missing[material.name, ranker.name] = str(error)
                    problem = error
                else:
                    n_done += 1
                    yield passes
        if problem is not None and not n_done:
            raise problem

    def _run(self, ranker: Ranker, material: Material) -> Pass:
        found = material.survey
        ranked: list[Ranked] = []
        for one in rankings(ranker, material.dataset, found, self.setup.keep):
            ranked.append(one)
            self._watch(Step(found.name, ranker.name, len(ranked), found.n_questions))
        if all(one.failed >= found.n_candidates - 1e-9 for one in ranked):
            raise UnavailableError(f"no passage could be judged: {ranked[-1].problem}")
        questions = map(Scored.of, found.labels, material.labels, ranked)
        return Pass(ranker, material, tuple(questions))

    def _repeats(self, ranker: Ranker) -> list[Ranker]:
        if isinstance(ranker, RepeatedRanker):
            return [ranker.repeat(number) for number in range(self.setup.n_repeats)]
        return [ranker]

    def _again(self, ranker: Ranker) -> list[Ranker]:
        if isinstance(ranker, RepeatedRanker):
            return self._repeats(ranker)
        return [again(ranker, number) for number in range(self.setup.n_repeats)]


def read_material(dataset: Dataset) -> Material:
    """Read a data set once, for its survey and its labels.

    Raises:
        DatasetError: It cannot be read, or is empty.
    """
    labels: list[Labels] = []

    def tapped() -> Iterator[Instance]:
        for instance in dataset:
            labels.append(Labels.of(instance))
            yield instance

    found = survey(Dataset(dataset.name, tapped, dataset.first_stage))
    return Material(dataset, found, tuple(labels))


def _check_whole(one: Pass) -> None:
    if any(len(question.judged.ranked) < len(question.first) for question in one.questions):
        raise SettingsError(
            f"{one.ranker.name!r} drops passages itself; this experiment filters on its own and "
            "needs the ranker that keeps them all, e.g. deepera:local instead of "
            "deepera-kept:local"
        )
