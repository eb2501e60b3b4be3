"""Reports: no sentence is shown that was not checked, whoever writes."""

import json
import re
from dataclasses import replace
from random import Random

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda

from deepera_graph import (
    EvidenceReranker,
    EvidenceTabulator,
    Judgement,
    ManuscriptCheck,
    ReportWriter,
    export_report,
)
from deepera_graph.errors import SettingsError
from deepera_graph.evidence.report.report import EvidenceReport
from deepera_graph.evidence.report.roles import (
    Draft,
    Outline,
    Paragraph,
    ReportRoles,
    StudyGroup,
    report_roles,
)
from deepera_graph.stores.judgements import JudgementCache
from support.injections import INJECTIONS, ORDER
from support.scripted import Script, ScriptedAgentModel

pytestmark = pytest.mark.full

QUESTION = "Does green tea lower fasting glucose?"
TEXTS = {
    "a": "We randomised 210 adults. Green tea lowered fasting glucose by 4% in adults. Sleep was "
    "the same in both groups.",
    "b": "Green tea lowered fasting glucose in 48 office workers. The trial lasted six weeks.",
    "c": "Green tea made no difference to fasting glucose in 96 runners. Weight fell in nobody.",
    "d": "Green tea lowered fasting glucose in 31 nurses. RETRACTED data.",
}
SIDES = {"a": "supports", "b": "supports", "c": "no_difference", "d": "supports"}
INVENTED = "Moss cured gout in every dragon"  # in no text
GONE = "RETRACTED: "
FORMS = ("text", "markdown", "html", "json")


def passages(names="abc", **more):
    about = {"a": {"year": 2019}, "b": {"year": 2022, "doi": "10.1101/2022.01.01.000001"}}
    return [
        Document(
            id=name,
            page_content=TEXTS[name] + more.get(name, ""),
            metadata={
                "title": f"{'RETRACTED: ' * (name == 'd')}Study {name}",
                **about.get(name, {}),
            },
        )
        for name in names
    ]


def judge(task):
    """Answer the question by its studies, and a statement by whether a text has its words."""
    statement = task["question"].partition("condition: ")[2].rstrip(".")
    text = task["text"]
    name = next((one for one, known in TEXTS.items() if known in text), "")
    if not statement:
        return Judgement(score=0.9, direction=SIDES.get(name), quote=text.split(". ")[1][:40])
    if statement in text:
        return Judgement(score=0.95, direction="supports", quote=statement)
    return Judgement(score=0.1, direction="unclear")


def reranker(judged=judge, **settings):
    backend = replace(Script({}).backend(spec={"kind": "test"}), judge=RunnableLambda(judged))
    return EvidenceReranker(backend, threshold=0.8, **settings)


def one_group(task):
    numbers = [one["number"] for one in task["studies"]]
    return Outline(groups=[StudyGroup(point="glucose", studies=numbers)])


def true_sentences(task):
    return [
        Draft(text=f"{part.rstrip('.')}.", studies=[one["number"]])
        for one in task["studies"]
        for part in one["texts"][0].split(". ")
    ]


def roles(writer, reviser=lambda task: Paragraph(sentences=[]), outliner=one_group):
    made = (RunnableLambda(one) for one in (outliner, writer, reviser))
    names = ("outliner", "writer", "reviser")
    return ReportRoles(
        name="scripted", spec={"kind": "test"}, **dict(zip(names, made, strict=True))
    )


def said(*drafts):
    return lambda task: Paragraph(sentences=[Draft(text=t, studies=n) for t, n in drafts])


def write(model=None, names="abc", **more):
    return ReportWriter(reranker(), model=model).write(QUESTION, passages(names, **more))


class Inventor:
    """Writes what is so, and in one sentence of five what is not, in ways that differ."""

    def __init__(self, seed):
        self.chance, self.true, self.n_drafts = Random(seed), [], 0

    def write(self, task):
        drafts = []
        for one in self.chance.sample(true_sentences(task), 3):
            self.n_drafts += 1
            if self.chance.random() < 0.2:
                drafts.append(self.invent(one, task))
            else:
                self.true.append(one)
                drafts.append(one)
        return Paragraph(sentences=drafts)

    def invent(self, one, task):
        other = next(n["number"] for n in task["studies"] if n["number"] not in one.studies)
        kind = self.chance.randrange(7)
        self.n_drafts += kind == 3
        self.true += [one] * (kind == 3)
        return (
            Draft(text=f"{INVENTED}.", studies=one.studies),
            Draft(text=f"{INVENTED}.", studies=[]),
            Draft(text=one.text, studies=[99]),
            Draft(text=f"{one.text} {INVENTED}.", studies=one.studies),
            Draft(text=f"{one.text[:-1]}, and {INVENTED} [{other}].", studies=one.studies),
            Draft(text=one.text, studies=[*one.studies, other]),
            Draft(text=f"In 977 people {one.text}", studies=one.studies),
        )[kind]

    def revise(self, task):
        kinds = ([], [Draft(text=f"{INVENTED} 2.", studies=[1])], true_sentences(task)[:1])
        return Paragraph(sentences=self.chance.choice(kinds))


def work_of(study):
    return TEXTS[re.search(r"Study (\w)", study.source)[1]]


def remember_verdicts(verifier, known):
    """Have equal pairs judged once, for speed."""
    verify = verifier.verify

    def look_up(said, work):
        if (said, work.study) not in known:
            known[said, work.study] = yield from verify(said, work)
        return known[said, work.study]

    verifier.verify = look_up


@pytest.mark.parametrize("n", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_no_invented_sentence_is_shown_and_every_true_one_is(n):
    judged, known = reranker().rerank(QUESTION, passages()), {}
    n_left_out = n_rewritten = 0
    for seed in range(n):
        inventor = Inventor(seed)
        writer = ReportWriter(reranker(), model=roles(inventor.write, inventor.revise))
        remember_verdicts(writer.verifier, known)
        report = writer.write_from(judged)
        n_left_out, n_rewritten = (
            n_left_out + len(report.left_out),
            n_rewritten + report.n_rewritten,
        )
        works = {one.number: work_of(one) for one in report.studies}
        for one in report.sentences:
            assert all(one.text.rstrip(".") in works[number] for number in one.studies), seed
        shown = [(one.text, list(one.studies)) for one in report.sentences]
        missing = [one for one in inventor.true if (one.text, one.studies) not in shown]
        assert missing == [], seed
        assert len(shown) + len(report.left_out) == inventor.n_drafts, seed
        assert [form for form in FORMS if "gout" in export_report(report, form)] == [], seed
    assert min(n_left_out, n_rewritten) > n / 5


def test_a_sentence_that_fails_is_written_anew_once_with_what_was_found():
    told = []

    def revise(task):
        told.append((task["sentence"], task["cited"], task["reasons"], len(told)))
        return said(("Green tea lowered fasting glucose in 48 office workers.", [2]))(task)

    wrong = "Green tea lowered fasting glucose in 480 office workers."
    report = write(roles(said((wrong, [2])), revise))
    assert [one.text for one in report.sentences] == [TEXTS["b"].split(" The")[0]]
    assert told == [(wrong, [2], ["[2]: not in what was read: 480"], 0)]
    assert (report.n_rewritten, report.left_out) == (1, ())
    again = write(roles(said((wrong, [2])), said((wrong, [2]))))
    assert (again.sentences, again.left_out) == ((), ("[2]: not in what was read: 480",))


def test_every_study_that_a_sentence_cites_has_to_say_it():
    both = ("Green tea lowered fasting glucose", [1, 2])
    all_three = ("Green tea lowered fasting glucose", [1, 2, 3])
    assert [one.studies for one in write(roles(said(both))).sentences] == [(1, 2)]
    assert write(roles(said(all_three))).left_out == ("[3]: not found",)


def test_paragraphs_are_headed_by_what_the_studies_say_and_not_by_the_model():
    groups = [StudyGroup(point=INVENTED, studies=[3, 1, 77]), StudyGroup(point="", studies=[])]
    report = write(roles(lambda task: Paragraph(sentences=true_sentences(task)),
                         outliner=lambda task: Outline(groups=groups)))  # fmt: skip
    heads = [(one.heading, one.lead) for one in report.paragraphs]
    assert heads == [
        ("Where studies disagree", "1 supports [1], 1 no difference [3]."),
        ("Support: one study", ""),  # that no group had
    ]
    assert {number for one in report.sentences for number in one.studies} == {1, 2, 3}


def test_retracted_studies_count_for_nothing_and_preprints_are_marked():
    report = write(names="abcd")
    assert report.overview == (
        "3 studies are evidence: 2 support [1, 2], 1 no difference [3].",
        "They do not agree.",
        "Published 2019 to 2022.",
        "Preprint: [2].",
        "1 study is retracted, and counted for nothing [4].",
    )
    assert "PREPRINT" in report.studies[1].source.upper()
    assert 4 not in {number for one in report.sentences for number in one.studies}
    shown = []
    model = roles(lambda task: shown.append(task) or Paragraph(sentences=true_sentences(task)))
    write(model, names="abcd")
    assert "RETRACTED" not in str(shown)


def test_without_a_model_every_sentence_is_a_quote_under_what_it_says():
    report = write()
    assert [(one.heading, len(one.sentences)) for one in report.paragraphs] == [
        ("Support: 2 studies agree", 2), ("No difference: one study", 1),
    ]  # fmt: skip
    for one in report.sentences:
        assert one.by == "quote"
        assert one.text.strip("“”") in work_of(report.studies[one.studies[0] - 1])
    assert report.usage.keys() == {"intent", "score", "summarize"}
    assert report.gaps[:3] == (
        "No difference was found by 1 of 3 [3].",
        "Design: randomised trial [1], not stated [2, 3].",
        "Size: 210 [1], 48 [2], 96 [3].",
    )


@pytest.mark.parametrize(("names", "n"), [("", 0), ("a", 1)])
def test_no_study_and_one_study_say_so(names, n):
    model = roles(lambda task: Paragraph(sentences=true_sentences(task)))
    for report in (write(names=names), write(model, names=names)):
        assert len(report.studies) == n
        assert (report.overview[0] == "No study was judged to be evidence for this question.") == (
            n == 0
        )
        assert ("All rests on one study." in report.gaps) == (n == 1)
        assert all(export_report(report, form) for form in FORMS)


def test_what_is_below_the_point_of_evidence_is_possible_and_not_counted():
    lowest = EvidenceReranker("local", content="passage", threshold=0.0, top_n=100)
    report = ReportWriter(lowest).write(QUESTION, passages())
    assert {one.band for one in report.studies} >= {"possible"}
    heads = [one.heading for one in report.paragraphs]
    assert heads == sorted(heads, key=lambda one: one.startswith("Possible evidence, not counted"))
    assert "possible evidence, and not counted" in " ".join(report.overview)


def fail(task):
    raise TimeoutError("no answer in 60 s")


@pytest.mark.parametrize(
    ("outliner", "writer", "problem"),
    [
        (fail, fail, "outline: TimeoutError: no answer in 60 s"),
        (lambda task: {"groups": "x"}, lambda task: "garbage", "outline: unusable answer"),
        (one_group, lambda task: Paragraph(sentences=[]), "paragraph on [1, 2, 3]: nothing was"),
        (one_group, said(("", [1]), ("[1] [2]", [1])), "paragraph on [1, 2, 3]: nothing was"),
    ],
)
def test_where_the_writer_fails_the_studies_are_quoted(outliner, writer, problem):
    report = write(roles(writer, outliner=outliner))
    assert {one.by for one in report.sentences} == {"quote"}
    assert {one.studies[0] for one in report.sentences} == {1, 2, 3}
    assert report.problems[0].startswith(problem)
    assert "Not as planned" in export_report(report, "text")


def test_what_cannot_be_checked_is_left_out():
    def broken(task):
        return fail(task) if "condition: " in task["question"] else judge(task)

    writer = ReportWriter(
        reranker(broken), model=roles(said(("Green tea lowered fasting glucose", [1])), fail)
    )
    report = writer.write(QUESTION, passages())
    assert report.sentences == ()
    assert "not judged" in report.left_out[0]
    assert report.problems == ("rewriting a sentence: TimeoutError: no answer in 60 s",)


def test_a_budget_holds_for_judging_and_writing_together():
    model = roles(lambda task: Paragraph(sentences=true_sentences(task)))
    writer = ReportWriter(reranker(budget={"max_calls": 9}), model=model)
    report = writer.write(QUESTION, passages())
    assert report.total_usage.calls <= 9
    assert any("budget" in one for one in (*report.problems, *report.left_out))


async def test_async_gives_the_same():
    model = roles(lambda task: Paragraph(sentences=true_sentences(task)))
    again = await ReportWriter(reranker(), model=model).awrite(QUESTION, passages())
    assert replace(again, seconds=0) == replace(write(model), seconds=0)


def test_a_report_survives_json():
    report = write(roles(lambda task: Paragraph(sentences=true_sentences(task))))
    assert EvidenceReport.from_dict(json.loads(export_report(report, "json"))) == report
    with pytest.raises(ValueError, match="format must be 1, got 2"):
        EvidenceReport.from_dict({"format": 2})
    with pytest.raises(SettingsError, match=r"got 'htm'.*did you mean 'html'"):
        export_report(report, "htm")


def test_what_was_written_is_kept_so_that_a_run_that_was_cut_short_goes_on(tmp_path):
    calls, found = [], reranker().rerank(QUESTION, passages())

    def paragraph(task):
        calls.append("write")
        return Paragraph(sentences=true_sentences(task))

    with JudgementCache(tmp_path / "kept.sqlite") as cache:
        for _ in range(2):
            report = ReportWriter(reranker(), model=roles(paragraph), cache=cache).write_from(found)
    assert calls == ["write"]
    assert report.usage["write"].cached_calls == 1


REPLIES = {
    "outliner": {"groups": [{"point": "x", "studies": [1]}]},
    "writer": {"sentences": [{"text": "Moss grew.", "studies": [1]}]},
    "reviser": {"text": "Moss grew.", "studies": [1]},
}


@pytest.mark.parametrize("name", INJECTIONS)
def test_an_order_in_a_passage_stays_between_the_marks_of_the_studies(name):
    studies = [{"number": 1, "title": INJECTIONS[name], "says": "", "texts": [INJECTIONS[name]]}]
    beside = {"point": "moss", "sentence": "Moss grew.", "cited": [1], "reasons": ["not found"]}
    for role, reply in REPLIES.items():
        model = ScriptedAgentModel(replies=[AIMessage(json.dumps(reply))] * 4)
        task = {"question": QUESTION, "studies": studies, **beside}
        getattr(report_roles(model), role).invoke(task)
        system, user = (str(one.content) for one in model.shown[0])
        [before, inside, after] = re.split(r"^=====studies-[0-9a-f]{8}=====$", user, flags=re.M)
        assert ORDER not in f"{system}{before}{after}"
        assert inside.count("\n") == 4


@pytest.mark.parametrize("make", [ReportWriter, EvidenceTabulator, ManuscriptCheck])
@pytest.mark.parametrize("given", ["rules", 0, []])
def test_a_reranker_that_is_none_is_named(make, given):
    with pytest.raises(SettingsError, match="reranker must be an EvidenceReranker"):
        make(given)
