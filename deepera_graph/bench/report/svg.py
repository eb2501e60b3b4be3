"""Figures as SVG that can stand in a page: no header, ids of their own, the page's text colour."""

import re

from matplotlib.figure import Figure

from deepera_graph.bench.figures.save import figure_bytes

_ID = re.compile(r'(\bid="|href="#|url\(#)([^")]+)')
_BLACK = re.compile(r"(stroke|fill): #000000")
_TEXT = re.compile(r"<text ")


def inline_svg(figure: Figure, name: str) -> str:
    """Return one `svg` element.

    Args:
        figure: It is not changed.
        name: Goes before every id, so that two figures of a page do not share one.
    """
    text = figure_bytes(figure, ".svg", transparent=True).decode()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = _ID.sub(rf"\g<1>{name}-\g<2>", text)
    text = _BLACK.sub(r"\1: currentColor", text)
    return _TEXT.sub('<text fill="currentColor" ', text).strip()
