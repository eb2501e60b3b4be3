"""`deepera-lab bench natural` and `deepera-lab bench realism`."""

import json

import pytest

pytestmark = pytest.mark.full

ENTRY = {
    "QUESTION": "Do trout grow in warm lakes?",
    "CONTEXTS": ["Trout like cold water.", "We weighed 90 trout in {n} lakes.", "{n} trout grew."],
    "LABELS": ["BACKGROUND", "METHODS", "RESULTS"],
    "LONG_ANSWER": "Trout grow in warm lakes.",
    "final_decision": "yes",
}


@pytest.fixture
def pubmedqa(tmp_path):
    entries = {
        str(n): {**ENTRY, "CONTEXTS": [one.format(n=n) for one in ENTRY["CONTEXTS"]]}
        for n in range(8)
    }
    entries["bare"] = {**ENTRY, "LABELS": ["A", "B", "C"]}
    path = tmp_path / "trout.json"
    path.write_text(json.dumps(entries))
    return path


@pytest.fixture
def natural(deepera_lab, pubmedqa, tmp_path):
    def run(*args):
        return deepera_lab("bench", "natural", pubmedqa, "--out", tmp_path / "made.jsonl", *args)

    return run


def test_natural_makes_a_data_set_and_says_what_it_left_out(natural, deepera_lab, tmp_path):
    result = natural("--candidates", "6")
    assert result.exit_code == 0, result.output
    assert "8 questions with 16 look-alikes of 2 types; 1 left out" in result.stdout
    assert "1 because no section is known to answer" in result.stdout
    table = deepera_lab(
        "bench", "table", tmp_path / "made.jsonl", "--rankers", "bm25", "--resamples", "50"
    )
    assert "8 questions, 6.0 candidates each (2.0 labelled distractors)" in table.stdout


def test_natural_tells_programs_in_json(natural):
    plain = json.loads(natural("--json").stdout)
    assert plain["questions"] == 8
    assert plain["types"] == {"background": 8, "methods": 8}
    assert plain["left_out"] == {"bare": "no section is known to answer"}


def test_natural_replaces_nothing_unasked(natural):
    assert natural("--quiet").output == ""
    again = natural()
    assert (again.exit_code, "exists; give --overwrite" in again.stderr) == (2, True)
    assert natural("--overwrite").exit_code == 0


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("none.json", None, "no such file or folder"),
        ("empty.json", "", "not JSON"),
        ("list.json", "[]", "must be a JSON object"),
        ("bare.json", json.dumps({"1": {**ENTRY, "LABELS": ["A", "B", "C"]}}), "no question of"),
        ("papers.jsonl", '{"id": "1", "text": "Ice."}\n', "holds no questions"),
    ],
)
def test_what_cannot_be_used_is_one_line(deepera_lab, tmp_path, name, content, problem):
    if content is not None:
        (tmp_path / name).write_text(content)
    result = deepera_lab("bench", "natural", tmp_path / name, "--out", tmp_path / "out.jsonl")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert problem in result.stderr
    assert not list(tmp_path.glob("out.jsonl*"))


def test_natural_needs_a_folder_that_is_there(deepera_lab, pubmedqa, tmp_path):
    result = deepera_lab("bench", "natural", pubmedqa, "--out", tmp_path / "no" / "out.jsonl")
    assert (result.exit_code, "no such folder" in result.stderr) == (2, True)


@pytest.fixture
def realism(deepera_lab, questions):
    """Eight pools with two passages that say what they are."""
    words = ("cold", "deep", "clear", "still", "wide", "green", "salty", "warm")
    pools = [
        [
            {"id": "g", "text": f"Trout grew in {one} lakes.", "is_golden": True},
            *(
                {"id": f"d{n}", "text": f"Deceptive: pike like {one} lakes.", "is_distractor": True}
                for n in range(2)
            ),
            *({"id": f"c{n}", "text": f"Perch like {one} lakes, {n} of them."} for n in range(9)),
        ]
        for one in words
    ]
    data = questions(
        *({"id": f"q{n}", "question": "Who grew?", "contexts": one} for n, one in enumerate(pools)),
        name="made.jsonl",
    )

    def run(*args):
        return deepera_lab("bench", "realism", data, *args)

    return run


def test_realism_says_what_tells_distractors_apart(realism):
    result = realism()
    assert result.exit_code == 0, result.output
    assert "- made: **flagged**: " in result.stdout


def test_realism_writes_its_report(realism, tmp_path):
    out = tmp_path / "report"
    assert realism("--out", out, "--quiet").output == ""
    written = {one.name for one in out.iterdir()}
    assert {"realism.md", "families.csv", "similarity.csv", "manifest.json"} <= written
    text = (out / "realism.md").read_text()
    assert "in the pools of 8 questions." in text
    assert "exists; give --overwrite" in realism("--out", out).stderr
    found = json.loads(realism("--out", out, "--overwrite", "--json").stdout)
    assert found["findings"][0] in text


def test_realism_can_fail_a_build(realism):
    assert realism("--strict").exit_code == 1


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (("--types", "misleading"), "has no distractor of type 'misleading'; it has 'no type'"),
        (("--types", "a,,b"), "--types must be names with commas between them"),
        (("nowhere.jsonl",), "is not a data set"),
    ],
)
def test_realism_names_what_is_wrong_in_one_line(realism, args, problem):
    result = realism(*args)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert problem in result.stderr
