"""What answers BioASQ questions without a model: fitted on golden sets, measured by edition."""

import gzip
import importlib.util
import json
from dataclasses import replace
from pathlib import Path

import pytest

from deepera_graph.bioasq.phase_b.extract import YesNoModel
from deepera_graph.errors import InputError
from support.bioasq import SHARED
from support.bioasq_answers import asked

pytestmark = pytest.mark.full

FILE = Path(__file__).parents[2] / "benchmarks" / "bioasq" / "extractive.py"
_spec = importlib.util.spec_from_file_location("extractive", FILE)
extractive = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(extractive)
fit = extractive.fit  # as it is where a test puts a spy into its place

DRUGS = ("celalol", "dorixil", "mevatine", "tolupine", "brantol", "zarixin", "quorine", "belavir")


class _Unread:
    """A head of directions that knows none."""

    def weigh(self, described):
        return {"supports": 0.4, "contradicts": 0.2, "no_difference": 0.2, "mixed": 0.2}


def _ask(drug):
    """Four questions on a drug, one of them answered by no."""
    said = {
        "yesno": [f"{drug} lowered the pressure of vessels."],
        "factoid": [f"{drug} inhibited the helicase ZIR3.", f"ZIR3 is inhibited by {drug}."],
        "list": [f"Effects of {drug} were ankle swelling and muscle cramps."],
    }
    exact = {
        "yesno": "yes",
        "factoid": (("helicase ZIR3", "ZIR3"),),
        "list": (("ankle swelling",), ("muscle cramps",)),
    }
    made = [
        replace(
            asked(kind, f"{kind}-{drug}", texts),
            exact_answer=exact[kind],
            ideal_answers=(texts[0],),
        )
        for kind, texts in said.items()
    ]
    texts = [f"{drug} did not lower the resistance of airways."]
    no = asked("yesno", f"no-{drug}", texts)
    return [*made, replace(no, exact_answer="no", ideal_answers=(texts[0],))]


GOLDEN = [(place % 3, one) for place, drug in enumerate(DRUGS) for one in _ask(drug)]


@pytest.fixture(scope="module")
def lessons():
    """The invented questions, read."""
    return [extractive.read_lesson(edition, one, _Unread()) for edition, one in GOLDEN]


def test_what_was_taught_is_answered(lessons):
    fitted = extractive.fit(lessons)
    found = [extractive.answer(one, fitted) for one in lessons if one.question.type == "yesno"]
    assert [one.exact_answer for one in found] == ["yes", "no"] * len(DRUGS)


def test_every_question_is_answered_by_weights_of_other_editions(lessons, monkeypatch):
    taught = []

    def spy(others):
        taught.append({one.edition for one in others})
        return fit(others)

    monkeypatch.setattr(extractive, "fit", spy)
    found = extractive.cross_validate(lessons)
    assert taught == [{1, 2}, {0, 2}, {0, 1}]
    assert [one.id for one in found] == [one.question.id for one in lessons]


def test_a_question_that_shares_a_snippet_with_the_measured_edition_teaches_nothing(
    lessons, monkeypatch
):
    [shared, *_] = [one for one in lessons if one.edition == 1]
    copied = replace(shared, edition=2, question=replace(shared.question, id="copied"))
    taught = []

    def spy(others):
        taught.append({one.question.id for one in others})
        return fit(others)

    monkeypatch.setattr(extractive, "fit", spy)
    extractive.cross_validate([*lessons, copied])
    held_out = dict(zip((0, 1, 2), taught, strict=True))
    assert "copied" in held_out[0]
    assert "copied" not in held_out[1]
    assert shared.question.id not in held_out[2]


def test_yes_and_no_weigh_the_same_however_many_there_are():
    described = [{"a": 1.0}] * 27 + [{"a": -1.0}] * 9
    model = extractive.fit_yes_no(described, [True] * 27 + [False] * 9)
    assert model.bias == pytest.approx(0, abs=0.01)
    assert model.weigh({"a": 1.0}) == pytest.approx(1 - model.weigh({"a": -1.0}), abs=0.01)


def test_golden_sets_are_read_compressed_or_not_with_the_edition_of_their_names(tmp_path):
    texts = [json.dumps({"questions": [one.to_dict()]}) for _, one in GOLDEN[:2]]
    (tmp_path / "9B1_golden.json").write_text(texts[0], encoding="utf-8")
    (tmp_path / "10B2_golden.json.gz").write_bytes(gzip.compress(texts[1].encode()))
    found = {edition: one.id for edition, one in extractive.read_golden(tmp_path)}
    assert found == {9: GOLDEN[0][1].id, 10: GOLDEN[1][1].id}


def test_a_folder_without_golden_sets_is_named(tmp_path):
    with pytest.raises(InputError, match=str(tmp_path)):
        next(extractive.read_golden(tmp_path))


def test_one_edition_alone_cannot_be_measured():
    with pytest.raises(InputError, match="at least two editions"):
        extractive.train([(0, one) for _, one in GOLDEN])


def test_questions_without_a_no_cannot_be_learned_from(lessons):
    with pytest.raises(InputError, match="by no"):
        extractive.fit([one for one in lessons if one.question.exact_answer != "no"])


def test_a_question_without_snippets_teaches_nothing():
    assert extractive.read_lesson(0, replace(GOLDEN[0][1], snippets=()), _Unread()) is None


def test_written_weights_are_read_again_with_what_they_reach(tmp_path):
    parts = extractive.train(GOLDEN)
    extractive.write_weights(tmp_path / "weights.json", parts)
    written = json.loads((tmp_path / "weights.json").read_text("utf-8"))
    assert YesNoModel.of(written["yes_no"]) == YesNoModel.of(parts["yes_no"])
    reached = written["cross_validated"]
    assert reached["questions"] == len(GOLDEN)
    assert set(reached["editions"]) == {"0", "1", "2"}
    assert reached["all"]["yesno_macro_f1"] > 0.9


@pytest.mark.skipif(not SHARED.exists(), reason="the shared data is not here")
def test_golden_sets_have_five_editions():
    assert {edition for edition, _ in extractive.read_golden(SHARED / "bioasq" / "golden")} == set(
        range(7, 12)
    )
