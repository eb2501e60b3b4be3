"""Training pools from files and folders.

A folder may hold the sets that this package's weights are made from, each under its known name; any
other file or folder is a data set of the user's, as `deepera-lab bench` reads it, or topics written
for training: sibling questions, the evidence of several studies, look-alikes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Self

from deepera_graph.calibration.instance import Context, Instance, read_rows
from deepera_graph.calibration.statistics import find_groups
from deepera_graph.errors import InputError, SettingsError
from deepera_graph.judges.trained.features import join_title
from deepera_graph.lab.data.beir import BeirDocument, read_beir
from deepera_graph.lab.data.readers import open_dataset, read_instances
from deepera_graph.lab.data.sectioned import read_articles
from deepera_graph.lab.training.lessons.libraries import is_libraries, read_libraries
from deepera_graph.lab.training.lessons.snippets import SNIPPETS, digest, read_snippets
from deepera_graph.lab.training.lessons.topics import is_topics, read_topics

GOLDEN = "golden"
OTHER_PAPER = "other paper"
N_NEGATIVES = 40
LIBRARY_WEIGHT = 2.0  # in training, of a question to a small library: what people have
N_CANDIDATES = 100
Read = Callable[[Path], Iterable[Instance]]


def hash_question(question: str) -> str:
    """Return 16 hexadecimal digits that name a question, whatever its case and white space."""
    return digest(" ".join(question.casefold().split()))


def list_keys(instance: Instance, evidence: Mapping[str, str]) -> list[str]:
    """Return keys of a question, of its golden passages, and of its candidates as a whole."""
    texts = [one.text for one in instance.contexts if one.is_golden or one.is_distractor]
    texts += [evidence.get(id, id) for id in instance.golden_outside]
    candidates = "\n".join(sorted(one.text for one in instance.contexts))
    return [hash_question(instance.question), *map(digest, texts), digest(candidates)]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledPassage:
    """One candidate, its label 0 or 1, and what sort of passage it is, which no judge sees."""

    text: str  # not blank
    label: int
    title: str = ""
    kind: str = ""  # label rules, variants and ablations go by it

    @property
    def read_text(self) -> str:
        """What the judge's reader reads of it: the title, if there is one, and the text."""
        return join_title(self.title, self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A question and its candidates, not empty, in first-stage order."""

    id: str  # names the question within its set
    question: str
    passages: tuple[LabelledPassage, ...]
    set: str  # name of the data set
    group: str  # folds never part questions that share it
    weight: float = 1.0  # in training, >= 0; 0 is for measuring alone
    golden_outside: int = 0  # golden passages the first stage missed, >= 0
    of_one_paper: bool = False  # whether all candidates are parts of one paper

    def __post_init__(self) -> None:
        if not self.passages:
            raise InputError(f"question {self.id!r} of {self.set} has no passage")
        wrong = [one.label for one in self.passages if one.label not in (0, 1)]
        if wrong:
            raise InputError(f"question {self.id!r}: a label must be 0 or 1, got {wrong[0]!r}")
        if not (self.weight >= 0 and self.golden_outside >= 0):
            raise InputError(
                f"question {self.id!r}: weight and golden_outside must be >= 0, "
                f"got {self.weight} and {self.golden_outside}"
            )

    @property
    def labels(self) -> tuple[int, ...]:
        """Labels of the passages, in their order."""
        return tuple(one.label for one in self.passages)

    @property
    def n_golden(self) -> int:
        """Golden passages, in the pool or not."""
        return sum(self.labels) + self.golden_outside

    def with_passages(self, passages: tuple[LabelledPassage, ...]) -> Self:
        """Return the same question over other candidates."""
        return replace(self, passages=passages)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSource:
    """How one data set becomes pools."""

    path: Path
    read: Read
    weight: float = 1.0  # of a pool in training; 0 for a set to measure on alone
    is_articles: bool = False  # of one article each: kind is the section, and no title
    adds_golden: bool = False  # golden documents missed by the first stage are added


def read_pools(
    paths: Sequence[Path],
    *,
    split: str = "train",
    n_candidates: int = N_NEGATIVES,
    adds_golden: bool = True,
    sets: Sequence[str] | None = None,
) -> list[Pool]:
    """Return the pools of all sets, or of those named, held in memory."""
    # Questions share a group if alike, or with a golden passage or all candidates in common. Of a
    # BEIR folder not among the known sets, *split* names the judgements; hard negatives are what
    # BM25 finds and nobody judged golden; golden ones it missed are added, unless for measuring.
    sources: dict[str, PoolSource] = {}
    for path in paths:
        for name, source in _find_sources(
            path, split, n_candidates, adds_golden=adds_golden
        ).items():
            if name in sources:
                raise SettingsError(f"two data sets are named {name!r}: give one another name")
            sources[name] = source
    chosen = _choose(sources, sets)
    drafts = [draft for name, source in chosen.items() for draft in _draft_pools(name, source)]
    groups = find_groups([keys for _, keys in drafts])
    if not drafts:
        raise InputError(f"no questions in {', '.join(map(str, paths))}")
    return [build(group) for (build, _), group in zip(drafts, groups, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataPlan:
    """What is read, and how."""

    data: tuple[Path, ...]  # see `read_pools`; not empty
    sets: tuple[str, ...] | None = None  # None takes all
    split: str = "train"  # judgements of a BEIR folder
    n_candidates: int = N_NEGATIVES  # documents BM25 finds there for a query, >= 1
    seed: int = 0  # of splits, fits and intervals
    keep: Path | None = None  # where features are kept; None keeps none

    def read_pools(self, *, to_train: bool) -> list[Pool]:
        """Read the data; golden documents that BM25 missed are added only to train on."""
        pools = read_pools(
            self.data,
            split=self.split,
            n_candidates=self.n_candidates,
            adds_golden=to_train,
            sets=self.sets,
        )
        if to_train:
            select_trainable(pools)
        return pools


def select_trainable(pools: Sequence[Pool]) -> list[Pool]:
    """Return the pools that count in training; an `InputError` if none has evidence and others."""
    found = [pool for pool in pools if pool.weight]
    if not any(0 < sum(pool.labels) < len(pool.labels) for pool in found):
        raise InputError(
            "nothing to train on: no question has both a golden passage and another one among "
            f"its candidates ({len(pools)} questions read)"
        )
    return found


def find_known_sources(folder: Path) -> dict[str, PoolSource]:
    """Return the sets of a folder that this package's weights are made from, by name."""
    # PubMedQA (`control` has its evidence paraphrased), Evidence Inference, SciFact, and SciSumm,
    # which is never trained on. Those that are not there are left out.
    pubmed, scifact = folder / "pubmedqa_dev", folder / "scifact"
    trial, search = partial(read_beir, split="train", n_candidates=N_NEGATIVES), read_beir
    found = {
        # twice, as all others of PubMedQA hold other parts of the paper that answers
        "base": PoolSource(path=pubmed / "base.jsonl", read=read_instances, weight=2.0),
        "natural": PoolSource(path=pubmed / "natural.jsonl", read=read_instances, weight=1.5),
        "written": PoolSource(path=pubmed / "written.jsonl", read=read_instances),
        "control": PoolSource(path=pubmed / "written_control.jsonl", read=read_instances),
        "multi": PoolSource(path=pubmed / "multi.jsonl", read=read_instances),
        "sciences": PoolSource(path=folder / "sciences/questions.jsonl", read=read_instances),
        "question_titles": PoolSource(
            path=folder / "question_titles/dev.jsonl", read=read_instances
        ),
        "evidence_inference": PoolSource(
            path=folder / "evidence_inference", read=read_articles, is_articles=True
        ),
        SNIPPETS: PoolSource(path=folder / f"pretrain/{SNIPPETS}.jsonl.gz", read=read_snippets),
        "scifact_train": PoolSource(path=scifact, read=trial, weight=0.5, adds_golden=True),
        "scifact_test": PoolSource(
            path=scifact, read=partial(search, split="test", n_candidates=N_CANDIDATES), weight=0.0
        ),
        "scisumm": PoolSource(
            path=folder / "scisumm", read=read_articles, weight=0.0, is_articles=True
        ),
    }
    return {name: one for name, one in found.items() if one.path.exists()}


def _find_sources(
    path: Path, split: str, n_candidates: int, *, adds_golden: bool
) -> dict[str, PoolSource]:
    known = find_known_sources(path)
    if known:
        return known
    if is_topics(path):
        return {path.stem: PoolSource(path=path, read=read_topics)}
    if is_libraries(path):
        return {path.stem: PoolSource(path=path, read=read_libraries, weight=LIBRARY_WEIGHT)}
    dataset = open_dataset(path, split=split, n_candidates=n_candidates)
    if not adds_golden:  # to measure on, also what is kept where there is nothing to find
        dataset = replace(dataset, needs_golden=False)
    return {
        dataset.name: PoolSource(
            path=path,
            read=lambda _: dataset,
            is_articles=(path / "passages.jsonl").exists(),
            adds_golden=adds_golden and (path / "corpus.jsonl").exists(),
        )
    }


def _choose(
    sources: Mapping[str, PoolSource], sets: Sequence[str] | None
) -> Mapping[str, PoolSource]:
    if sets is None:
        return sources
    unknown = [name for name in sets if name not in sources]
    if unknown:
        raise SettingsError(f"set must be one of {', '.join(sources)}, got {unknown[0]!r}")
    return {name: sources[name] for name in sets}


def _draft_pools(
    name: str, source: PoolSource
) -> Iterator[tuple[Callable[[str], Pool], list[str]]]:
    """Yield what builds each pool once its group is known, and the keys that decide the group."""
    corpus: dict[str, BeirDocument] = {}
    if source.adds_golden:
        corpus = {row.id: row for row in read_rows(source.path / "corpus.jsonl", BeirDocument)}
    texts = {id: row.text or row.title for id, row in corpus.items()}
    for instance in source.read(source.path):
        keys = list_keys(instance, texts)
        yield partial(_build_pool, name, source, instance, corpus), keys


def _build_pool(
    name: str,
    source: PoolSource,
    instance: Instance,
    corpus: Mapping[str, BeirDocument],
    group: str,
) -> Pool:
    passages = [_build_passage(one, is_articles=source.is_articles) for one in instance.contexts]
    missed = [corpus[id] for id in instance.golden_outside if id in corpus]
    passages += [
        LabelledPassage(text=row.text or row.title, title=row.title, label=1, kind=GOLDEN)
        for row in missed
        if (row.text or row.title).strip()
    ]
    return Pool(
        id=instance.id,
        question=instance.question,
        passages=tuple(passages),
        set=name,
        group=group,
        weight=source.weight,
        golden_outside=len(instance.golden_outside) - (len(passages) - len(instance.contexts)),
        of_one_paper=source.is_articles,
    )


def _build_passage(context: Context, *, is_articles: bool) -> LabelledPassage:
    other = context.section if is_articles else context.distractor_type
    return LabelledPassage(
        text=context.text,
        title="" if is_articles else context.title,
        label=int(context.is_golden),
        kind=GOLDEN if context.is_golden else other or OTHER_PAPER,
    )
