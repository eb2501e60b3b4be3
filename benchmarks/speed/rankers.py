"""Every ranker of the table, by the name that the command line takes."""

from modes import MODES
from rivals import BASE, RIVALS

__all__ = ["BASE", "RANKERS"]
RANKERS = MODES | RIVALS
