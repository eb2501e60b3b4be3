"""Where local collections are, if nobody says otherwise."""

import os
from pathlib import Path


def data_folder() -> Path:
    """Return the folder of local collections, by the XDG base directory specification."""
    home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(home) / "deepera"
