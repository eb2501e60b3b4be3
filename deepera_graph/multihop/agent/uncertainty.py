"""How sure a batch of passages is: answers are sampled from it, and their meanings are counted.

For each batch of passages that is scored, m answers to the question are sampled. They are grouped
into sets of one meaning; the scores of the batch are divided by the number s of sets. One meaning
leaves the scores as they are; m different ones divide them by m. The penalty is the whole batch's:
a right passage in an ambiguous batch falls below a mediocre one in an unambiguous batch.

Source:
    SUNAR, answer semantic uncertainty, equations 1 to 5: two answers are in one set if each entails
    the other; an answer is compared with the first member of each set. Grouping by entailment is of
    Kuhn, Gal and Farquhar (2023), Semantic uncertainty, section 3.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from langchain_core.runnables import Runnable, RunnableConfig
from typing_extensions import TypedDict

from deepera_graph.agents.twin import TwinCall, Work, ado, ask, do
from deepera_graph.budget import ado_many, do_many
from deepera_graph.errors import RoleError, SettingsError
from deepera_graph.multihop.agent.roles import Entailment, EntailTask, Sample, SampleTask
from deepera_graph.multihop.path import EvidenceText, Form, normal_form
from deepera_graph.multihop.settings import Compare, Label, Uncertainty
from deepera_graph.usage import Usage

AnswerT = TypeVar("AnswerT")


def group_answers(
    answers: Sequence[str],
    label: Callable[[str, str], Work[Label]] | None = None,
    *,
    lenient: bool = False,
) -> Work[list[int]]:
    """Return the work that gives the set of each answer, numbered from 0 as they first come.

    Answers of one `normal_form` are in one set, and none of them is compared twice. Any other one
    is compared with the first member of each set, in their order, and joins the first that it is
    equivalent to; a set that was given once is never changed.

    Args:
        answers: Short answers, shape (m,); none is empty.
        label: What the first of two answers says about the second; asked at most d (d - 1) times
            for d normal forms. None compares normal forms alone.
        lenient: Whether answers are equivalent unless one contradicts the other, as in the authors'
            code. By default each must entail the other, as in the paper.
    """
    alike: Sequence[Label] = ("entailment", "neutral") if lenient else ("entailment",)
    firsts: list[str] = []
    known: dict[Form, int] = {}
    for answer in answers:
        form = normal_form(answer)
        if form not in known:
            known[form] = len(firsts)
            if label is not None:
                known[form] = yield from _find_set(answer, firsts, label, alike)
            firsts += [answer] if known[form] == len(firsts) else []
    return [known[normal_form(one)] for one in answers]


def _find_set(
    answer: str,
    firsts: Sequence[str],
    label: Callable[[str, str], Work[Label]],
    alike: Sequence[Label],
) -> Work[int]:
    for number, first in enumerate(firsts):
        if (yield from label(first, answer)) not in alike:
            continue
        if (yield from label(answer, first)) in alike:
            return number
    return len(firsts)


class BatchUncertainty(TypedDict):
    """What was sampled from one batch.

    `n_sets` is None if no answer was usable; `sets` is the set of each of `answers`. `problem` says
    what failed, empty if nothing did.
    """

    n_samples: int
    n_sets: int | None
    answers: list[str]
    sets: list[int]
    n_compared: int
    problem: str


@dataclass(frozen=True, slots=True)
class Measured:
    """The uncertainty of a batch, and what measuring it cost, by role."""

    record: BatchUncertainty
    usage: Mapping[str, Usage]


class AnswerUncertainty:
    """Measures the uncertainty of batches with the roles of a backend."""

    def __init__(
        self,
        settings: Uncertainty,
        sampler: Runnable[SampleTask, Sample],
        entailer: Runnable[EntailTask, Entailment] | None = None,
    ) -> None:
        self.settings, self._sampler, self._entailer = settings, sampler, entailer
        if settings.equivalence != "exact" and settings.compare is None and entailer is None:
            raise SettingsError(
                f"equivalence {settings.equivalence!r} needs an entailer or compare=; 'exact' "
                "needs neither"
            )

    def work(
        self, question: str, batch: Sequence[EvidenceText], config: RunnableConfig | None = None
    ) -> Work[Measured]:
        """Return the work of sampling answers from a batch and counting their meanings."""
        count, how = _Count(self.settings), self.settings
        tasks, n = self._tasks(question, batch), how.samples

        def draw(task: SampleTask) -> Work[Sample | RoleError]:
            return _try(self._sampler, task, config)

        said = yield TwinCall(
            lambda: do_many(lambda task: do(draw(task)), tasks, n),
            lambda: ado_many(lambda task: ado(draw(task)), tasks, n),
        )
        count.take_samples(said)

        def label(premise: str, hypothesis: str) -> Work[Label]:
            if how.compare is not None:
                return count.take_label(how.compare(question, premise, hypothesis))
            task = EntailTask(question=question, premise=premise, hypothesis=hypothesis)
            assert self._entailer is not None
            return count.take_label((yield from _try(self._entailer, task, config)))

        count.sets = yield from group_answers(
            count.answers,
            None if how.equivalence == "exact" else label,
            lenient=how.equivalence == "lenient",
        )
        return count.result()

    def _tasks(self, question: str, batch: Sequence[EvidenceText]) -> list[SampleTask]:
        return [
            {"question": question, "evidence": list(batch), "sample": number}
            for number in range(1, self.settings.samples + 1)
        ]


def _try(
    role: Runnable[Any, AnswerT], task: object, config: RunnableConfig | None
) -> Work[AnswerT | RoleError]:
    try:
        answer: AnswerT = yield ask(role, task, config)
    except RoleError as error:
        return error
    return answer


class _Count:
    """Takes the samples and labels of one batch in."""

    def __init__(self, settings: Uncertainty) -> None:
        self._settings = settings
        self.answers: list[str] = []
        self.sets: list[int] = []
        self._errors: list[str] = []
        self._n_compared, self._n_uncompared = 0, 0
        self._usage = {"sample": Usage(), "entail": Usage()}

    def take_samples(self, said: Sequence[Sample | RoleError]) -> None:
        for one in said:
            self._usage["sample"] += one.usage or Usage()
            if isinstance(one, RoleError):
                self._errors.append(str(one))
            elif normal_form(one.text):
                self.answers.append(one.text.strip())
            else:
                self._errors.append("an empty answer")

    def take_label(self, said: "Label | Entailment | RoleError") -> Label:
        """Return a label; where there is none, nothing follows from one answer about the other."""
        self._n_compared += 1
        if isinstance(said, RoleError):
            self._usage["entail"] += said.usage
            self._n_uncompared += 1
            return "neutral"
        if isinstance(said, Entailment):
            self._usage["entail"] += said.usage or Usage()
            return said.label
        return said

    def result(self) -> Measured:
        record: BatchUncertainty = {
            "n_samples": self._settings.samples,
            "n_sets": max(self.sets) + 1 if self.sets else None,
            "answers": self.answers,
            "sets": self.sets,
            "n_compared": self._n_compared,
            "problem": self._problem(),
        }
        return Measured(record, self._usage)

    def _problem(self) -> str:
        parts = []
        if self._errors:
            n, m = len(self._errors), self._settings.samples
            parts.append(f"{n} of {m} samples unusable, the first: {self._errors[0]}")
        if not self.answers:
            parts.append("no penalty, as no sample was usable")
        if self._n_uncompared:
            parts.append(f"{self._n_uncompared} of {self._n_compared} comparisons failed")
        return "; ".join(parts)


_LABELS: tuple[Label, ...] = ("contradiction", "entailment", "neutral")


def nli_labels(model: Any, labels: Sequence[Label] | None = None) -> Compare:
    """Return a `compare` for `Uncertainty` from a cross-encoder for natural language inference.

    The question stands in front of both answers, so that a bare name is a statement.

    Args:
        model: Anything with ``predict(pairs)`` that gives a row of scores for each pair, such as a
            ``CrossEncoder`` of sentence-transformers; the highest score is the label.
        labels: What the columns are, in the model's order; by default what ``id2label`` of the
            model's configuration says, and without one the order of the ``cross-encoder/nli-*``
            models.

    Raises:
        SettingsError: The labels are not the three, or the model gives another number of columns.
    """
    if not callable(getattr(model, "predict", None)):
        raise SettingsError(f"an NLI model needs predict(pairs), got {type(model).__name__}")
    columns = _find_columns(model) if labels is None else labels
    if sorted(columns) != sorted(_LABELS):
        raise SettingsError(
            f"labels must be {', '.join(_LABELS)}, in any order, got {list(columns)!r}"
        )

    def compare(question: str, premise: str, hypothesis: str) -> Label:
        [row] = model.predict([(f"{question} {premise}", f"{question} {hypothesis}")])
        scores = [float(one) for one in row]
        if len(scores) != len(columns):
            raise SettingsError(f"an NLI model gives {len(columns)} columns, got {len(scores)}")
        return columns[scores.index(max(scores))]

    return compare


def _find_columns(model: Any) -> Sequence[Label]:
    """Return what the columns of a model are called, in the words of `_LABELS`."""
    config = getattr(model, "config", None) or getattr(
        getattr(model, "model", None), "config", None
    )
    named = getattr(config, "id2label", None)
    if not named:
        return _LABELS
    written = [str(named[place]).strip().lower() for place in sorted(named, key=int)]
    found = [next((name for name in _LABELS if one.startswith(name[:6])), None) for one in written]
    known = [name for name in found if name is not None]
    if len(known) != len(found):
        raise SettingsError(
            f"the labels of the model are {[*named.values()]!r}: say by labels= which of its "
            f"columns is {', '.join(_LABELS)}"
        )
    return known
