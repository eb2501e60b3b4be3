"""A server that lets nobody in is not asked six thousand times."""

from collections.abc import Callable
from time import monotonic

from deepera_graph.errors import CallError

_MOST_REFUSED = 8
_SECONDS_CLOSED = 5.0
_REFUSALS = frozenset({401, 403, 404})


class Door:
    """Closes after eight refusals in a row (401, 403, 404) by a server that never answered.

    While it is closed, calls fail at once with the refusal, unsent; every 5 seconds some are sent
    again, as a key may be activated late. One answer opens it for good: what a server refuses
    after that concerns one passage.

    Args:
        clock: Seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._n_refused, self._closed_until = 0, 0.0
        self._answered = False

    def check(self) -> None:
        """Let a call pass.

        Raises:
            CallError: The door is closed; the message is the server's.
        """
        if self._clock() < self._closed_until:
            raise CallError(self._message, status=self._status, unusable=True)

    def answered(self) -> None:
        """Note that a call was answered, well or badly."""
        self._answered = True

    def failed(self, error: CallError) -> None:
        """Note that a call failed."""
        if error.status not in _REFUSALS or self._answered:
            self._n_refused = 0
            return
        self._n_refused += 1
        if self._n_refused >= _MOST_REFUSED:
            self._closed_until = self._clock() + _SECONDS_CLOSED
            self._message, self._status = str(error), error.status
