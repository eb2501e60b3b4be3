"""Checking: with a chat model, async, resumed, from sources; and the forms of the report."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableLambda

from deepera_graph import (
    EvidenceReranker,
    Judgement,
    ManuscriptCheck,
    Quantile,
    WorkLibrary,
    export_check,
    llm_backend,
    read_passages,
)
from deepera_graph.agents.journal import Journal
from deepera_graph.evidence.check.report import CheckReport
from deepera_graph.evidence.check.verdict import ClaimVerifier
from deepera_graph.literature.same_study import read_retractions
from deepera_graph.papers.sources import open_sources
from deepera_graph.prompts import read_rules
from deepera_graph.testing import ScriptedChat
from support.literature import TRIAL, Literature
from support.manuscripts import LIBRARY, PLANTED, write_manuscript
from support.scripted import Script

pytestmark = pytest.mark.full

TEXT = "Wax coating kept apples firm. Night cooling did nothing to pears."


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    return write_manuscript(PLANTED[1], tmp_path_factory.mktemp("one"))


@pytest.fixture(scope="module")
def report(planted):
    return ManuscriptCheck(library=WorkLibrary(read_passages(LIBRARY))).check(planted)


def write_claim(folder: Path, sentence="Wax coating keeps apples firm [1].") -> Path:
    path = folder / "a.md"
    path.write_text(
        f"# On\n\n{sentence}\n\n# References\n\n1. Lund A. Wax on stored apples. 2018.\n"
    )
    return path


def library(text=TEXT, **metadata):
    about = {"title": "Wax on stored apples", **metadata}
    return WorkLibrary([Document(id="w", page_content=text, metadata=about)])


def chat_judge(judge):
    """A reranker whose judge says of itself that it asks a model."""
    role = RunnableLambda(judge)
    backend = Script({}).backend()
    return EvidenceReranker(
        type(backend)(**{**vars(backend), "judge": role}), content="passage", threshold=0.8
    )


@pytest.mark.parametrize(
    ("score", "direction", "quote", "verdict"),
    [
        (0.9, "supports", "Wax coating kept apples firm.", "supported"),
        (0.9, "contradicts", "Wax coating kept apples firm.", "contradicted"),
        (0.9, "no_difference", "Wax coating kept apples firm.", "contradicted"),
        (0.9, "mixed", "Wax coating kept apples firm.", "partly"),
        (0.9, "supports", "Wax made apples into gold.", "not_found"),
        (0.2, None, "", "not_found"),
        (0.6, "supports", "Wax coating kept apples firm.", "partly"),
        (0.6, "mixed", "Wax coating kept apples firm.", "partly"),
        (0.6, "unclear", "Wax coating kept apples firm.", "not_found"),
        (0.6, "supports", "Wax made apples into gold.", "not_found"),
    ],
)
def test_a_chat_model_decides_by_direction_and_a_quote_that_is_there(
    tmp_path, score, direction, quote, verdict
):
    judge = chat_judge(lambda task: Judgement(score=score, direction=direction, quote=quote))
    found = ManuscriptCheck(judge, library=library()).check(write_claim(tmp_path))
    assert [one.verdict for one in found.pairs] == [verdict]
    assert found.pairs[0].quote in TEXT or verdict == "not_found"
    assert found.pairs[0].notes or verdict != "partly"


def test_a_denied_irregular_verb_is_contradicted_without_a_model(tmp_path):
    claim = write_claim(tmp_path, "Wax coating did not keep apples firm [1].")
    [pair] = ManuscriptCheck(library=library()).check(claim).pairs
    assert pair.verdict == "contradicted"
    assert pair.notes == ("turned: “not keep”, where the passage has kept",)


@pytest.mark.parametrize(
    ("threshold", "counts"), [(0.1, 0.8), (0.9, 0.9), (1, 1), (Quantile(share=0.5, floor=0.2), 0.8)]
)
def test_a_low_threshold_or_a_rule_of_a_pool_supports_no_claim(threshold, counts):
    reranker = chat_judge(lambda task: Judgement(score=0.3, direction="supports"))
    verifier = ClaimVerifier(reranker.with_settings(threshold=threshold))
    assert verifier.reranker.effective_settings.threshold == counts


def test_a_chat_model_is_not_asked_to_read_a_claim(tmp_path):
    asked = []
    judge = chat_judge(lambda task: asked.append(task) or Judgement(score=0.1)).backend
    reader = RunnableLambda(asked.append)
    reranker = EvidenceReranker(type(judge)(**{**vars(judge), "intent": reader}))
    checker = ManuscriptCheck(reranker, library=library())
    report = checker.check(write_claim(tmp_path))
    assert (len(asked), report.usage.calls) == (1, 1)
    assert checker.estimate(write_claim(tmp_path)).total_usage.calls == 2  # and another study


@pytest.mark.parametrize("mode", ["separate", "fused", "grouped"])
def test_a_chat_model_is_told_what_counts_for_a_statement(mode, tmp_path):
    asked = []

    class Listening(ScriptedChat):
        def _generate(self, messages, *rest, **options):
            asked.append(messages[0].text)
            return super()._generate(messages, *rest, **options)

    backend = llm_backend(Listening(scores={}), domain="medicine", mode=mode)
    reranker = EvidenceReranker(backend)
    checker = ManuscriptCheck(reranker, library=library())
    checker.check(write_claim(tmp_path))
    ClaimVerifier(reranker).reranker.rerank("Wax coating keeps apples firm.", [TEXT])
    rules = read_rules("claims").score
    assert all(one in asked[0] and one not in asked[-1] for one in rules)
    assert "In this field (medicine)" in asked[0]
    told = [
        ClaimVerifier(reranker, one).reranker.backend.about for one in (None, read_rules("law"))
    ]
    assert [one.get("rules", {}).get("name") for one in told] == [None, "law"]  # kept apart


def test_a_list_of_which_the_work_has_a_part_is_partly_supported(tmp_path):
    class Obedient(ScriptedChat):
        def _generate(self, messages, *rest, **options):
            told = "each thing of a list" in messages[0].text
            said = {"score": 0.7, "direction": "mixed"} if told else {"score": 1}
            reply = json.dumps({"reason": "", "evidence": [1], "direction": "supports", **said})
            return ChatResult(generations=[ChatGeneration(message=AIMessage(reply))])

    checker = ManuscriptCheck(EvidenceReranker(llm_backend(Obedient(scores={}))), library=library())
    claim = write_claim(tmp_path, "Wax coating keeps apples, plums and cherries firm [1].")
    [pair] = checker.check(claim).pairs
    assert (pair.verdict, pair.quote) == ("partly", "Wax coating kept apples firm.")


def test_a_judge_that_fails_is_no_verdict(tmp_path):
    def fail(task):
        raise RuntimeError("out of order")

    [pair] = ManuscriptCheck(chat_judge(fail), library=library()).check(write_claim(tmp_path)).pairs
    assert pair.verdict == "not_judged"
    assert pair.score is None
    assert "out of order" in pair.notes[0]


async def test_async_gives_the_same(planted, report):
    again = await ManuscriptCheck(library=WorkLibrary(read_passages(LIBRARY))).acheck(planted)
    assert again.to_dict() == report.to_dict()


def test_a_report_survives_json(report):
    assert CheckReport.from_dict(json.loads(export_check(report, "json"))) == report


def test_every_form_shows_every_verdict_and_deciding_sentence(report):
    texts = {form: export_check(report, form) for form in ("text", "markdown", "csv", "html")}
    for form, text in texts.items():
        assert "Kelp" not in text, form
        for pair in report.pairs:
            shown = pair.quote.replace("'", "&#x27;") if form == "html" else pair.quote
            assert shown in text or pair.verdict == "method", form
    assert "RETRACTED" in texts["text"]
    assert texts["csv"].count("\n") == len(report.pairs) + 1


def test_the_number_beside_a_verdict_says_that_it_is_of_the_sentence(report):
    text = export_check(report, "html")
    judged = [one for one in report.pairs if one.quote and one.score is not None]
    assert {"supported", "not_found"} <= {one.verdict for one in judged}
    for one in judged:
        assert f"relevance <b>{one.score:.2f}</b>" in text
    bare = replace(report.pairs[0], verdict="not_found", quote="", score=0.4)
    assert "relevance" not in export_check(replace(report, pairs=(bare,)), "html")


def test_a_clause_that_is_judged_is_shown_where_a_sentence_has_several(tmp_path):
    path = write_claim(
        tmp_path, "Wax keeps stored apples firm [1], and pears lost sugar at night [1]."
    )
    report = ManuscriptCheck(library=library()).check(path)
    for form in ("text", "markdown", "html"):
        shown = export_check(report, form)
        assert shown.count("judged: ") == 2
        assert "judged: “pears lost" in shown or "judged: pears lost" in shown
    path = write_claim(tmp_path, "Wax keeps stored apples firm [1].")
    assert "judged: " not in export_check(ManuscriptCheck(library=library()).check(path), "text")


def test_text_of_a_manuscript_is_no_html(tmp_path):
    path = write_claim(tmp_path, "Wax &lt;script&gt;x&lt;/script&gt; keeps apples firm [1].")
    page = export_check(ManuscriptCheck(library=library()).check(path), "html")
    assert "<script>" not in page


def test_where_nothing_supports_the_best_other_study_is_shown(report):
    [wrong] = [one for one in report.pairs if "Wax coating" in one.claim.sentence]
    assert wrong.verdict == "not_found"
    assert "Wax coating and the firmness" in wrong.other.source
    assert wrong.other.quote.startswith("Wax coating kept apples firmer")


def test_a_check_that_was_cut_short_goes_on_where_it_was(tmp_path):
    asked = []

    def judge(task):
        asked.append(task["text"])
        return Judgement(score=0.9, direction="supports", quote="Wax coating kept apples firm.")

    path = write_claim(tmp_path)
    for resume in (False, True):
        with Journal(tmp_path / "kept.jsonl", {"command": "check"}).open(resume=resume) as journal:
            found = ManuscriptCheck(chat_judge(judge), library=library(), journal=journal)
            assert found.check(path).pairs[0].verdict == "supported"
    assert len(asked) == 1


def test_a_file_of_notices_marks_a_work(tmp_path):
    notices = tmp_path / "notices.csv"
    notices.write_text("doi,nature\n10.5555/w,Retraction\n")
    held = WorkLibrary(
        [
            Document(
                page_content=TEXT, metadata={"title": "Wax on stored apples", "doi": "10.5555/w"}
            )
        ],
        retractions=read_retractions(notices),
    )
    found = ManuscriptCheck(library=held).check(write_claim(tmp_path))
    assert found.pairs[0].verdict == "retracted"
    assert found.has_errors


def test_what_became_of_a_work_is_told_with_its_source(tmp_path):
    [pair] = (
        ManuscriptCheck(library=library(paper_status="corrected"))
        .check(write_claim(tmp_path, "Wax coating kept apples firm [1]."))
        .pairs
    )
    assert pair.verdict == "supported"
    assert pair.source.casefold().startswith("corrected: ")


def test_abstracts_of_the_list_itself_are_read(tmp_path):
    bib = tmp_path / "a.bib"
    bib.write_text(f"@article{{a, title={{Wax on apples}}, year={{2018}}, abstract={{{TEXT}}}}}")
    path = tmp_path / "a.md"
    path.write_text("Wax coating kept apples firm [@a]. Figs are sweet and soft in autumn [@b].")
    first, second = ManuscriptCheck().check(path, bib).pairs
    assert (first.verdict, first.read) == ("supported", "abstract")
    assert second.verdict == "missing"


BIB = f"@article{{lund18, title={{Wax on stored apples}}, doi={{10.5555/w}}, abstract={{{TEXT}}}}}"


@pytest.mark.parametrize("cited", ["lund18", "10.5555/w", "Wax on stored apples"])
@pytest.mark.parametrize("is_list", [False, True])
def test_a_table_cites_a_bib_file_by_key_doi_or_title(cited, is_list, tmp_path):
    bib, path = tmp_path / "a.bib", tmp_path / "claims.csv"
    bib.write_text(BIB)
    path.write_text(f"claim,reference\nWax coating kept apples firm.,{cited}\n")
    works = WorkLibrary() if is_list else WorkLibrary(read_passages(bib))
    report = ManuscriptCheck(library=works).check(path, bib if is_list else None)
    [pair] = report.pairs
    assert pair.verdict == "supported"
    assert "10.5555/w" in pair.source


def test_four_hundred_references_get_a_line(tmp_path):
    listed = "\n\n".join(f"{n}. Lund A. Wax number {n} on apples. 2018." for n in range(1, 401))
    path = tmp_path / "a.md"
    path.write_text(f"# On\n\nWax coating keeps apples firm [1].\n\n# References\n\n{listed}\n")
    found = ManuscriptCheck().check(path)
    assert found.notes[0].startswith("400 references: 1 pair")
    assert found.pairs[0].verdict == "unavailable"


def test_an_estimate_asks_nobody(tmp_path):
    def judge(task):
        raise AssertionError

    checker = ManuscriptCheck(chat_judge(judge), library=library())
    assert checker.estimate(write_claim(tmp_path)).n_passages >= 1


class OneSource:
    """Services that know one paper, whatever they are asked."""

    def __init__(self, title):
        self.title, self.asked = title, []

    def search(self, query, k):
        self.asked.append(query)
        return self

    async def asearch(self, query, k):
        return self.search(query, k)

    async def afull_text(self, **ids):
        return ""

    def to_documents(self):
        return [Document(id="s", page_content=TEXT, metadata={"title": self.title})]


@pytest.mark.parametrize(
    ("title", "verdict"),
    [("Wax on stored apples", "supported"), ("Figs in autumn", "unavailable")],
)
async def test_what_the_library_lacks_is_asked_for_by_title(tmp_path, title, verdict):
    source, path = OneSource(title), write_claim(tmp_path, "Wax coating kept apples firm [1].")
    checker = ManuscriptCheck(literature=source)
    assert [one.verdict for one in checker.check(path).pairs] == [verdict]
    assert [one.verdict for one in (await checker.acheck(path)).pairs] == [verdict]
    assert source.asked == ["Wax on stored apples"] * 2


SLEEP = (
    "Drinkers of green tea slept as long as before [1].\n\n# References\n\n"
    "1. Lee K. {title}. Journal of Tea. 2015. doi:10.5555/tea.1\n"
)


@pytest.fixture
def services():
    with Literature() as world, pytest.MonkeyPatch.context() as patch:
        for name, value in {**world.variables, "NO_PROXY": "127.0.0.1"}.items():
            patch.setenv(name, value)
        yield world


def checked(literature, title=TRIAL, works=None):
    checker = ManuscriptCheck(library=works, literature=literature)
    return checker.check_text(SLEEP.format(title=title)).pairs[0]


def test_an_open_article_is_read_whole_where_its_service_is_named(services):
    pair = checked(open_sources("europe_pmc"))
    assert (pair.read, pair.quote) == (
        "full text",
        "Nobody who drank green tea slept less than before.",
    )
    assert [one.path.partition("?")[0] for one in services.of("europe_pmc")] == [
        "search", "search", "PMC9/fullTextXML",
    ]  # fmt: skip
    services.forget()
    assert checked(open_sources("pubmed")).read == "abstract"
    assert services.of("europe_pmc") == []


def test_a_work_of_the_library_is_read_whole_too_and_nothing_is_asked_without_a_service(services):
    about = {"title": TRIAL, "doi": "10.5555/tea.1"}
    works = WorkLibrary([Document(id="t", page_content="Tea was drunk.", metadata=about)])
    assert checked(None, works=works).read == "abstract"
    assert services.sent == []
    assert checked(open_sources("europe_pmc"), works=works).read == "full text"


@pytest.mark.parametrize("fault", ["nothing", "500", "html", "truncated"])
def test_an_article_that_is_not_open_or_does_not_come_is_read_as_an_abstract(services, fault):
    about = {"title": TRIAL, "doi": "10.5555/tea.1"}
    works = WorkLibrary([Document(id="t", page_content="Tea was drunk.", metadata=about)])
    services.faults["europe_pmc"] = fault
    assert checked(open_sources("europe_pmc"), works=works).read == "abstract"


async def test_async_asks_services_as_sync_does(services):
    checker = ManuscriptCheck(literature=open_sources("europe_pmc"))
    text = SLEEP.format(title=TRIAL)
    here, there = checker.check_text(text), await checker.acheck_text(text)
    assert here.pairs == there.pairs


PAPER = {"title": "Wax on stored apples", "authors": "Lund, Ann", "year": 2018}
ARTICLE = PAPER | {"journal": "Fruit Science", "doi": "10.1000/wax"}
PREPRINT = PAPER | {"year": 2017, "journal": "bioRxiv", "doi": "10.1101/2017.01.01.1"}


def versions(**texts):
    known = {"article": ARTICLE, "preprint": PREPRINT}
    return WorkLibrary(
        [Document(id=name, page_content=texts[name], metadata=known[name]) for name in texts]
    )


def check_doi(folder, doi, works):
    path = folder / "a.md"
    path.write_text(
        "# On\n\nWax coating keeps apples 31% firmer [1].\n\n# References\n\n"
        f"1. Lund A. Wax on stored apples. 2018. doi:{doi}\n"
    )
    [pair] = ManuscriptCheck(library=works).check(path).pairs
    return pair


@pytest.mark.parametrize(
    ("cited", "number", "other"), [(ARTICLE, "12%", "31%"), (PREPRINT, "31%", "12%")]
)
def test_a_work_is_read_in_the_version_that_is_cited(tmp_path, cited, number, other):
    works = versions(
        preprint="Wax coating kept apples 31% firmer.",
        article="Wax coating kept apples 12% firmer.",
    )
    pair = check_doi(tmp_path, cited["doi"], works)
    assert number in pair.quote
    assert other not in pair.quote
    assert f"doi:{cited['doi']}" in pair.source
    assert pair.source.startswith("PREPRINT: ") == (cited is PREPRINT)


def test_another_version_is_read_where_the_cited_one_is_not_there_and_named(tmp_path):
    works = versions(preprint="Wax coating kept apples 31% firmer.")
    pair = check_doi(tmp_path, ARTICLE["doi"], works)
    assert pair.verdict == "supported"
    assert pair.source.startswith("PREPRINT: Lund. Wax on stored apples. bioRxiv, 2017.")
    article = versions(article="Wax coating kept apples 31% firmer.")
    assert check_doi(tmp_path, PREPRINT["doi"], article).source.startswith("Lund. Wax on stored")


def test_a_check_without_papers_says_what_to_give(tmp_path):
    path = write_claim(tmp_path)
    alone = ManuscriptCheck().check(path)
    assert [one.verdict for one in alone.pairs] == ["unavailable"]
    assert "SOURCE" in alone.notes[0]
    assert "--source europe_pmc" in export_check(alone, "text")
    assert ManuscriptCheck(library=library("Figs.", title="Figs")).check(path).notes == ()
    assert ManuscriptCheck(literature=OneSource("Figs")).check(path).notes == ()
