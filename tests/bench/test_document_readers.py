import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.lakes import write_jsonl
from deepera_graph.calibration.instance import DatasetError
from deepera_graph.lab.build.corpus import CorpusSection, Document
from deepera_graph.lab.data.documents import read_documents, restore_abstract
from deepera_graph.lab.data.sectioned import read_pubmedqa_questions

WORK = {
    "id": "https://openalex.org/W7",
    "display_name": "Trout in warm lakes",
    "abstract_inverted_index": {"Trout": [0], "grow": [1, 5], "in": [2], "warm": [3], "and": [4]},
    "primary_topic": {"display_name": "Fish", "field": {"display_name": "Ecology"}},
    "publication_year": 2021,
    "doi": None,
    "cited_by_count": 3,
}
ENTRY = {
    "QUESTION": "Do trout grow in warm lakes?",
    "CONTEXTS": ["Trout like cold water.", "We weighed 90 trout.", "They grew by 4%."],
    "LABELS": ["BACKGROUND", "METHODS", "MAIN RESULTS"],
    "MESHES": ["Trout"],
    "YEAR": "2019",
    "LONG_ANSWER": "Trout grow in warm lakes.",
    "final_decision": "yes",
}


@pytest.fixture
def pubmedqa(tmp_path):
    def write(entries, indent=None):
        path = tmp_path / "trout.json"
        path.write_text(json.dumps(entries, indent=indent), encoding="utf-8")
        return path

    return write


def test_openalex_works_become_documents(tmp_path):
    bare = {"id": "https://openalex.org/W8", "title": "Ice", "abstract_inverted_index": None,
            "primary_topic": None, "concepts": [{"display_name": "Physics"}]}  # fmt: skip
    first, second = read_documents(write_jsonl(tmp_path / "works.jsonl", [WORK, bare]))
    assert (first.id, first.title, first.subject) == ("W7", "Trout in warm lakes", "Ecology")
    assert first.text == "Trout grow in warm and grow"
    assert first.metadata == {"year": 2021, "cited_by": 3}
    assert (second.title, second.text, second.subject) == ("Ice", "", "Physics")


@pytest.mark.full
@settings(deadline=None)
@given(st.lists(st.sampled_from(["lake", "ice", "trout", "the"]), max_size=30))
def test_an_inverted_index_is_put_together_again(words):
    index = {}
    for place, word in enumerate(words):
        index.setdefault(word, []).append(place)
    assert restore_abstract(index) == " ".join(words)


def test_a_beir_folder_and_its_corpus_hold_the_same_documents(beir_folder):
    documents = list(read_documents(beir_folder))
    assert [one.id for one in documents] == ["d1", "d2", "d3"]
    assert documents[0].title == "Trout"
    assert list(read_documents(beir_folder / "corpus.jsonl")) == documents


def test_articles_keep_their_passages_as_sections(article_folder):
    first, second = read_documents(article_folder)
    assert (first.id, first.title) == ("A", "Liming of ponds")
    assert [one.name for one in first.sections] == ["METHODS", "RESULTS"]
    assert first.text == "Two ponds were limed.\n\nThe pH rose to 7.1."
    assert second.id == "B"


def test_plain_lines_may_have_sections_and_facts(tmp_path):
    rows = [
        {"id": 1, "text": "Ice melts.", "metadata": {"year": 1999}, "more": "ignored"},
        {"id": "b", "title": "T", "text": "", "sections": [{"name": "AIM", "text": "To melt."}]},
    ]
    plain, cut = read_documents(write_jsonl(tmp_path / "ice.jsonl", rows))
    assert plain == Document(id="1", text="Ice melts.", metadata={"year": 1999})
    assert cut.sections == (CorpusSection(name="AIM", text="To melt."),)


def test_sections_are_the_text_of_a_document_without_one(tmp_path):
    parts = [{"name": "AIM", "text": "To melt."}, {"name": "END", "text": "It melted."}]
    path = write_jsonl(tmp_path / "ice.jsonl", [{"id": "a", "sections": parts}, {"id": "b"}])
    documents = read_documents(path)
    assert next(documents).text == "To melt.\n\nIt melted."
    with pytest.raises(DatasetError, match="line 2: text must be there, or sections with"):
        next(documents)


def test_pubmedqa_abstracts_become_documents_with_sections(pubmedqa):
    (document,) = read_documents(pubmedqa({"77": ENTRY}))
    assert (document.id, document.subject) == ("77", "biomedicine")
    assert document.sections[2] == CorpusSection(name="MAIN RESULTS", text="They grew by 4%.")
    assert document.metadata == {"year": "2019", "mesh": ["Trout"]}


def test_pubmedqa_questions_name_the_sections_of_results(pubmedqa):
    (question,) = read_pubmedqa_questions(pubmedqa({"77": ENTRY}))
    assert (question.id, question.document, question.golden) == ("77", "77", (2,))
    assert (question.gold_answer, question.decision) == (ENTRY["LONG_ANSWER"], "yes")


def test_a_pubmedqa_question_without_a_section_of_results_has_no_golden_one(pubmedqa):
    entry = {**ENTRY, "LABELS": ["AIM", "METHODS", "DISCUSSION"]}
    (question,) = read_pubmedqa_questions(pubmedqa({"77": entry}))
    assert question.golden == ()


def test_blank_pubmedqa_contexts_do_not_shift_the_labels(pubmedqa):
    entry = {**ENTRY, "CONTEXTS": ["Trout like cold water.", " ", "They grew by 4%."]}
    path = pubmedqa({"77": entry})
    (document,), (question,) = read_documents(path), read_pubmedqa_questions(path)
    assert document.sections[question.golden[0]].name == "MAIN RESULTS"


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"QUESTION": "Why?"}, "trout.json, entry '78': CONTEXTS"),
        ({**ENTRY, "LABELS": ["AIM"]}, "entry '78': .*3 CONTEXTS but 1 LABELS"),
        ("text", "entry '78'"),
    ],
)
def test_a_bad_pubmedqa_entry_is_named(pubmedqa, entry, message):
    with pytest.raises(DatasetError, match=message):
        list(read_documents(pubmedqa({"77": ENTRY, "78": entry})))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"id": "2", "txt": "typo"}', "ice.jsonl, line 2: text"),
        (b'{"id": "", "text": "no id"}', "line 2: id"),
        (b"[1, 2]", "line 2"),
        (b"\xff\xfe", "line 2"),
        (b'{"id": "2", "text": ', "line 2"),
    ],
)
def test_a_bad_line_is_named_with_its_file(tmp_path, line, message):
    path = tmp_path / "ice.jsonl"
    path.write_bytes(b'{"id": "1", "text": "Ice melts."}\n' + line + b"\n")
    found = read_documents(path)
    assert next(found).id == "1"
    with pytest.raises(DatasetError, match=message):
        next(found)


def test_a_first_line_that_is_no_json_is_named(tmp_path):
    (tmp_path / "ice.jsonl").write_text("id,text\n1,Ice melts.\n")
    with pytest.raises(DatasetError, match="line 1"):
        list(read_documents(tmp_path / "ice.jsonl"))


def test_what_holds_no_documents_is_refused(tmp_path):
    with pytest.raises(DatasetError, match=r"expected corpus\.jsonl or passages"):
        list(read_documents(tmp_path))
    with pytest.raises(DatasetError, match="cannot be read"):
        list(read_documents(tmp_path / "none.jsonl"))


def test_an_empty_file_has_no_documents(tmp_path):
    (tmp_path / "empty.jsonl").touch()
    assert list(read_documents(tmp_path / "empty.jsonl")) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "not JSON"), ("[1]", "must be a JSON object"), ('{"a": 1', "not JSON")],
)
def test_what_is_not_one_object_is_named(tmp_path, text, message):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(DatasetError, match=rf"x\.json.*{message}"):
        list(read_pubmedqa_questions(path))
