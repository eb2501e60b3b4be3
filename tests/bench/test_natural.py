import json

import pytest

from bench.lakes import SHARED_DATA, write_jsonl
from deepera_graph.calibration.instance import DatasetError, write_rows
from deepera_graph.errors import SettingsError
from deepera_graph.lab.build.corpus import CorpusSection, Document
from deepera_graph.lab.build.natural import SectionQuestion, make_natural_instances
from deepera_graph.lab.build.search import LsaEmbeddings
from deepera_graph.lab.data.documents import open_natural
from deepera_graph.lab.data.readers import open_dataset
from deepera_graph.lab.data.sectioned import read_article_questions

NAMES = ("AIM", "METHODS", "RESULTS")


def paper(number, *texts, names=NAMES):
    sections = [
        CorpusSection(name=name, text=text) for name, text in zip(names, texts, strict=True)
    ]
    return Document.of_sections(f"p{number}", sections, title=f"Paper {number}")


POND = paper(
    1,
    "To see whether liming raises the acidity of ponds.",
    "Fourteen ponds were limed from boats in June.",
    "Acidity fell in all limed ponds within two months.",
)
OTHERS = [
    paper(n, f"To count {fish} in ponds.", f"{fish} were netted.", f"{fish} doubled in ponds.")
    for n, fish in enumerate(["Pike", "Perch", "Roach", "Trout", "Char"], start=2)
]
ASKED = SectionQuestion(
    id="q1", document="p1", question="Does liming change acidity of ponds?", golden=(2,),
    gold_answer="Acidity falls.", decision="yes", subject="limnology",
)  # fmt: skip


def make(question=ASKED, documents=(POND, *OTHERS), **options):
    return list(make_natural_instances(documents, [question], **options))


def test_look_alikes_are_the_other_sections_of_the_document():
    (instance,) = make()
    (golden,) = (one for one in instance.contexts if one.is_golden)
    lookalikes = [one for one in instance.contexts if one.is_distractor]
    assert golden.text == POND.sections[2].text
    assert {(one.distractor_type, one.text) for one in lookalikes} == {
        ("aim", POND.sections[0].text), ("methods", POND.sections[1].text),
    }  # fmt: skip
    assert all(one.parent_id == golden.id for one in lookalikes)


def test_the_instance_carries_what_was_asked():
    (instance,) = make(dataset="ponds")
    assert (instance.id, instance.dataset, instance.setting) == ("q1", "ponds", "natural")
    assert (instance.gold_answer, instance.decision) == ("Acidity falls.", "yes")
    assert instance.subject == "limnology"


def test_the_pool_is_filled_from_other_documents_and_in_first_stage_order():
    (instance,) = make(n_candidates=8)
    assert len(instance.contexts) == 8
    scores = [one.first_stage_score for one in instance.contexts]
    assert scores == sorted(scores, reverse=True)
    assert [one.first_stage_rank for one in instance.contexts] == list(range(1, 9))
    fillers = [one for one in instance.contexts if not one.is_golden and not one.is_distractor]
    assert {one.title for one in fillers} <= {one.title for one in OTHERS}


def test_a_small_corpus_gives_a_small_pool():
    assert len(make(n_candidates=1000)[0].contexts) == 18


def test_golden_passages_stay_in_a_pool_that_is_too_small_for_all_look_alikes():
    (instance,) = make(n_candidates=2)
    assert sorted(one.is_golden for one in instance.contexts) == [False, True]


def test_golden_passages_without_a_place_are_recorded():
    question = ASKED.model_copy(update={"golden": (1, 2)})
    (instance,) = make(question, n_candidates=2)
    assert sum(one.is_golden for one in instance.contexts) == 1
    assert list(instance.golden_outside.values()) == [1]


def test_ids_say_nothing_about_the_place_in_the_document():
    (instance,) = make()
    assert all("p1" not in one.id and len(one.id) == 16 for one in instance.contexts)


def test_golden_sections_can_be_named():
    question = ASKED.model_copy(update={"golden": ("results",)})
    assert make(question) == make()


def test_a_section_that_repeats_the_golden_one_is_left_out():
    text = POND.sections[2].text
    names = (*NAMES, "SUMMARY")
    pond = paper(1, *(one.text for one in POND.sections), f"In short: {text}", names=names)
    (instance,) = make(documents=(pond, *OTHERS))
    assert not any("In short" in one.text for one in instance.contexts)


def test_a_text_that_comes_twice_is_one_candidate():
    twin = paper(9, *(one.text for one in POND.sections))
    (instance,) = make(documents=(POND, twin, *OTHERS))
    texts = [one.text for one in instance.contexts]
    assert len(set(texts)) == len(texts)


def test_sections_without_a_heading_have_a_type_too():
    pond = paper(1, *(one.text for one in POND.sections), names=("", " ", "RESULTS"))
    (instance,) = make(documents=(pond, *OTHERS))
    types = {one.distractor_type for one in instance.contexts if one.is_distractor}
    assert types == {"unlabelled"}


def test_embeddings_can_be_the_first_stage():
    texts = [section.text for one in (POND, *OTHERS) for section in one.sections]
    (instance,) = make(embeddings=LsaEmbeddings(texts), n_candidates=6)
    scores = [one.first_stage_score for one in instance.contexts]
    assert scores == sorted(scores, reverse=True)
    assert -1 <= scores[-1] <= scores[0] <= 1 + 1e-6


@pytest.mark.parametrize(
    ("question", "documents", "reason"),
    [
        pytest.param({"golden": ()}, [POND, *OTHERS], "no section is known to answer", id="none"),
        pytest.param({"golden": (0, 1, 2)}, [POND], "the document has no other section", id="all"),
        pytest.param(
            {"golden": (0,)}, [Document(id="p1", text="One piece.")],
            "the document has no other section", id="no-sections",
        ),
    ],
)  # fmt: skip
def test_a_question_that_cannot_be_used_is_left_out_and_told(question, documents, reason):
    left_out = {}
    assert make(ASKED.model_copy(update=question), documents, left_out=left_out) == []
    assert left_out == {"q1": reason}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"document": "p99"}, "question 'q1': unknown document 'p99'"),
        ({"golden": (3,)}, r"'q1': golden must name sections of document 'p1', .* got \[3\]"),
        ({"golden": ("OUTCOME",)}, r"got \['OUTCOME'\]"),
    ],
)
def test_a_question_about_what_is_not_there_is_refused(changes, message):
    with pytest.raises(DatasetError, match=message):
        make(ASKED.model_copy(update=changes))


def test_documents_must_have_texts_and_ids_of_their_own():
    with pytest.raises(DatasetError, match="'p1' is used twice"):
        make(documents=[POND, POND])
    with pytest.raises(DatasetError, match="hold no text"):
        make(documents=[Document(id="p1", text=" ")])


def test_a_pool_of_one_is_refused():
    with pytest.raises(SettingsError, match="n_candidates must be >= 2, got 1"):
        make(n_candidates=1)


def test_the_same_input_gives_the_same_bytes(tmp_path):
    contents = []
    for name in ("a", "b"):
        write_rows(tmp_path / name, make())
        contents.append((tmp_path / name).read_bytes())
    assert contents[0] == contents[1]


def test_what_was_written_is_a_data_set(tmp_path):
    write_rows(tmp_path / "natural.jsonl", make())
    assert list(open_dataset(tmp_path / "natural.jsonl")) == make()


def test_questions_of_articles_name_their_golden_passages_by_place(article_folder):
    found = [(one.document, one.golden) for one in read_article_questions(article_folder)]
    assert found == [("A", (1,)), ("B", (0,))]


def test_documents_and_questions_can_be_two_files(tmp_path):
    documents = write_jsonl(tmp_path / "ponds.jsonl", [POND.model_dump(mode="json")])
    asked = write_jsonl(tmp_path / "asked.jsonl", [ASKED.model_dump(mode="json")])
    source = open_natural(documents, questions=asked)
    assert source.name == "ponds"
    assert list(source.questions()) == [ASKED]
    assert list(source.documents()) == [POND]


def test_documents_without_questions_are_refused(tmp_path):
    documents = write_jsonl(tmp_path / "ponds.jsonl", [POND.model_dump(mode="json")])
    with pytest.raises(DatasetError, match=r"holds no questions .* or --questions FILE"):
        open_natural(documents)
    with pytest.raises(DatasetError, match="no such file or folder"):
        open_natural(tmp_path / "none")


def test_pubmedqas_json_is_a_data_set_with_natural_look_alikes(tmp_path, caplog):
    entry = {
        "QUESTION": "Do pike grow?", "CONTEXTS": ["Pike eat.", "We fed 5.", "Pike grew."],
        "LABELS": ["AIM", "METHODS", "RESULTS"],
    }  # fmt: skip
    path = tmp_path / "pike.json"
    path.write_text(json.dumps({"1": entry, "2": {**entry, "LABELS": ["A", "B", "C"]}}))
    dataset = open_dataset(path)
    (instance,) = dataset
    assert list(dataset) == [instance]
    assert (dataset.name, instance.id, instance.dataset) == ("pike", "1", "pike")
    assert caplog.text.count("left out for want of natural look-alikes: 1") == 1


@pytest.mark.full
@pytest.mark.skipif(not SHARED_DATA.exists(), reason="needs the evaluation data")
def test_real_articles_give_pools_with_look_alikes_and_golden_passages():
    source = open_natural(SHARED_DATA / "scisumm")
    left_out = {}
    made = list(make_natural_instances(source.documents(), source.questions(), left_out=left_out))
    assert len(made) + len(left_out) == 536
    assert len(made) > 500
    assert all(2 <= len(one.contexts) <= 30 for one in made)
    assert all(any(context.is_golden for context in one.contexts) for one in made)
