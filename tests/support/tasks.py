"""Work for the workers of an engine: sums, and tasks that end their worker."""

import asyncio
import os
import signal
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from deepera_graph.errors import SettingsError
from deepera_graph.usage import Usage

ALWAYS, ONCE = -1, -2


@dataclass(frozen=True)
class Doubling:
    """Doubles numbers, four at a time; `ALWAYS` and `ONCE` kill the process that has them in hand.

    *notes* is a folder where it is noted that `ONCE` was met; *broken* workers do not begin.
    """

    notes: Path
    broken: bool = False

    def at_once(self, share):
        return share.divide_count("tasks at once", 4 * share.n_workers)

    @contextmanager
    def open(self, share):
        if self.broken:
            raise SettingsError(f"no key at place {share.place}")
        yield self._double

    def cost(self, done):
        return Usage(calls=1)

    async def _double(self, number):
        if number == ALWAYS or (number == ONCE and not (self.notes / "met").exists()):
            (self.notes / "met").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        await asyncio.sleep(0.005)
        if number == 13:
            raise SettingsError("no thirteen")
        return 2 * number
