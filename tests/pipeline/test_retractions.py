"""What became of a paper is read from titles, metadata and files of notices, and shown."""

import json
from io import StringIO

import pytest
from langchain_core.documents import Document
from rich.console import Console

from deepera_graph import EvidenceReranker, InputError, export_result
from deepera_graph.cli.judging.evidence import show_result
from deepera_graph.export import describe_evidence
from deepera_graph.literature.citation import Citation
from deepera_graph.literature.same_study import find_studies, read_retractions
from deepera_graph.pipeline.shown import count_bands, describe_kept
from deepera_graph.retrieval.sources import read_passages
from deepera_graph.testing import judged, scripted_backend

QUESTION = "Does wax keep apples firm?"
TITLE = "Wax coats and the firmness of apples"


@pytest.mark.parametrize(
    ("metadata", "status"),
    [
        ({"title": f"RETRACTED: {TITLE}"}, "retracted"),
        ({"title": f"Retracted article: {TITLE}"}, "retracted"),
        ({"title": f"[Retracted] {TITLE}"}, "retracted"),
        ({"title": f"{TITLE} (Retracted article. See vol. 3, p. 9)"}, "retracted"),
        ({"title": f"WITHDRAWN: {TITLE}"}, "retracted"),
        ({"title": f"Retraction notice to: {TITLE}"}, "retracted"),
        ({"title": f"Retraction of “{TITLE}”"}, "retracted"),
        ({"title": f"Correction to: {TITLE}"}, "corrected"),
        ({"title": f"Expression of Concern: {TITLE}"}, "concern"),
        ({"Publication Types": ["Journal Article", "Retracted Publication"]}, "retracted"),
        ({"publication_types": "Journal Article; Retracted Publication"}, "retracted"),
        ({"is_retracted": True}, "retracted"),
        ({"retracted": "yes"}, "retracted"),
        ({"retracted": 1}, "retracted"),
        ({"Item Type": "preprint"}, "preprint"),
        ({"doi": "10.1101/2020.01.02.123"}, "preprint"),
        ({"url": "https://arxiv.org/abs/2101.00001v2"}, "preprint"),
        ({"doi": "10.1101/gr.100.1"}, None),  # a journal of the same publisher
        ({"is_retracted": False, "retracted": "no"}, None),
        ({"retracted": 0.0}, None),
        ({"title": "Retraction of the foreskin in boys"}, None),
        ({"title": "Withdrawn children in school"}, None),
        ({"title": "Corrections of lenses"}, None),
        ({"title": "Bonds, retracted"}, None),
    ],
)
def test_titles_and_metadata_say_what_became_of_a_paper(metadata, status):
    assert Citation.of(metadata, "1").status == status


def test_a_notice_marks_the_paper_whose_title_it_names():
    found = find_studies(
        [
            ("1", {"title": TITLE, "authors": "Lee, A.", "year": 2010}),
            ("2", {"title": f"Retraction of {TITLE.lower()}", "year": 2019}),
            ("3", {"title": "Pears in wax for once", "year": 2019}),
        ]
    )
    assert [one.status for one in found] == ["retracted", "retracted", None]
    assert [one.study for one in found] == [1, 1, 2]


def test_an_article_is_no_preprint_because_its_preprint_is_one():
    article = {"title": TITLE, "year": 2020, "doi": "10.1000/1", "journal": "Fruit"}
    preprint = {"title": TITLE, "year": 2019, "doi": "10.1101/2019.01.01.1"}
    found = find_studies([("1", article), ("2", preprint)])
    assert [(one.study, one.status) for one in found] == [(1, None), (1, "preprint")]


def rerank(**settings):
    passages = [
        {
            "id": "a",
            "text": "Wax kept apples firm.",
            "metadata": {"title": TITLE, "doi": "10.1000/a"},
        },
        {"id": "b", "text": "So it did.", "metadata": {"doi": "10.1000/A", "is_retracted": "true"}},
        {"id": "c", "text": "It did not.", "metadata": {"title": "Pears in wax for once"}},
    ]
    said = {"It did not.": "contradicts"}
    backend = scripted_backend(
        lambda task: judged(0.9, quote=task["text"], direction=said.get(task["text"], "supports"))
    )
    return EvidenceReranker(backend, **settings).rerank(QUESTION, passages), backend


def test_a_retracted_study_counts_for_nothing_and_no_answer_is_made_of_it():
    result, backend = rerank(answer=True)
    assert result.direction_counts == {"contradicts": 1}
    assert [one.paper_status for one in result.kept] == ["retracted", "retracted", None]
    [task] = backend.answerer.tasks
    assert [one["text"] for one in task["evidence"]] == ["It did not."]
    assert "2 passages that were kept are of retracted papers" in result.warnings[-1]


def test_counts_of_evidence_are_without_retracted_papers():
    result, _ = rerank()
    assert count_bands(result) == (1, 0, 2)
    assert describe_kept(result) == "kept 3, 2 retracted"
    said = "Evidence: 1 of 3 passages reached 0.8 (1 contradicts); 2 more are of retracted papers."
    assert said in export_result(result, "markdown")
    assert describe_evidence(result).startswith(
        "1 of 3 passages gives direct evidence (threshold 0.80; 1 contradicts); "
        "2 more are of retracted papers:"
    )
    console = Console(file=StringIO(), width=200)
    show_result(console, result)
    assert "ok: 3 kept (1 evidence, 2 retracted) of 2 studies, 0 dropped" in console.file.getvalue()


def test_a_retracted_paper_alone_is_no_evidence():
    passage = {"text": "Wax kept apples firm.", "metadata": {"retracted": True}}
    backend = scripted_backend(lambda task: judged(0.9))
    result = EvidenceReranker(backend).rerank(QUESTION, [passage])
    said = "No evidence: 1 of 1 passage reached 0.8, and is of a retracted paper."
    assert said in export_result(result, "markdown")
    first = describe_evidence(result).splitlines()[0]
    assert first.startswith(
        "No passage of 1 gives direct evidence (threshold 0.80); what passed is of"
    )


@pytest.mark.parametrize("form", ["markdown", "html", "csv", "bibtex", "ris"])
def test_every_form_says_that_a_paper_was_retracted(form):
    result, _ = rerank()
    assert "retracted" in export_result(result, form).lower()


def test_documents_agents_and_json_are_told_that_a_paper_was_retracted():
    result, _ = rerank()
    first = result.to_documents()[0].metadata["deepera"]
    assert first["paper_status"] == "retracted"
    assert first["citation"].startswith("RETRACTED: ")
    assert "[1] (RETRACTED: " in describe_evidence(result)
    plain = json.loads(export_result(result, "json"))
    assert [one["paper_status"] for one in plain["ranking"]] == ["retracted", "retracted", None]


def test_an_answer_of_retracted_papers_alone_is_none():
    passage = {"text": "Wax kept apples firm.", "metadata": {"retracted": True}}
    backend = scripted_backend(lambda task: judged(0.9))
    result = EvidenceReranker(backend, answer=True).rerank(QUESTION, [passage])
    assert result.answer is not None
    assert result.answer["status"] == "insufficient_evidence"
    assert "retracted" in result.answer["cause"]


NOTICES = """\
Record ID,Title,RetractionDate,OriginalPaperDOI,OriginalPaperPubMedID,RetractionNature
1,Wax,1/2/2020,10.1000/WAX,0,Retraction
2,Pears,1/2/2020,unavailable,77,Expression of concern
3,Plums,1/2/2020,10.1000/plum,0,Correction
4,Figs,1/2/2019,10.1000/fig,0,Retraction
5,Figs,1/2/2021,10.1000/fig,0,Reinstatement
"""


def test_a_file_of_notices_marks_papers_by_doi_and_pmid(tmp_path):
    file = tmp_path / "notices.csv"
    file.write_text(NOTICES, encoding="utf-8-sig")
    given = [
        Document(page_content="1", metadata={"doi": "https://doi.org/10.1000/wax"}),
        Document(page_content="2", metadata={"pmid": 77}),
        Document(page_content="3", metadata={"doi": "10.1000/plum", "retracted": True}),
        Document(page_content="4", metadata={"doi": "10.1000/fig"}),
        Document(page_content="5", metadata={"pmid": 0}),
    ]
    before = [one.model_copy(deep=True) for one in given]
    marked = read_retractions(file).mark(given)
    assert [Citation.of(one.metadata, "1").status for one in marked] == [
        "retracted", "concern", "retracted", None, None,
    ]  # fmt: skip
    assert given == before


def test_a_file_without_ids_of_papers_is_refused_by_name(tmp_path):
    file = tmp_path / "other.csv"
    file.write_text("name,nature\n1,Retraction\n")
    with pytest.raises(InputError, match=r"other\.csv: needs a column OriginalPaperDOI.*name"):
        read_retractions(file)
    with pytest.raises(InputError, match=r"gone\.csv: cannot be read"):
        read_retractions(tmp_path / "gone.csv")


@pytest.mark.parametrize("first", ["", "RETRACTED: "])
def test_a_record_that_was_retracted_is_not_passed_over_as_used_twice(tmp_path, first):
    second = "" if first else "RETRACTED: "
    rows = [
        {"doi": "10.1000/1", "title": f"{mark}{TITLE}", "text": "Wax."} for mark in (first, second)
    ]
    rows.append(rows[0])
    file = tmp_path / "papers.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    skipped = []
    found = list(read_passages(file, on_skip=skipped.append))
    assert len(found) == 2
    assert len(skipped) == 1
    assert {one.status for one in find_studies((one.id, one.metadata) for one in found)} == {
        "retracted"
    }
