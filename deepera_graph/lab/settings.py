"""What can be set about studies and constructions: options, defaults and ranges follow from it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

from deepera_graph.errors import SettingsError
from deepera_graph.settings import AgentSettings
from deepera_graph.settings.ranges import check_cosine, check_setting, setting

Setting = Literal["base", "ssli"]
Golden = Literal["insert", "record"]
Prefilter = Literal["local", "words", "none"]


def check_rising(name: str, values: Sequence[float], *, low: float = 0, high: float = 1) -> None:
    """Raise `SettingsError` unless values rise, within a range; at least one."""
    if not values or any(not low <= value <= high for value in values):
        raise SettingsError(f"{name} must be in [{low}, {high}], got {list(values)}")
    if list(values) != sorted(set(values)):
        raise SettingsError(f"{name} must rise, got {list(values)}")


def _check_thresholds(name: str, values: Sequence[float]) -> None:
    if values:  # there may be rules in their place
        check_rising(name, values)


def _check_inside(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise SettingsError(f"{name} must be between 0 and 1, got {value}")


_check_counts = partial(check_rising, low=1, high=inf)


# Source: Cut-off 10: figure 7 of DeepEra; thresholds from 0.6 to 0.9: its follow-up study, those
# below are ours.
@dataclass(frozen=True, slots=True, kw_only=True)
class StudySettings:
    """What is measured, and how; `SettingsError` if a value is out of range."""

    limit: int | None = setting(
        None, "Only the first N questions of each.", least=1, metavar="N", shown="all"
    )
    split: str = setting("test", "Judgements of a BEIR folder to use.", metavar="NAME")
    n_candidates: int = setting(
        100, "Documents that BM25 finds for a question of a BEIR folder.", metavar="K"
    )
    queries: Path | None = setting(
        None,
        "With TREC runs as DATA: their queries, a table or JSON lines of qid and query.",
        metavar="FILE",
    )
    corpus: Path | None = setting(
        None,
        "With TREC runs: a file or folder with the texts, as `deepera index` reads them.",
        metavar="PATH",
    )
    qrels: Path | None = setting(
        None, "With TREC runs: the judgements, in TREC's columns or those of BEIR.", metavar="FILE"
    )
    rankers: tuple[str, ...] = setting(
        ("first-stage", "random", "bm25", "deepera:local"),
        "What to compare; see `deepera-lab bench table --help`.",
        metavar="NAME,...",
    )
    metrics: tuple[str, ...] = setting(
        ("HitRate@1", "HitRate@3", "MRR"), "Metrics of the main table.", metavar="NAME,..."
    )
    baseline: str = setting(
        "", "Ranker the others are compared with.", metavar="NAME", shown="none"
    )
    threshold: float | None = setting(
        None,
        "Lowest score kept, from 0 to 1, where it is not what is studied.",
        is_share=True,
        metavar="T",
        shown="the ranker's own, 0.8 for chat models",
    )
    top_n: int = setting(
        10, "Upper bound of passages kept, where it is not what is studied.", metavar="N"
    )
    thresholds: tuple[float, ...] = setting(
        (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
        "What [b]threshold[/b] tries: numbers from 0 to 1, gap[:FLOOR], quantile:SHARE[:FLOOR], "
        "calibrated:CURVE[:PROBABILITY] and by intent, e.g. mechanism=0.7+default=0.8.",
        check=_check_thresholds,
        metavar="T,...",
        shown="0.3,0.4,0.5,0.6,0.7,0.8,0.9,gap,quantile:0.1",
    )
    tune_share: float = setting(
        0.5,
        "Share of the questions on which [b]threshold[/b] chooses one, which the others measure.",
        check=_check_inside,
        metavar="S",
    )
    cutoffs: tuple[int, ...] = setting(
        (1, 2, 3, 5, 10, 15, 20, 30),
        "What [b]cutoff[/b] tries, up to the first that holds all candidates.",
        check=_check_counts,
        metavar="N,...",
    )
    counts: tuple[int, ...] = setting(
        (1, 3, 5, 10),
        "Numbers of look-alikes that [b]counts[/b] puts into the pool.",
        check=_check_counts,
        metavar="N,...",
    )
    shares: tuple[float, ...] = setting(
        (0.1, 0.5, 1.0),
        "Shares of the look-alikes that [b]embeddings[/b] puts into the store.",
        check=check_rising,
        metavar="S,...",
    )
    base: str = setting(
        "",
        "Data set without look-alikes, which the others are compared with in [b]main[/b].",
        metavar="NAME",
        shown='those whose setting is "base"',
    )
    n_repeats: int | None = setting(
        None,
        "Runs of everything that may differ from run to run: random order, rankers that ask a "
        "chat model, those who answer and judge answers, and [b]stability[/b].",
        least=1,
        metavar="N",
        shown="3, but 1 for what asks a model",
    )
    max_failed_share: float = setting(
        0.2,
        "Share of failed answers, or of passages that a ranker could not judge, from 0 to 1, above "
        "which no figures are given.",
        is_share=True,
        metavar="S",
    )
    n_sampled: int = setting(
        50, "Questions of each data set that [b]stability[/b] takes.", metavar="N"
    )
    n_resamples: int = setting(10_000, "Resamples for the intervals and tests.", metavar="N")
    seed: int = setting(
        0, "Random seed of the random order and the resamples.", least=0, metavar="S"
    )
    keep: Path | None = setting(
        None,
        "Keep rankings in this folder, and reuse those it already holds. A function of yours ranks "
        "anew each time, because its code may change under the same name.",
        metavar="FOLDER",
        shown="keep none",
    )
    strict: bool = setting(False, "Stop when a ranker cannot run here.")
    retry_failed: bool = setting(False, "Rank kept questions again of which a passage had failed.")

    def __post_init__(self) -> None:
        for one in fields(self):
            if one.name in StudySettings.__dataclass_fields__:
                check_setting(one, getattr(self, one.name))


# Source: Ours. The two shares lie between what sections of one abstract have in common (2 of 1 152
# reach 0.4) and what a copy with a few words changed keeps (0.6 and more).
@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """How strict the gates are that a written look-alike must pass."""

    min_percentile: float = 10.0  # of the natural contexts' similarities to the question, [0, 100]
    min_length: float = 0.5  # as a multiple of the median natural context, >= 0
    max_length: float = 2.0  # likewise, > `min_length`
    max_likeness: float = 0.4  # shingles shared with another distractor, of all of both, (0, 1]
    max_copied: float = 0.4  # share of its shingles also in a golden passage, (0, 1]
    min_word_order: float = 0.3  # see `ProseModel.measure_order`
    max_evidence: float = 0.75  # local judge's score where yes or no is asked, (0, 1]; 1: no judge

    def __post_init__(self) -> None:
        if not 0 <= self.min_percentile <= 100:
            raise SettingsError(f"min_percentile must be in [0, 100], got {self.min_percentile}")
        if not 0 <= self.min_length < self.max_length:
            raise SettingsError(
                f"min_length must be in [0, max_length), got {self.min_length} "
                f"and max_length {self.max_length}"
            )
        for name in ("max_likeness", "max_copied", "max_evidence"):
            if not 0 < getattr(self, name) <= 1:
                raise SettingsError(f"{name} must be in (0, 1], got {getattr(self, name)}")

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


def _check_settings(name: str, chosen: tuple[Setting, ...]) -> None:
    known = get_args(Setting)
    if not chosen or not {*chosen} <= {*known} or len({*chosen}) < len(chosen):
        raise SettingsError(f"{name} must be some of {', '.join(known)}, got {','.join(chosen)!r}")


# Source: DeepEra, section 6.2: two settings, 30 passages a question. The paper does not say how
# many distractors a pool has: 3 is one of each kind.
@dataclass(frozen=True, slots=True, kw_only=True)
class BuildPlan(AgentSettings):
    """What is made of documents; equal plans, documents and answers give equal bytes."""

    n_questions: int = setting(100, "Questions of each generator.", metavar="N")
    settings: tuple[Setting, ...] = setting(
        ("base", "ssli"),
        "[b]base[/b]: pools as retrieved. [b]ssli[/b]: with look-alikes.",
        check=_check_settings,
        metavar="NAME,...",
    )
    seed: int = setting(0, "Random seed of the build.", least=0, metavar="S")
    n_contexts: int = setting(30, "Passages in a pool.", metavar="N")
    n_distractors: int = setting(3, "Look-alikes in a pool.", metavar="N")
    per_document: int = setting(1, "Upper bound of questions about one document.", metavar="N")
    max_tokens: int = setting(200, "Upper bound of tokens in a chunk.", metavar="N")
    golden: Golden = setting(
        "insert",
        "When retrieval misses the passage that answers: put it in, or name it beside the pool.",
        choices=Golden,
    )
    attempts: int = setting(3, "Upper bound of attempts at one look-alike.", metavar="N")
    min_similarity: float | None = setting(
        None,
        "Smallest cosine that connects two documents.",
        check=check_cosine,
        metavar="C",
        shown="far below the quartiles of this corpus",
    )
    min_group: int = setting(
        2, "Connected documents needed for them to stay; 1 keeps all.", metavar="N"
    )
    gates: Gates = field(default_factory=Gates)
    verify: bool = setting(
        True, "Let the model check each look-alike against the answer: one call more for each."
    )

    _READ: ClassVar[Mapping[str, type[Any]]] = {"gates": Gates}

    def _check(self) -> None:
        if self.n_contexts <= self.n_distractors:
            raise SettingsError(
                f"n_contexts must be above n_distractors ({self.n_distractors}), "
                f"got {self.n_contexts}"
            )
        object.__setattr__(self, "settings", tuple(self.settings))


# Source: ScholarQuest, section 3 and appendix (ten rewrites, the top 10 of each source, at most 30
# citing papers, two hops, 500 answers, 10 000 scored papers, threshold 2). The paper gives no size
# of groups and waves, and no bound below which a branch is noisy: those are ours. The smallest
# number of answers is that of its smallest bucket.
@dataclass(frozen=True, slots=True, kw_only=True)
class QuestPlan(AgentSettings):
    """How papers are found and judged; equal plans, bases and replies give equal bytes.

    Raises:
        SettingsError: A value is out of range.
    """

    rewrites: int = setting(
        2, "Queries of each of five kinds.", metavar="N", shown="2, which makes ten"
    )
    per_search: int = setting(10, "Papers that one search of one base returns.", metavar="K")
    max_citing: int = setting(
        30,
        "Papers citing an answer that are looked at; of its references all are.",
        least=0,
        metavar="N",
    )
    max_hops: int = setting(
        2, "Steps along citations, 0 to 2.", least=0, choices=(0, 1, 2), metavar="N"
    )
    tau: int = setting(2, "Least grade of an answer.", choices=(1, 2), metavar="1|2")
    max_answers: int = setting(500, "Answers at which a question ends.", metavar="N")
    max_scored: int = setting(10_000, "Judged papers at which a question ends.", metavar="N")
    min_answers: int = setting(5, "Questions with fewer answers are left out.", metavar="N")
    prefilter: Prefilter = setting(
        "local",
        "What leaves out papers that are far from a question: [b]local[/b], by meaning, about 25 "
        "papers a second and core; [b]words[/b]; or [b]none[/b].",
        choices=Prefilter,
        metavar="NAME",
    )
    floor: float | None = setting(
        None,
        "Nearness below which a paper is far, if only one search found it.",
        check=check_cosine,
        metavar="X",
        shown="0.15 by meaning, 0.1 by words",
    )
    only_arxiv: bool = setting(
        False,
        "Keep only what is matched to arXiv, by an id or by a record of arXiv among the sources.",
    )
    group: int = setting(10, "Papers that a judge sees in one call.", metavar="N")
    wave: int = 10  # papers judged of each seed before its branch may be pruned
    # a branch is pruned when a smaller share of its papers than this has a grade of 1 or 2
    least_yield: float = setting(0.1, "", is_share=True)
    quorum: int | None = setting(
        None, "Judges that must have graded a pair.", least=1, metavar="N", shown="more than half"
    )
    # cosine from which on two questions are the same
    duplicate: float = setting(0.95, "", check=check_cosine)
    # classes that a topic is mapped to; one that fits none is left out. Empty maps nothing
    categories: tuple[str, ...] = ()

    def _check(self) -> None:
        object.__setattr__(self, "categories", tuple(self.categories))

    def quorum_of(self, n_judges: int) -> int:
        """Return how many of so many judges must have graded a pair.

        Raises:
            SettingsError: The quorum is above their number.
        """
        if self.quorum is None:
            return n_judges // 2 + 1
        if self.quorum > n_judges:
            raise SettingsError(f"quorum must be at most {n_judges} (judges), got {self.quorum}")
        return self.quorum
