"""How long a server takes, and what it need not read twice."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """What a server is given to do a call.

    Attributes:
        ttft: Seconds from the start of a call to its first token, without reading the prompt.
        prefill: Prompt tokens a second, each call for itself.
        decode: Output tokens a second, each call for itself.
        at_once: Calls served together; more wait in the order they came.
        block: Tokens a block; a prompt is found in the cache in whole blocks.
        requests_per_minute: What is above is refused with 429; 0 is no limit.
        straggler_share: Share of the calls, in [0, 1], that take *straggler_factor* as long.
        straggler_factor: How much longer these take.
    """

    ttft: float = 0.25
    prefill: float = 4000.0
    decode: float = 80.0
    at_once: int = 64
    block: int = 16
    requests_per_minute: float = 0.0
    straggler_share: float = 0.0
    straggler_factor: float = 5.0

    def seconds(self, n_read: int, n_written: int, drawn: float = 1.0) -> tuple[float, float]:
        """Return when the first and the last token leave, in seconds after the start.

        *n_read* are the prompt tokens that are in no cache; *drawn*, in [0, 1), makes a straggler
        where it is below the share of them.
        """
        factor = self.straggler_factor if drawn < self.straggler_share else 1.0
        first = factor * (self.ttft + n_read / self.prefill)
        return first, first + factor * n_written / self.decode


class PrefixCache:
    """Automatic prefix caching: whole blocks of tokens, found by all that stands before them.

    The last token of a prompt is always read, as its output is needed. Nothing is ever evicted.

    Source:
        vLLM documentation, "Automatic Prefix Caching": the key of a block is its tokens with the
        key of the block before.
    """

    def __init__(self, block: int) -> None:
        self._block = block
        self._keys: set[int] = set()

    def find(self, tokens: Sequence[Hashable]) -> int:
        """Return how many tokens of a prompt need not be read."""
        n_blocks = 0
        for key in self._chain(tokens[:-1]):
            if key not in self._keys:
                break
            n_blocks += 1
        return n_blocks * self._block

    def add(self, tokens: Sequence[Hashable]) -> None:
        """Keep the blocks of a prompt that was read."""
        self._keys.update(self._chain(tokens))

    def clear(self) -> None:
        """Forget everything."""
        self._keys.clear()

    def _chain(self, tokens: Sequence[Hashable]) -> Iterator[int]:
        key = 0
        for start in range(0, len(tokens) - self._block + 1, self._block):
            key = hash((key, *tokens[start : start + self._block]))
            yield key


class Turnstile:
    """Lets so many requests a minute pass, evenly, with one second's worth at once."""

    def __init__(self, requests_per_minute: float) -> None:
        self._every = 60.0 / requests_per_minute if requests_per_minute else 0.0
        self._ahead = max(1.0, self._every)
        self._next = 0.0

    def wait(self, now: float) -> float:
        """Return 0 for a request that may pass, else the seconds after which it should return."""
        due = max(self._next, now - self._ahead)
        if self._every and due > now:
            return due - now
        self._next = due + self._every
        return 0.0


def draw(seed: int, prompt: str) -> float:
    """Return the lot of a call in [0, 1): the same prompt, the same lot."""
    return Random(f"{seed} {prompt}").random()


def makespan(seconds: Sequence[float], at_once: int) -> float:
    """Return when the last of some calls ends if each starts as soon as a place is free."""
    places = [0.0] * min(at_once, max(1, len(seconds)))
    for one in seconds:
        first = places.index(min(places))
        places[first] += one
    return max(places)
