"""What can be set about a build: its options, their defaults and ranges follow from it."""

from dataclasses import dataclass
from typing import Literal, get_args

from deepera_graph.errors import SettingsError
from deepera_graph.ranges import check_cosine, setting
from deepera_graph.settings import AgentSettings

Setting = Literal["base", "ssli"]
Golden = Literal["insert", "record"]


def _check_settings(name: str, chosen: tuple[Setting, ...]) -> None:
    known = get_args(Setting)
    if not chosen or not {*chosen} <= {*known} or len({*chosen}) < len(chosen):
        raise SettingsError(f"{name} must be some of {', '.join(known)}, got {','.join(chosen)!r}")


# Source: DeepEra, section 6.2: two settings, 30 passages a question. The paper does not say how
# many distractors a pool has: 3 is one of each kind.
@dataclass(frozen=True, slots=True, kw_only=True)
class BuildSettings(AgentSettings):
    """What is made of documents.

    Raises:
        SettingsError: A value is out of range.
    """

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
    verify: bool = setting(
        True, "Let the model check each look-alike against the answer: one call more for each."
    )

    def _check(self) -> None:
        if self.n_contexts <= self.n_distractors:
            raise SettingsError(
                f"n_contexts must be above n_distractors ({self.n_distractors}), "
                f"got {self.n_contexts}"
            )
        object.__setattr__(self, "settings", tuple(self.settings))
