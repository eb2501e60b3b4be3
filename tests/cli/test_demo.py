"""`deepera demo`: the corpus, what is shown, and what a judge is not shown."""

import json
import re

import pytest
from langchain_core.runnables import RunnableLambda
from typer.testing import CliRunner

from deepera_graph import EvidenceReranker, Judgement
from deepera_graph.cli.main import app
from deepera_graph.demo import GOLDEN, N_CANDIDATES, read_corpus, read_questions, run_trials
from support.scripted import Script

pytestmark = pytest.mark.full
LEGEND = ("golden", "look-alike", "score", "outcome")


def oracle(names, score=0.9):
    """A reranker that scores the passages with these ids, by their text, above all others."""
    texts = {one.page_content: one.id for one in read_corpus()}
    shown = []

    def judge(task):
        shown.append(task)
        return Judgement(score=score if texts[task["text"]] in names else 0.1)

    backend = Script({}).backend()
    made = type(backend)(
        name="oracle",
        intent=backend.intent,
        judge=RunnableLambda(judge),
        summarizer=backend.summarizer,
    )
    return EvidenceReranker(made), shown


@pytest.fixture
def question():
    return read_questions()[5]


def test_the_corpus_is_as_large_and_wide_as_promised():
    questions = read_questions()
    assert len(read_corpus()) >= 60
    assert len(questions) >= 8
    assert len({one.science for one in questions}) >= 5


def test_every_label_names_a_passage():
    ids = {one.id for one in read_corpus()}
    for question in read_questions():
        assert question.golden
        assert ids >= {*question.golden, *question.look_alikes}
        assert not {*question.golden} & {*question.look_alikes}


def test_passages_carry_nothing_but_their_title():
    assert {key for one in read_corpus() for key in one.metadata} == {"title"}


@pytest.mark.parametrize("question", read_questions(), ids=lambda one: one.id)
def test_evidence_and_look_alikes_are_among_the_candidates(question):
    reranker, _ = oracle(question.golden)
    (trial,) = run_trials(reranker, [question])
    passages = trial.result.passages
    assert {*question.golden, *question.look_alikes} <= {one.id for one in passages}
    assert len(passages) <= N_CANDIDATES
    assert sorted(one.retrieval_rank for one in passages) == list(range(1, len(passages) + 1))


def test_evidence_first_is_told_from_the_labels(question):
    reranker, _ = oracle(question.golden)
    (right,) = run_trials(reranker, [question])
    reranker, _ = oracle(question.look_alikes)
    (wrong,) = run_trials(reranker, [question])
    assert right.evidence_first
    assert not wrong.evidence_first
    assert right.label(right.result.passages[0]) == GOLDEN
    assert wrong.label(wrong.result.passages[0]).startswith("look-alike (")


def test_a_judge_sees_no_label(question):
    reranker, shown = oracle(question.golden)
    list(run_trials(reranker, [question]))
    assert {tuple(task) for task in shown} == {("question", "intent", "text", "title", "section")}
    assert {task["section"] for task in shown} == {""}


def test_without_evidence_nothing_golden_is_retrieved(question):
    reranker, _ = oracle(question.golden)
    (trial,) = run_trials(reranker, [question], with_evidence=False)
    assert not {*question.golden} & {one.id for one in trial.result.passages}
    assert trial.result.outcome == "no_evidence"
    assert not trial.evidence_first


def test_json_is_a_list_with_one_object_a_question(deepera):
    result = deepera("demo", "--json", "--question", "q02", "--question", "q01")
    assert result.exit_code == 0
    trials = json.loads(result.stdout)
    assert [one["id"] for one in trials] == ["q01", "q02"]
    assert set(trials[0]) >= {
        "question", "golden", "look_alikes", "intent", "outcome", "ranking", "evidence_first",
    }  # fmt: skip
    assert set(trials[0]["ranking"][0]) >= {
        "id", "rank", "score", "kept", "status", "reason", "quote", "summary", "label",
        "retrieval_rank",
    }  # fmt: skip


@pytest.fixture(scope="module")
def whole():
    """What the whole demonstration shows, and the same as JSON."""
    runner = CliRunner(env={"COLUMNS": "80"})
    shown, plain = runner.invoke(app, ["demo"]), runner.invoke(app, ["demo", "--json"])
    assert (shown.exit_code, plain.exit_code) == (0, 0)
    return shown.stdout, json.loads(plain.stdout)


def test_the_closing_lines_are_computed(whole):
    shown, trials = whole
    first = sum(one["evidence_first"] for one in trials)
    before = sum(one["evidence_first_before"] for one in trials)
    assert (
        f"evidence first in {first} of {len(trials)} questions; as retrieved, in {before}" in shown
    )


def test_the_demonstration_closes_with_every_mistake(whole):
    shown, trials = whole
    closing = shown[shown.index("What went wrong:") :] if "What went wrong:" in shown else ""
    lines = [line.split(maxsplit=2) for line in closing.splitlines()[1:]]
    kept = {name: re.findall(r"\bp\d\d\b", rest) for name, what, rest in lines if what == "kept"}
    assert kept == {one["id"]: one["wrongly_kept"] for one in trials if one["wrongly_kept"]}
    missed = {name for name, what, _ in lines if what == "missed"}
    assert missed == {one["id"] for one in trials if one["missed"]}


def test_the_demonstration_fits_a_screen_of_80_columns_and_explains_its_labels(whole):
    shown, trials = whole
    lines = shown.splitlines()
    assert len(lines) <= 50
    assert max(map(len, lines)) <= 80
    assert "…" not in shown, "a title is cut"
    assert [word for word in LEGEND if not any(one.startswith(word) for one in lines)] == []
    assert all(any(line.startswith(one["id"]) for line in lines) for one in trials)


def test_the_reading_is_shown_with_its_meaning_on_request(deepera):
    args = ("demo", "--question", "q01")
    assert "read as" not in deepera(*args).stdout
    assert deepera(*args, "-v").stdout.count("read as") == 2


def test_mistakes_are_what_was_wrongly_kept_and_what_was_missed(question):
    reranker, _ = oracle(question.look_alikes)
    (trial,) = run_trials(reranker, [question])
    assert {one.id for one in trial.wrongly_kept} == {*question.look_alikes}
    assert {one.id for one in trial.missed} == {*question.golden}
    assert trial.mistakes()[-1] == f"missed the evidence {trial.missed[0].id}, score 0.10"
    reranker, _ = oracle(question.golden)
    (trial,) = run_trials(reranker, [question])
    assert trial.mistakes() == []


def test_json_has_the_names_that_rerank_writes(whole):
    _, trials = whole
    assert set(trials[0]) >= {"intent", "outcome", "threshold", "ranking", "usage", "question"}
    assert {"status", "cause", "topic"} <= set(trials[0]["intent"])


def test_the_demonstration_shows_labels_before_and_after(deepera):
    shown = deepera("demo", "--question", "q01", "--threshold", "0.99").stdout
    assert re.search(r"look-alike \([a-z ]+\)", shown)
    for words in (
        "before: as retrieved",
        "after: as evidence",
        "golden",
        "dropped",
    ):
        assert words in shown


def test_all_that_is_kept_has_its_summary_shown(deepera):
    shown = deepera("demo", "--question", "q01", "--threshold", "0.0", "--top-n", "1").stdout
    (trial,) = json.loads(
        deepera("demo", "--question", "q01", "--threshold", "0", "--top-n", "1", "--json").stdout
    )
    summary = trial["ranking"][0]["summary"]
    assert summary
    assert " ".join(summary.split()) in " ".join(shown.split())


def test_without_evidence_the_closing_line_counts_empty_results(deepera):
    result = deepera("demo", "--without-evidence", "--question", "q01", "--threshold", "0.999")
    assert "without evidence: no_evidence in 1 of 1 question" in result.stdout


def test_an_unknown_question_is_an_error(deepera):
    result = deepera("demo", "--question", "q99")
    assert result.exit_code == 2
    assert "unknown question 'q99'; available: q01" in result.stderr
