"""A file that one process at a time may write."""

import sys
from pathlib import Path
from typing import IO

from deepera_graph.errors import SettingsError

if sys.platform == "win32":

    def lock(file: IO[bytes], path: Path) -> None:
        """Do nothing: who has a file open there keeps others from replacing it."""

else:
    import fcntl

    def lock(file: IO[bytes], path: Path) -> None:
        """Hold a file until it is closed or the process ends, however it ends.

        Raises:
            SettingsError: Another process holds it.
        """
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise SettingsError(f"{str(path)!r} is being written by another process") from error
        except OSError:  # a file system that knows no locks
            return
