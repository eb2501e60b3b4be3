"""Invented questions whose relevant passages score higher, and files of them."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from deepera_graph.calibration.calibrate import JudgedQuestion
from deepera_graph.schema import Backend
from support.scripted import Script

Lines = Sequence[dict[str, object]]


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, Lines], Path]:
    def save(name: str, lines: Lines) -> Path:
        path = tmp_path / name
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
        return path

    return save


@pytest.fixture
def questions() -> list[JudgedQuestion]:
    """60 questions with 10 passages each, 2 of them evidence; the score is no probability."""
    rng = np.random.default_rng(3)
    made = []
    for number in range(60):
        labels = (1, 1, *[0] * 8)
        scores = [float(rng.beta(5, 2) if label else rng.beta(4, 4)) for label in labels]
        made.append(JudgedQuestion(id=str(number), scores=tuple(scores), labels=labels))
    return made


@pytest.fixture
def labelled() -> Lines:
    """30 questions with 4 passages each; the text of a passage holds the score it will get."""
    return [
        {
            "id": f"q{number}",
            "question": f"Does tea number {number} lower glucose?",
            "passages": [
                {"id": "a", "text": f"Tea {number} did it [{0.6 + number / 100:.2f}].", "label": 1},
                {"id": "b", "text": f"Tea {number} is green [{number / 50:.2f}].", "label": 0},
                {"id": "c", "text": f"Tea {number} is old [0.05].", "is_golden": False},
                {"id": "d", "text": f"Tea {number} is sold [0.10].", "label": 0},
            ],
        }
        for number in range(30)
    ]


@pytest.fixture
def script() -> Script:
    return Script({f"[{cents / 100:.2f}]": cents / 100 for cents in range(101)})


@pytest.fixture
def backend(script: Script) -> Backend:
    return script.backend()
