"""What is kept is evidence, or possible evidence: from the judge to all that users see."""

import asyncio
import csv
import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from deepera_graph import (
    EvidenceReranker,
    RerankResult,
    SettingsError,
    cascade_backend,
    local_backend,
)
from deepera_graph.cli.judging.evidence import show_result
from deepera_graph.cli.judging.rerank_report import describe_report
from deepera_graph.demo import DemoQuestion, Trial
from deepera_graph.export import (
    describe_evidence,
    describe_outcome,
    describe_result,
    export_result,
)
from deepera_graph.jobs.lines import count_question
from deepera_graph.jobs.report import JobReport
from deepera_graph.judges.base import as_judge, counting_judge
from deepera_graph.judges.trained.backend import Weights
from deepera_graph.schema import Answer
from deepera_graph.serve.page import draw_line
from deepera_graph.testing import ScriptedRole, judged, scripted_backend
from support.list_judges import ListJudge, list_backend

QUESTION = "Does wax keep apples firm?"
SCORES = {
    "Wax kept apples firm.": (0.9, "supports"),
    "Wax may keep apples firm.": (0.5, "contradicts"),
    "Apples were stored.": (0.1, None),
}
BANDS = ["evidence", "possible", None]


class Unsure(ListJudge):
    operating_point, evidence_point = 0.3, 0.6


def play(batch):
    found = ((one["text"], *SCORES[one["text"]]) for one in batch["windows"])
    return [judged(score, quote=text, direction=side) for text, score, side in found]


def unsure(*, answerer=None):
    judge = Unsure(play)
    return replace(list_backend(), judge=judge, **({"answerer": answerer} if answerer else {}))


def rerank(texts=SCORES, **settings):
    return EvidenceReranker(unsure(), **settings).rerank(QUESTION, list(texts))


@pytest.mark.full
def test_a_run_over_a_file_counts_questions_with_evidence_and_those_with_possible_evidence():
    report = JobReport()
    for texts in (SCORES, [*SCORES][1:], [*SCORES][2:]):
        report.add(count_question(rerank(texts)))
    assert report.to_dict()["questions"] == {"evidence": 1, "possible": 1}
    said = "evidence for 1 of 3 questions, possible evidence for 1, 1 no_evidence;"
    assert said in describe_report(report)
    older = count_question(rerank([*SCORES][1:]))
    del older["n_evidence"]  # of a journal that had no bands
    report.add(older)
    assert report.to_dict()["questions"] == {"evidence": 2, "possible": 1}


def test_the_closing_line_counts_no_question_twice():
    found, none = (count_question(rerank(texts)) for texts in (SCORES, [*SCORES][2:]))
    report = JobReport()
    for stats in (found, {**found, "outcome": "degraded"}, none, {**none, "outcome": "degraded"}):
        report.add(stats)
    said = "evidence for 2 of 4 questions (1 degraded among them), 1 degraded, 1 no_evidence;"
    assert said in describe_report(report)


@pytest.fixture(scope="module")
def result():
    return rerank()


@pytest.fixture(scope="module")
def weak():
    return rerank([*SCORES][1:], answer=True)


def test_what_is_kept_below_the_evidence_point_is_possible(result):
    assert [one.band for one in result.passages] == BANDS
    assert (len(result.kept), len(result.evidence), len(result.possible)) == (2, 1, 1)
    assert (result.outcome, result.threshold, result.evidence_point) == ("ok", 0.3, 0.6)


def test_sync_and_async_name_the_same_bands(result):
    other = asyncio.run(EvidenceReranker(unsure()).arerank(QUESTION, list(SCORES)))
    assert [one.band for one in other.passages] == [one.band for one in result.passages]


def test_above_a_threshold_beyond_the_evidence_point_all_is_evidence():
    assert {one.band for one in rerank(threshold=0.7).kept} == {"evidence"}


def test_of_a_judge_without_an_evidence_point_all_that_is_kept_is_evidence():
    backend = scripted_backend({text: score for text, (score, _) in SCORES.items()})
    found = EvidenceReranker(backend, threshold=0.3).rerank(QUESTION, list(SCORES))
    assert [one.band for one in found.passages] == ["evidence", "evidence", None]
    assert "possible" not in describe_outcome(found) + describe_evidence(found)


def test_what_on_empty_puts_back_is_in_no_band():
    found = rerank(on_empty="top1", threshold=0.95)
    assert (len(found.kept), found.kept[0].band, found.direction_counts) == (1, None, {})


def test_a_passage_whose_summary_finds_nothing_is_in_no_band():
    backend = replace(unsure(), summarizer=ScriptedRole(lambda task: {"text": ""}))
    found = EvidenceReranker(backend).rerank(QUESTION, list(SCORES))
    assert {(one.kept, one.band) for one in found.passages} == {(False, None)}


@pytest.mark.parametrize("point", [60, -0.1, "0.5"])
def test_an_evidence_point_that_is_no_share_is_refused_at_once(point):
    backend = unsure()
    backend.judge.evidence_point = point
    with pytest.raises(SettingsError, match="evidence_point of the judge must be "):
        EvidenceReranker(backend)


def test_judges_around_others_have_their_evidence_point():
    strict = scripted_backend({})
    assert as_judge(cascade_backend(strict, unsure()).judge).evidence_point == 0.6
    assert as_judge(cascade_backend(unsure(), strict).judge).evidence_point is None
    assert counting_judge(unsure().judge).evidence_point == 0.6
    role = ScriptedRole(lambda task: judged(0.4))
    role.evidence_point = 0.7
    assert as_judge(role).evidence_point == 0.7


def test_the_trained_judge_has_the_evidence_point_of_its_weights(tmp_path):
    head = tmp_path / "head.json"
    head.write_text('{"evidence_point":0.62,"operating_point":0.3}', encoding="utf-8")
    assert Weights(str(tmp_path)).evidence_point() == 0.62
    head.write_text('{"operating_point":0.3}', encoding="utf-8")
    assert Weights(str(tmp_path)).evidence_point() is None
    assert as_judge(local_backend().judge).evidence_point == Weights().evidence_point()


def test_directions_are_counted_of_the_evidence_alone(result):
    assert result.direction_counts == {"supports": 1}


def test_an_answer_is_made_of_the_evidence_alone():
    backend = unsure(answerer=local_backend("rules").answerer)
    found = EvidenceReranker(backend, answer=True).rerank(QUESTION, list(SCORES))
    assert found.answer["citations"] == ["1"]
    assert "may keep" not in found.answer["text"]


def test_with_possible_evidence_alone_the_answer_abstains_and_says_so(weak):
    assert weak.answer["status"] == "insufficient_evidence"
    assert weak.answer["cause"] == "only possible evidence was kept"
    assert (weak.outcome, weak.direction_counts) == ("ok", {})


def test_a_result_is_written_down_with_its_bands_and_an_older_one_is_read(result):
    assert RerankResult.from_json(result.to_json()) == result
    plain = result.to_dict()
    del plain["evidence_point"]
    for one in plain["passages"]:
        del one["band"]
    old = RerankResult.from_dict(plain)
    assert [one.band for one in old.passages] == ["evidence", "evidence", None]
    assert old.evidence_point is None


def test_documents_and_events_have_the_band(result):
    bands = [one.metadata["deepera"]["band"] for one in result.to_documents()]
    assert bands == ["evidence", "possible"]
    events = EvidenceReranker(unsure()).stream(QUESTION, list(SCORES))
    assert [one["possible"] for one in events if one["event"] == "selected"] == [["2"]]


def test_every_table_calls_it_possible(result):
    rows = csv.DictReader(io.StringIO(export_result(result, "csv", whole=True)))
    assert [one["decision"] for one in rows] == ["evidence", "possible", "below the threshold"]
    assert "| possible, contradicts |" in export_result(result, "markdown")
    assert "possible, score 0.50: " in export_result(result, "bibtex")
    assert "possible, score 0.50: " in export_result(result, "ris")
    assert "0.50<br>possible<br>contradicts" in result._repr_html_()
    assert '<li class="card is-kept is-possible">' in export_result(result, "html")
    plain = json.loads(export_result(result, "json"))
    assert ([one["band"] for one in plain["ranking"]], plain["evidence_point"]) == (BANDS, 0.6)
    assert [one.get("band") for one in describe_result(result)["ranking"]] == BANDS


def test_the_outcome_tells_how_much_is_possible(result, weak):
    said = "Evidence: 1 of 3 passages (1 supports); 1 more is possible, reaching 0.3."
    assert describe_outcome(result) == said
    assert describe_outcome(weak) == "No evidence: 1 of 2 passages is possible, reaching 0.3."


def test_an_agent_is_told_what_is_possible(result, weak):
    head, first, second = describe_evidence(result).splitlines()
    assert head == (
        "1 of 3 passages gives direct evidence (threshold 0.30; 1 supports); "
        "1 more is possible evidence:"
    )
    assert "score 0.90, supports)" in first
    assert "score 0.50, possible, contradicts)" in second
    assert describe_evidence(weak).splitlines()[0] == (
        "No passage gives direct evidence (threshold 0.30). "
        "1 of 2 is possible evidence, not certain:"
    )


def test_the_screen_has_the_evidence_first_and_then_what_is_possible():
    texts = ["Wax may keep apples firm.", "Wax kept apples firm."]
    out = io.StringIO()
    show_result(Console(file=out, width=200), rerank(texts, order="retrieval"))
    shown = out.getvalue()
    places = [shown.index(one) for one in ("0.90 supports", "Possible: may be", "0.50 possible")]
    assert places == sorted(places)
    assert "2 kept (1 evidence, 1 possible)" in shown


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ([*SCORES], "cited: 1; 1 more study is possible, not counted: 2\n"),
        ([*SCORES][:1], "cited: 1\n"),
    ],
)
def test_beside_an_answer_it_is_told_what_is_possible(texts, said):
    out = io.StringIO()
    show_result(Console(file=out, width=200), rerank(texts, answer=True))
    assert said in out.getvalue()


def test_beside_an_answer_it_is_told_what_evidence_is_not_in_it():
    out = io.StringIO()
    second = "Wax did not keep apples firm."
    sides = {second: (0.8, "contradicts"), **SCORES}
    judge = Unsure(lambda batch: [
        judged(score, quote=one["text"], direction=side)
        for one in batch["windows"] for score, side in (sides[one["text"]],)
    ])  # fmt: skip
    answerer = ScriptedRole(lambda task: Answer(text="Firm [1].", citations=[]))
    backend = replace(list_backend(), judge=judge, answerer=answerer)
    result = EvidenceReranker(backend, answer=True).rerank(QUESTION, list(sides))
    [uncited] = result.answer["uncited"]
    assert (uncited["direction"], uncited["cause"]) == ("contradicts", "")
    show_result(Console(file=out, width=200), result)
    told = "1 more study is evidence, not cited: 2 (contradicts)"
    assert f"cited: 1; {told}; 1 more study is possible" in out.getvalue()
    assert told in export_result(result, "markdown")
    assert told in export_result(result, "html")
    assert RerankResult.from_json(export_result(result, "json")).answer["uncited"] == [uncited]
    assert told not in export_result(draw_line(result, 0.85), "markdown")


def test_another_threshold_on_the_page_names_the_bands_anew(result):
    lower = draw_line(result, 0.05)
    assert [one.band for one in lower.passages] == ["evidence", "possible", "possible"]
    assert [one.band for one in draw_line(result, 0.55).passages] == ["evidence", None, None]


def test_the_demonstration_says_that_a_mistake_is_only_possible(result):
    asked = DemoQuestion(id="q", science="s", question=QUESTION, golden=("1",), look_alikes={})
    trial = Trial(question=asked, result=result)
    assert trial.mistakes() == ["kept 2, no evidence, score 0.50, possible"]
    assert [one.get("band") for one in trial.to_dict()["ranking"]] == BANDS


class Misses(Unsure):
    def missing_words(self, question, windows):
        return ["firm"]


def test_where_a_word_of_the_question_is_missing_nothing_is_evidence():
    backend = replace(list_backend(), judge=Misses(play))
    found = EvidenceReranker(backend).rerank(QUESTION, list(SCORES))
    assert [one.band for one in found.passages] == ["possible", "possible", None]
    assert {one.direction for one in found.passages} == {None}
    assert found.warnings == (
        'no passage names "firm", nor anything like it, which the question is about: what is kept '
        "is possible evidence at most",
    )
    assert RerankResult.from_json(found.to_json()).missing_words == ("firm",)
    assert describe_result(found)["missing_words"] == ["firm"]
    assert {one.band for one in draw_line(found, 0.05).kept} == {"possible"}
    careful = as_judge(cascade_backend(scripted_backend({}), backend).judge)
    assert careful.missing_words(QUESTION, []) == ["firm"]
