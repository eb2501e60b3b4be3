"""A sentence is cited with the record of its study that it stands in."""

import csv
import json
from importlib import resources
from io import StringIO

import pytest
from langchain_core.documents import Document

from deepera_graph import EvidenceReranker, EvidenceTabulator, export_result
from deepera_graph.evidence.table.table import EvidenceTable
from deepera_graph.export import describe_evidence
from deepera_graph.literature.citation import Citation
from deepera_graph.literature.versions import (
    NEARLY,
    choose_version,
    order_passages,
    tell_versions,
)
from deepera_graph.testing import judged, scripted_backend
from deepera_graph.text.plain import drop_mark

QUESTION = "Does wax keep apples firm?"
ARTICLE = {
    "title": "Wax coats and the firmness of stored apples",
    "authors": "Lee, Ada; Roy, Bo",
    "year": 2019,
    "journal": "Fruit Science",
    "doi": "10.1000/wax.1",
}
PREPRINT = ARTICLE | {"year": 2018, "journal": "bioRxiv", "doi": "10.1101/2018.05.01.123456"}
NOTICE = ARTICLE | {
    "title": f"Correction to: {ARTICLE['title']}",
    "year": 2020,
    "doi": "10.1000/wax.99",
}
PDF = {"title": ARTICLE["title"], "source": "wax.pdf"}
RECORDS = {"article": ARTICLE, "preprint": PREPRINT, "notice": NOTICE, "pdf": PDF}
TEXTS = {
    "article": "We stored 240 apples, and with wax they were 12% firmer.",
    "preprint": "We stored 120 apples, and with wax they were 21% firmer.",
    "notice": "The number of apples should read 230.",
    "pdf": "With wax, firmness of the apples was kept in the cold store.",
}


def rerank(scores):
    """Judge one passage of each record that has a score."""
    passages = [
        Document(id=name, page_content=TEXTS[name], metadata=RECORDS[name]) for name in scores
    ]
    by_text = {TEXTS[name]: score for name, score in scores.items()}
    backend = scripted_backend(
        lambda task: judged(by_text[task["text"]], quote=task["text"], direction="supports")
    )
    return EvidenceReranker(backend, content="passage", threshold=0.5).rerank(QUESTION, passages)


def cite(result, name):
    return result.cite(next(one for one in result.passages if one.id == name))


def of(**metadata):
    return Citation.of(metadata, "1")


def test_a_sentence_of_the_preprint_is_cited_with_the_preprint_and_names_the_article():
    result = rerank({"preprint": 0.95, "article": 0.6})
    assert {one.study for one in result.passages} == {1}
    assert str(cite(result, "preprint")) == (
        "PREPRINT: Lee and Roy. Wax coats and the firmness of stored apples. bioRxiv, 2018. "
        "doi:10.1101/2018.05.01.123456, preprint of Fruit Science, 2019, doi:10.1000/wax.1"
    )
    assert str(cite(result, "article")) == (
        "Lee and Roy. Wax coats and the firmness of stored apples. Fruit Science, 2019. "
        "doi:10.1000/wax.1"
    )


def test_a_sentence_of_a_notice_is_cited_as_the_notice():
    result = rerank({"notice": 0.9, "article": 0.9})
    notice = cite(result, "notice")
    assert str(notice).startswith("CORRECTED, NOTICE: Lee and Roy. Correction to: Wax coats")
    assert str(notice).endswith(
        "doi:10.1000/wax.99, notice on Fruit Science, 2019, doi:10.1000/wax.1"
    )
    assert cite(result, "article").doi == "10.1000/wax.1"
    assert str(cite(result, "article")).startswith("CORRECTED: Lee and Roy. Wax coats")


def test_a_pdf_that_says_nothing_of_itself_has_what_the_record_of_the_article_knows():
    result = rerank({"preprint": 0.95, "pdf": 0.9, "article": 0.6, "notice": 0.5})
    pdf = cite(result, "pdf")
    assert (pdf.year, pdf.doi, pdf.version) == ("2019", "10.1000/wax.1", "")
    alone = rerank({"preprint": 0.95, "pdf": 0.9})
    assert cite(alone, "pdf").doi == PREPRINT["doi"]
    assert str(cite(alone, "pdf")).startswith("PREPRINT: ")


def test_a_pdf_whose_name_has_the_year_of_the_preprint_is_the_preprint():
    versions = tell_versions([of(**ARTICLE), of(**PREPRINT), of(title=PDF["title"], year=2018)])
    assert [one.kind for one in versions] == ["article", "preprint", "preprint"]
    assert versions[1] == versions[2]


@pytest.mark.parametrize(
    ("changes", "n"),
    [
        pytest.param([{}, {"doi": "https://doi.org/10.1000/WAX.1", "year": 2020}], 1, id="one-doi"),
        pytest.param([{}, {"doi": "10.1000/other"}], 2, id="two-dois"),
        pytest.param([{}, {"doi": ""}], 1, id="without-doi"),
        pytest.param([{}, {"doi": "", "year": 2020}], 2, id="another-year"),
        pytest.param([{}, PREPRINT, NOTICE], 3, id="all-kinds"),
        pytest.param([PREPRINT, PREPRINT | {"journal": ""}], 1, id="one-preprint"),
        pytest.param(
            [PREPRINT, PREPRINT | {"journal": "arXiv", "doi": "10.48550/arXiv.1805.00001"}],
            2,
            id="two-servers",
        ),
        pytest.param(
            [PREPRINT | {"doi": f"{PREPRINT['doi']}v{n}"} for n in (1, 2)], 2, id="two-drafts"
        ),
    ],
)
@pytest.mark.parametrize("step", [1, -1])
def test_records_of_one_doi_are_one_version_and_others_are_not(changes, n, step):
    versions = tell_versions([of(**(ARTICLE | one)) for one in changes][::step])
    assert len({*versions}) == n


def test_a_withdrawn_preprint_and_a_retraction_by_its_title_are_no_article():
    withdrawn = of(**PREPRINT | {"title": f"WITHDRAWN: {PREPRINT['title']}"})
    notice = of(**ARTICLE | {"title": f"Retraction of {ARTICLE['title']}", "doi": "10.1000/r"})
    versions = tell_versions([withdrawn, notice, of(**ARTICLE)])
    assert [one.kind for one in versions] == ["preprint", "notice", "article"]


def test_the_article_leads_its_study_where_it_is_nearly_as_good():
    near = rerank({"preprint": 0.95, "article": 0.9})
    assert [[one.id for one in study] for study in near.studies] == [["article", "preprint"]]
    far = rerank({"preprint": 0.95, "article": 0.6})
    assert [[one.id for one in study] for study in far.studies] == [["preprint", "article"]]
    sources = [of(**PREPRINT), of(**ARTICLE)]
    assert order_passages([(0.8, "evidence"), (0.75, "possible")], sources) == [0, 1]
    assert order_passages([(0.84, "evidence"), (0.72, "evidence")], sources) == [1, 0]


def test_a_study_has_the_direction_of_its_article_where_that_is_nearly_as_good():
    said = {TEXTS["preprint"]: "supports", TEXTS["article"]: "no_difference"}
    backend = scripted_backend(lambda task: judged(0.9, direction=said[task["text"]]))
    given = [Document(page_content=TEXTS[n], metadata=RECORDS[n]) for n in ("preprint", "article")]
    result = EvidenceReranker(backend).rerank(QUESTION, given)
    assert result.direction_counts == {"no_difference": 1}


def test_the_page_lets_an_article_lead_as_results_do():
    script = resources.files("deepera_graph.serve.page").joinpath("verdicts.js")
    assert f"const NEARLY = {NEARLY};" in script.read_text("utf-8")


def test_every_form_cites_the_sentence_of_the_preprint_with_the_preprint():
    result = rerank({"preprint": 0.95, "article": 0.6})
    first, second = csv.DictReader(StringIO(export_result(result, "csv")))
    assert (first["year"], first["doi"]) == ("2018", PREPRINT["doi"])
    assert first["version"] == "preprint of Fruit Science, 2019, doi:10.1000/wax.1"
    assert (second["year"], second["doi"], second["version"]) == ("2019", "10.1000/wax.1", "")
    plain = json.loads(export_result(result, "json"))
    assert [one["citation"]["doi"] for one in plain["ranking"]] == [
        PREPRINT["doi"], "10.1000/wax.1",
    ]  # fmt: skip
    assert plain["ranking"][0]["citation"]["version"] == first["version"]
    markdown = drop_mark(export_result(result, "markdown")).splitlines()[-2]
    assert f"doi:{PREPRINT['doi']}" in markdown
    assert "21%" in markdown
    assert f'href="https://doi.org/{PREPRINT["doi"]}"' in export_result(result, "html")
    assert "[1] (PREPRINT: Lee and Roy. Wax coats" in describe_evidence(result)
    for form, doi in (
        ("bibtex", f"doi = {{{PREPRINT['doi']}}}"),
        ("ris", f"DO  - {PREPRINT['doi']}"),
    ):
        written = export_result(result, form)
        assert doi in written
        assert "PREPRINT; preprint of Fruit Science, 2019" in written


def test_a_reference_of_a_study_says_which_sentence_stands_in_another_record():
    written = export_result(rerank({"preprint": 0.95, "article": 0.9}), "ris")
    assert written.count("TY  -") == 1
    assert "DO  - 10.1000/wax.1" in written
    assert written.index("score 0.90: We stored 240") < written.index("in PREPRINT: Lee and Roy.")
    assert f"doi:{PREPRINT['doi']}, preprint of Fruit Science" in written
    assert written.index("in PREPRINT") < written.index("score 0.95: We stored 120")


def test_documents_say_the_record_also_while_the_graph_runs():
    result = rerank({"preprint": 0.95, "article": 0.6})
    cited = {one.id: one.metadata["deepera"]["citation"] for one in result.to_documents()}
    assert cited["preprint"].startswith("PREPRINT: ")
    assert f"doi:{PREPRINT['doi']}, preprint of" in cited["preprint"]
    assert cited["article"].endswith("doi:10.1000/wax.1")


@pytest.mark.parametrize(
    ("scores", "n", "doi"),
    [
        ({"preprint": 0.95, "article": 0.9}, "240", "10.1000/wax.1"),
        ({"preprint": 0.95}, "120", PREPRINT["doi"]),
        ({"notice": 0.95, "article": 0.9}, "240", "10.1000/wax.1"),
    ],
)
def test_a_row_has_the_numbers_of_the_record_that_it_cites(scores, n, doi):
    result = rerank(scores)
    for table in (EvidenceTable.of_result(result, ["n"]), tabulate(scores)):
        [row] = table.rows
        assert row.cells["n"].value == n
        assert f"doi:{doi}" in row.source


def tabulate(scores):
    backend = scripted_backend(
        lambda task: judged(next(s for n, s in scores.items() if TEXTS[n] == task["text"]))
    )
    judge = EvidenceReranker(backend, content="passage")
    given = [Document(page_content=TEXTS[n], metadata=RECORDS[n]) for n in scores]
    return EvidenceTabulator(judge, columns=["n"]).tabulate(QUESTION, given)


def test_a_reference_is_read_in_the_version_that_it_names():
    sources = [of(**PREPRINT), of(**ARTICLE), of(**NOTICE), of(**PDF)]
    assert choose_version(of(**ARTICLE), sources) == [1, 3]
    assert choose_version(of(title=ARTICLE["title"]), sources) == [1, 3]
    assert choose_version(of(doi=PREPRINT["doi"]), sources) == [0]
    assert choose_version(of(doi=NOTICE["doi"]), sources) == [2]
    assert choose_version(of(**ARTICLE), sources[:1]) == [0]


def test_an_answer_by_rules_quotes_the_article():
    texts = {
        "preprint": "Wax significantly reduced the loss of firmness of apples by 30% (p = 0.01).",
        "article": "Wax significantly reduced the loss of firmness of apples by 12% (p = 0.04).",
    }
    given = [
        Document(id=name, page_content=text, metadata=RECORDS[name]) for name, text in texts.items()
    ]
    result = EvidenceReranker("local", answer=True, threshold=0.0).rerank(
        "Does wax reduce the loss of firmness of apples?", given
    )
    assert result.answer is not None
    assert result.answer["citations"] == ["article"]
