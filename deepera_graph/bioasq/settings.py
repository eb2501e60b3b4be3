"""What a caller can turn of BioASQ: how documents are found, questions answered, encoders tuned."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product
from math import inf
from typing import Any, Literal, NamedTuple

from typing_extensions import TypedDict

from deepera_graph.errors import SettingsError
from deepera_graph.settings import AgentSettings
from deepera_graph.settings.budget import Budget
from deepera_graph.settings.ranges import check_at_least, check_setting, setting

# What BioASQ takes: http://participants-area.bioasq.org/general_information/Task13b
MAX_DOCUMENTS = MAX_SNIPPETS = 10
MAX_CANDIDATES, MAX_ENTITIES = 5, 100  # of a factoid, of a list
MAX_NAME_CHARS, MAX_IDEAL_WORDS = 100, 200

FIRST, SECOND = 6, 4  # documents nominated by two runs
Ensemble = Literal["weighted", "nominate", "last"]
PRESETS: Mapping[str, Mapping[str, Any]] = {
    # The chain of BioASQ 13b: all that is retrieved is scored, by a cross-encoder of one's choice.
    "paper": {
        "depth": 1000,
        "judged": 1000,
        "listed": 30,
        "ensemble": "weighted",
        "n_documents": 10,
    }
}


def check_pair(name: str, values: Sequence[float]) -> None:
    """Raise `SettingsError` unless these are two numbers from 0 on."""
    if len(values) != 2 or not all(0 <= one < inf for one in values):
        shown = ",".join(f"{one:g}" for one in values)
        raise SettingsError(f"{name} must be two numbers >= 0, got {shown!r}")


def check_nominated(n_first: int, n_second: int, n: int) -> None:
    """Raise `SettingsError` unless *n* documents have room for those of two runs, at least one."""
    check_at_least("n_first", n_first, 0)
    check_at_least("n_second", n_second, 0)
    check_at_least("n_first + n_second", n_first + n_second, 1)
    if n < n_first + n_second:
        raise SettingsError(
            f"{n} documents have no room for the {n_first} + {n_second} that are nominated"
        )


def check_n_snippets(name: str, value: int) -> None:
    """Raise `SettingsError` unless BioASQ takes so many snippets."""
    check_at_least(name, value, 0)
    if value > MAX_SNIPPETS:
        raise SettingsError(f"{name} must be at most {MAX_SNIPPETS}, got {value}")


def _check_finite(name: str, value: float) -> None:
    if not 0 <= value < inf:
        raise SettingsError(f"{name} must be >= 0, got {value!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings(AgentSettings):
    """How a search for documents goes.

    Source:
        Weights of 1 and 7: BioASQ 13b, on validation; it retrieves 1000, 2000 or 5000 documents.
    """

    depth: int = setting(1000, "Documents retrieved.", metavar="N")
    fusion: Literal["ranks", "scores"] = setting(
        "scores",
        "How a hybrid collection joins its two rankings; see `PassageStore.search`.",
        choices=("ranks", "scores"),
    )
    judged: int = setting(
        30,
        "Documents that --backend scores, the best of those retrieved.",
        brief="Documents that are judged, the best of those retrieved.",
        metavar="N",
    )
    first_weight: float | None = setting(
        None,
        "Of the first stage's score, which is at most 1, beside the log odds of the judge's; >= 0, "
        "and with 0 the judge's score alone counts. None is 0, but for the local judge, which is "
        "joined with the first stage and with how closely a document follows the question.",
        check=_check_finite,
    )
    listed: int = setting(
        30, "With --model: documents that it sorts in one prompt.", least=2, metavar="N"
    )
    ensemble: Ensemble = setting(
        "weighted",
        "With --model: how its ranking joins that of --backend. [b]weighted[/b]: a sum of points "
        "for places, see --weights. [b]nominate[/b]: the best of each, see --nominate. "
        "[b]last[/b]: the chat model's alone.",
        choices=Ensemble,
        metavar="HOW",
    )
    weights: Sequence[float] = setting(
        (1.0, 7.0),
        "With --ensemble weighted: weights of the judge and the chat model.",
        check=check_pair,
        metavar="W,W",
    )
    nominated: Sequence[int] = setting(
        (FIRST, SECOND),
        "With --ensemble nominate: documents of the judge and of the chat model, together at most "
        "--documents; what is above them is filled from the chat model's.",
        check=check_pair,
        metavar="N,N",
    )
    n_documents: int = setting(MAX_DOCUMENTS, "Documents of a question.", metavar="N")
    n_snippets: int | None = setting(
        None,
        "Snippets of a question: [b]auto[/b] gives as many sentences as are worth it, a number "
        "from 0 to 10 always so many.",
        check=check_n_snippets,
        metavar="auto|N",
        shown="auto",
    )
    max_concurrency: int = setting(16, "Most model calls in flight.")
    budget: Budget | None = setting(
        None, "What a question, or all of a batch together, may cost; None is no limit."
    )

    def _check(self) -> None:
        n_first, n_second = self.nominated
        n = self.n_documents if self.ensemble == "nominate" else n_first + n_second
        check_nominated(n_first, n_second, n)


class SearchKwargs(TypedDict, total=False):
    """The settings as keyword arguments; see `SearchSettings`."""

    depth: int
    fusion: Literal["ranks", "scores"]
    judged: int
    first_weight: float | None
    listed: int
    ensemble: Ensemble
    weights: Sequence[float]
    nominated: Sequence[int]
    n_documents: int
    n_snippets: int | None
    max_concurrency: int
    budget: Budget | Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedSettings(AgentSettings):
    """How questions are answered; `SettingsError` if a value is out of range."""

    max_snippets: int = setting(
        50,
        "Snippets of a question that are read: one of each document first, long ones last.",
        metavar="N",
    )
    max_characters: int = setting(
        24_000, "Most characters of them; at least one snippet is read.", least=1000
    )
    fallback: bool = setting(
        True,
        "Whether an answer that failed, or that the budget did not allow, is put together from the "
        "snippets by rules instead, and called extracted; never where the model cannot be reached "
        "at all, or refuses the key.",
    )
    max_concurrency: int = setting(16, "Most model calls in flight.")
    budget: Budget | None = setting(
        None, "What all questions of a batch may cost; None is no limit."
    )


class TypedKwargs(TypedDict, total=False):
    """The settings as keyword arguments; see `TypedSettings`."""

    max_snippets: int
    max_characters: int
    fallback: bool
    max_concurrency: int
    budget: Budget | Mapping[str, Any] | None


def read_ratio(text: str) -> float | None:
    """Return how many negatives there are for a golden document: ``1:4`` is 4, ``all`` None."""
    plain = text.strip()
    if plain == "all":
        return None
    found = re.fullmatch(r"(\d{1,4}):(\d{1,4})", plain)
    if found is None or not int(found[1]) or not int(found[2]):
        raise SettingsError(
            f"a ratio must be golden documents to negatives, as 1:1 or 1:4, or all, got {text!r}"
        )
    return int(found[2]) / int(found[1])


class TuningVariant(NamedTuple):
    """A model to begin with, and the pairs it is tuned on."""

    model: str
    ratio: float | None
    since: int | None

    def __str__(self) -> str:
        """Name it in a line."""
        pairs = "all negatives" if self.ratio is None else f"1:{self.ratio:g}"
        return f"{self.model}, {pairs}{'' if self.since is None else f', since {self.since}'}"


def _check_some(name: str, values: Sequence[object]) -> None:
    if not values:
        raise SettingsError(f"{name} must not be empty")


def _check_models(name: str, models: Sequence[str]) -> None:
    _check_some(name, models)
    for model in models:
        if not model.strip():
            raise SettingsError(f"a model must be a name or a folder, got {model!r}")


def _check_rate(name: str, value: float) -> None:
    if not 0 < value < inf:
        raise SettingsError(f"{name} must be above 0, got {value!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningSettings:
    """How a cross-encoder is tuned; new head, draw of negatives and order have one seed."""

    models: Sequence[str] = setting(
        ("cross-encoder/ms-marco-MiniLM-L12-v2",),
        "What to begin with: a name on the Hugging Face hub, or a folder. Several with commas are "
        "tried.",
        check=_check_models,
        metavar="NAME,...",
    )
    ratios: Sequence[float | None] = setting(
        (None,),
        "Golden documents to negatives, which are drawn from those found: 1:1, 1:4, or [b]all[/b]. "
        "Several with commas are tried one after the other.",
        check=_check_some,
        metavar="N:N,...",
        shown="all",
    )
    since: Sequence[int | None] = setting(
        (None,),
        "Train on questions of this year and later alone; [b]all[/b] takes every year. Several "
        "with commas are tried.",
        check=_check_some,
        metavar="YEAR,...",
        shown="all",
    )
    epochs: int = setting(3, "Epochs of the final model.", metavar="N")
    select_epochs: int = setting(1, "Epochs of each, where several are tried.", metavar="N")
    batch_size: int = setting(16, "Pairs of a step.", metavar="N")
    learning_rate: float = setting(2e-5, "The highest one.", check=_check_rate, metavar="RATE")
    max_tokens: int = setting(
        512, "Most tokens of question and document together.", least=8, metavar="N"
    )
    int8: bool = setting(
        False, "Also write a model with weights of eight bits, a quarter of the size."
    )
    seed: int = setting(
        0, "Random seed of the split, the draw and the training.", least=0, metavar="S"
    )

    def __post_init__(self) -> None:
        for one in fields(self):
            check_setting(one, getattr(self, one.name))

    def variants(self) -> list[TuningVariant]:
        """Return what is tried, each once."""
        return [
            TuningVariant(*one)
            for one in dict.fromkeys(product(self.models, self.ratios, self.since))
        ]
