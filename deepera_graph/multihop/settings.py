"""What a caller of the agent can turn: how far it goes, and how sure it makes itself."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, Literal

from typing_extensions import TypedDict

from deepera_graph.errors import SettingsError
from deepera_graph.settings import AgentSettings
from deepera_graph.settings.budget import Budget
from deepera_graph.settings.ranges import check_setting, setting

Equivalence = Literal["entailment", "lenient", "exact"]
Feedback = Literal["each", "after"]
Label = Literal["entailment", "neutral", "contradiction"]
Compare = Callable[[str, str, str], Label]
_LABELS: tuple[Label, ...] = ("contradiction", "entailment", "neutral")  # as models have them
READ_AT_ONCE = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncertainty:
    """How the uncertainty of a batch is measured; m more calls for every batch.

    Raises:
        SettingsError: A value is out of range.
    """

    samples: int = setting(
        10,
        "With --multihop, a chat model and --adaptive: sample N answers from each batch of "
        "passages that is compared, and divide the scores of the batch by the number of their "
        "meanings. Takes many calls.",
        least=2,
        metavar="N",
        shown="none",
    )
    equivalence: Equivalence = setting(
        "entailment",
        "With samples: when two answers are one. [b]entailment[/b]: each entails the other. "
        "[b]lenient[/b]: neither contradicts the other. [b]exact[/b]: they are written alike, "
        "which takes no calls.",
        choices=Equivalence,
        metavar="HOW",
    )
    compare: Compare | None = setting(
        None,
        "Says what an answer says about another: compare(question, premise, hypothesis), e.g. "
        "nli_labels of a cross-encoder; None asks the chat model.",
    )
    feedback: Feedback = setting(
        "each",
        "[b]each[/b]: after every batch, so that the penalised scores decide whose neighbours come "
        "next. [b]after[/b]: once retrieval is done, all batches at once, which waits for one "
        "round of calls instead of one a batch.",
        choices=Feedback,
    )

    def __post_init__(self) -> None:
        for one in fields(self):
            check_setting(one, getattr(self, one.name))
        if self.compare is not None and self.equivalence == "exact":
            raise SettingsError("compare goes with equivalence 'entailment' or 'lenient'")

    def most_calls(self, n_batches: int) -> dict[str, int]:
        """Return the most calls for so many batches: samples, and comparisons by the chat model."""
        by_model = self.equivalence != "exact" and self.compare is None
        pairs = self.samples * (self.samples - 1) if by_model else 0
        return {"sample": n_batches * self.samples, "entail": n_batches * pairs}

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for the manifest."""
        return {
            "samples": self.samples,
            "equivalence": self.equivalence,
            "feedback": self.feedback,
            "compared_by": "function" if self.compare else "model",
        }


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


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiHopSettings(AgentSettings):
    """How far the agent goes.

    Raises:
        SettingsError: A value is out of range.

    Source:
        10 passages a step and in the end: SUNAR; 2 of each step: its code, of every step.
    """

    max_steps: int = setting(
        6, "With --multihop and a chat model: most sub-questions.", metavar="N"
    )
    step_passages: int = setting(10, "Most passages that a step is answered from.")
    read_at_once: int = setting(
        READ_AT_ONCE,
        "How many of them are read first; the others only if these do not have the answer.",
    )
    final_passages: int = setting(
        10, "Most passages that the question is answered from in the end."
    )
    passages_a_step: int = setting(
        2,
        "How many of each step without a proven answer are among them besides the cited ones.",
        least=0,
    )
    max_concurrency: int = setting(16, "Most model calls in flight.")
    budget: Budget | None = setting(None, "What a question may cost; None is no limit.")
    uncertainty: Uncertainty | None = setting(
        None,
        "How the uncertainty of answers is measured; None does not measure it, and costs nothing.",
    )

    _READ = MappingProxyType({"budget": Budget, "uncertainty": Uncertainty})

    @property
    def readings(self) -> int:
        """How often the passages of a step may be read, part after part."""
        return -(-self.step_passages // self.read_at_once)


class MultiHopKwargs(TypedDict, total=False):
    """The settings as keyword arguments; see `MultiHopSettings`."""

    max_steps: int
    step_passages: int
    read_at_once: int
    final_passages: int
    passages_a_step: int
    max_concurrency: int
    budget: Budget | Mapping[str, Any] | None
    uncertainty: Uncertainty | Mapping[str, Any] | None
