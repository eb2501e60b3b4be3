"""What is made of a text, held for the next time that somebody asks."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakSet

MOST_TEXTS = 512  # passages of some questions
LONGEST = 5_000  # characters: what is made of the texts held, of one kind, takes some megabytes

OtherP = ParamSpec("OtherP")
MadeT = TypeVar("MadeT")
_HOLDS: "WeakSet[Any]" = WeakSet()


def held(
    make: Callable[Concatenate[str, OtherP], MadeT],
) -> Callable[Concatenate[str, OtherP], MadeT]:
    """Hold what a function makes of the texts asked for lately, the same object for all.

    What it makes must not be changed. Longer texts than `LONGEST` are not held.
    """
    hold: Any = lru_cache(maxsize=MOST_TEXTS)(make)
    _HOLDS.add(hold)

    @wraps(make)
    def find(text: str, /, *args: OtherP.args, **kwargs: OtherP.kwargs) -> MadeT:
        use: Callable[Concatenate[str, OtherP], MadeT] = hold if len(text) <= LONGEST else make
        return use(text, *args, **kwargs)

    return find


def forget_all() -> None:
    """Let go of all that is held, as a new process begins."""
    for hold in list(_HOLDS):
        hold.cache_clear()
