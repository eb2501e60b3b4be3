"""What is made of a text, held for the next time that somebody asks."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakSet

MOST_TEXTS = 512  # passages of some questions
MOST_SENTENCES = 2048
LONGEST = 5_000  # characters: what is made of the texts held, of one kind, takes some megabytes

OtherP = ParamSpec("OtherP")
MadeT = TypeVar("MadeT")
_HOLDS: "WeakSet[Any]" = WeakSet()


def held(
    most: int = MOST_TEXTS,
) -> Callable[
    [Callable[Concatenate[str, OtherP], MadeT]], Callable[Concatenate[str, OtherP], MadeT]
]:
    """Hold what a function makes of the *most* texts asked for lately, the same object for all.

    What it makes must not be changed. Longer texts than `LONGEST` are not held.
    """

    def hold_what_is_made(
        make: Callable[Concatenate[str, OtherP], MadeT],
    ) -> Callable[Concatenate[str, OtherP], MadeT]:
        hold: Any = lru_cache(maxsize=most)(make)
        _HOLDS.add(hold)

        @wraps(make)
        def find(text: str, /, *args: OtherP.args, **kwargs: OtherP.kwargs) -> MadeT:
            use: Callable[Concatenate[str, OtherP], MadeT] = hold if len(text) <= LONGEST else make
            return use(text, *args, **kwargs)

        return find

    return hold_what_is_made


def forget_all() -> None:
    """Let go of all that is held, as a new process begins."""
    for hold in list(_HOLDS):
        hold.cache_clear()
