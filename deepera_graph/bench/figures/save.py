"""Figures as bytes, without a date: the same figure gives the same bytes."""

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

# Colours that people with any kind of colour vision tell apart: Okabe and Ito (2008); the grey, the
# violet and the brown are ours.
COLOURS = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#8C8C8C",
    "#F0E442",
    "#5E3C99",
    "#8C510A",
)
SUFFIXES = (".svg", ".pdf", ".png")
_SALT = "deepera"
_NO_DATE: Mapping[str, Mapping[str, Any]] = {
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
    ".png": {"Software": None},
}


def figure_bytes(figure: Figure, suffix: str, *, transparent: bool = False) -> bytes:
    """Return a figure as a file of that kind.

    Args:
        figure: It is not changed.
        suffix: ``.svg`` (texts stay texts), ``.pdf`` or ``.png`` (150 dots an inch).
        transparent: Whether what lies behind shines through.

    Raises:
        ValueError: The suffix is another.
    """
    if suffix not in _NO_DATE:
        raise ValueError(f"a figure is one of {', '.join(_NO_DATE)}, got {suffix!r}")
    buffer = BytesIO()
    with mpl.rc_context({"svg.hashsalt": _SALT, "svg.fonttype": "none"}):
        figure.savefig(
            buffer,
            format=suffix.removeprefix("."),
            metadata=dict(_NO_DATE[suffix]),
            dpi=150,
            transparent=transparent,
        )
    return buffer.getvalue()


def save(figure: Figure, path: Path) -> None:
    """Write a figure; what kind of file it is, its suffix says.

    Raises:
        ValueError: The suffix is none of ``.svg``, ``.pdf`` and ``.png``.
    """
    path.write_bytes(figure_bytes(figure, path.suffix))
