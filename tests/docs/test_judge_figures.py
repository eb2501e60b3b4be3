"""Every page that shows how good the local judge is shows what its weights say: `held_out.json`."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from deepera_graph import load_backend

ROOT = Path(__file__).parents[2]
WEIGHTS = ROOT / "deepera_graph/judges/trained/weights"
CARD, PAGE = "deepera_graph/judges/trained/weights/MODEL_CARD.md", "docs/local-judge.md"
BANDED = ("natural", "multi", "sciences", "question_titles")
COLUMNS = ("questions", "MAP", "HitRate@1", "recall", "precision", "empty", "kept without")
FIRST = {
    "README.md": {
        "PubMedQA, 30 sections": "base",
        "the same, with background": "natural",
        "16 sciences": "sciences",
        "real abstracts of 17 fields": "question_titles",
    },
    "docs/which-reranker.md": {
        "PubMedQA, 30 sections": "base",
        "the same, natural": "natural",
        "the same, written": "written",
        "with evidence of several studies": "multi",
        "16 sciences": "sciences",
        "real abstracts of 17 fields": "question_titles",
    },
}


def figures() -> dict[str, Any]:
    found = json.loads((WEIGHTS / "held_out.json").read_text(encoding="utf-8"))
    assert found["operating_point"] == load_backend("local").judge.operating_point
    return found["sets"]


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", [PAGE, CARD])
def test_the_tables_of_sets_and_thresholds_are_those_of_the_weights(page: str) -> None:
    lines, sets = read(page).splitlines(), figures()
    for name, found in sets.items():
        shown = " | ".join(f"{found[column]}" for column in COLUMNS)
        assert f"| {name.replace('_', ' ')} | {shown} |" in lines
    for point in sets["natural"]["thresholds"]:
        cells = [" / ".join(map(str, sets[name]["thresholds"][point])) for name in BANDED]
        assert f"| {point} | {' | '.join(cells)} |" in lines


@pytest.mark.parametrize(("page", "named"), FIRST.items(), ids=list(FIRST))
def test_what_comes_first_is_shown_as_the_weights_say(page: str, named: dict[str, str]) -> None:
    rows, sets = [line for line in read(page).splitlines() if line.startswith("| ")], figures()
    for beginning, name in named.items():
        [row] = [one for one in rows if one.startswith(f"| {beginning}")]
        shown = re.findall(r"[\d.]+", row.rsplit("|", 2)[1])
        said = [sets[name][one] for one in ("HitRate@1", "HitRate@3", "MRR", "questions")]
        assert [float(one) for one in shown] == said[: len(shown)]


def test_the_sentences_on_the_bands_and_on_what_is_kept_are_those_of_the_tables() -> None:
    sets, band = figures(), load_backend("local").judge.evidence_point
    at_band = [sets[name]["thresholds"][f"{band:g}"] for name in BANDED]
    said = [one[0] for one in at_band] + [one[1] for one in at_band]
    for page in (PAGE, CARD):
        text = " ".join(read(page).split())
        shown = re.findall(
            r"called so (\d+) % is evidence on natural, (\d+) on `multi`, (\d+) on the sciences "
            r"and (\d+) on question titles, and it is (\d+), (\d+), (\d+) and (\d+) % of all",
            text,
        )
        assert [[*map(int, one)] for one in shown] == [said]
    [kept] = re.findall(
        r"keeps, held out, (\d+) % of the evidence of `multi` at a precision of (\d+) %, and (\d+) "
        r"% of that of the sciences at (\d+) %.*?"
        r"keeps something of (\d+), (\d+), (\d+) and (\d+) %",
        " ".join(read("docs/which-reranker.md").split()),
    )
    multi, sciences = sets["multi"], sets["sciences"]
    said = [multi["recall"], multi["precision"], sciences["recall"], sciences["precision"]]
    without = [sets[n]["kept without"] for n in ("multi", "sciences", "natural", "question_titles")]
    assert [*map(int, kept)] == [*said, *without]
