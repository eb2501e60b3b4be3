"""Phase B of BioASQ: exact and ideal answers from snippets."""

import json
import re
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

WEIGHTS: Final = Path(__file__).parent / "weights.json"  # of what answers without a model


@lru_cache(maxsize=1)
def read_weights() -> dict[str, Any]:
    """Return the weights that were shipped; ``benchmarks/bioasq/extractive.py`` fits them."""
    weights: dict[str, Any] = json.loads(WEIGHTS.read_text(encoding="utf-8"))
    return weights


def compile_lines(text: str, *, flags: int = re.IGNORECASE, **named: str) -> re.Pattern[str]:
    """Compile a pattern that has several lines in a file of words, and what `<name>` stands for."""
    whole = "".join(map(str.strip, text.splitlines()))
    for name, pattern in named.items():
        whole = whole.replace(f"<{name}>", pattern)
    return re.compile(whole, flags)
