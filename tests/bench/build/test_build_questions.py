"""Questions: which pairs can be used, and pairs that were made elsewhere."""

import pytest

from bench.build.lake_abstracts import lake_abstracts
from bench.lakes import write_jsonl
from deepera_graph.calibration.instance import DatasetError
from deepera_graph.lab.build.corpus import Chunk, read_corpus
from deepera_graph.lab.build.writing.distractors import QAPair
from deepera_graph.lab.build.writing.questions import PairsFile, find_problem
from deepera_graph.lab.data.readers import read_instances

CHUNK = Chunk("a#1", "Ice covered the lake for 90 days. Trout fed on  stonefly larvae.", "a")


@pytest.mark.parametrize(
    ("question", "answer", "problem"),
    [
        pytest.param("What did trout feed on?", "stonefly larvae", "", id="usable"),
        pytest.param("What did trout feed on?", "Stonefly Larvae.", "", id="case-and-stop"),
        pytest.param("What did trout feed on?", "on stonefly", "", id="spaces"),
        pytest.param(" ", "stonefly larvae", "blank-pair", id="no-question"),
        pytest.param("What did trout eat?", "", "blank-pair", id="no-answer"),
        pytest.param("1234567890", "90 days", "not-a-question", id="no-words"),
        pytest.param("2018-04-30: a, b?", "90 days", "not-a-question", id="no-words-either"),
        pytest.param("What did trout eat?", "mayflies", "answer-not-in-passage", id="invented"),
        pytest.param(
            "Which fish feed on stonefly larvae?", "stonefly larvae", "question-holds-answer",
            id="given-away",
        ),
        pytest.param(
            "How long was the ice in this study?", "90 days", "question-points-at-source",
            id="this-study",
        ),
        pytest.param(
            "What did the authors count?", "larvae", "question-points-at-source", id="authors"
        ),
    ],
)  # fmt: skip
def test_a_pair_is_usable_or_says_why_not(question, answer, problem):
    assert find_problem(QAPair(question, answer, CHUNK)) == problem


def test_an_answer_of_31_words_is_too_long():
    words = " ".join(f"w{number}" for number in range(31))
    assert (
        find_problem(QAPair("Which words are these?", words, Chunk("a#1", words, "a")))
        == "long-answer"
    )
    shorter = words.rpartition(" ")[0]
    assert find_problem(QAPair("Which words are these?", shorter, Chunk("a#1", words, "a"))) == ""


async def test_pairs_of_a_file_go_to_the_chunk_that_holds_the_answer(tmp_path):
    path = write_jsonl(
        tmp_path / "own.jsonl",
        [
            {"document": "L3", "pairs": [["How long?", "weeks"], ["Where?", "no such place"]]},
            {"document": "L3", "pairs": [["What kept the fish?", "Lakes with"]]},
        ],
    )
    corpus = read_corpus(lake_abstracts(), 40, [])
    document, chunks = corpus.documents["L3"], corpus.chunks_of("L3")
    assert len(chunks) > 1
    pairs = await PairsFile(path).pairs(document, chunks)
    assert [pair.golden for pair in pairs] == [
        next(one for one in chunks if "weeks" in one.text), chunks[0], chunks[-1],
    ]  # fmt: skip
    assert PairsFile(path).name == "own"
    assert await PairsFile(path).pairs(corpus.documents["L1"], corpus.chunks_of("L1")) == []


@pytest.mark.full
def test_a_file_of_pairs_makes_a_data_set_of_its_own(server, build_lakes, tmp_path):
    rows = [
        {"document": one.id, "pairs": [[f"What happened in {one.id}?", one.text.split(". ")[1]]]}
        for one in lake_abstracts()[:5]
    ]
    path = write_jsonl(tmp_path / "mine.jsonl", rows)
    built = build_lakes(server, generators=(f"file:{path}",), settings=("base",), n_questions=3)
    made = list(read_instances(built.folder / "mine.base.jsonl"))
    assert [one.question[:13] for one in made] == ["What happened"] * 3
    assert server.calls == 0
    assert built.manifest["generators"][0]["name"] == "mine"
    assert built.manifest["dropped"]["mine"]["no-pair"] > 0


def test_a_bad_line_of_a_file_of_pairs_is_named(tmp_path):
    path = write_jsonl(tmp_path / "own.jsonl", [{"document": "L3", "pairs": [["no answer"]]}])
    with pytest.raises(DatasetError, match="line 1"):
        PairsFile(path)


@pytest.mark.full
def test_several_questions_of_one_document_are_counted(server, build_lakes, tmp_path):
    rows = [
        {
            "document": one.id,
            "pairs": [
                [f"What was done in {one.id}?", "We added"],
                [f"When was it done in {one.id}?", "week"],
            ],
        }
        for one in lake_abstracts()
    ]
    path = write_jsonl(tmp_path / "two.jsonl", rows)
    built = build_lakes(
        server, generators=(f"file:{path}",), settings=("base",), n_questions=5, per_document=2
    )
    ids = [one.id for one in read_instances(built.folder / "two.base.jsonl")]
    assert len(ids) == 5
    assert built.manifest["datasets"]["two"]["documents_asked"] == 3


@pytest.mark.full
def test_equal_questions_count_once(server, build_lakes, tmp_path):
    rows = [{"document": one.id, "pairs": [["What was done?", "We added"]]}
            for one in lake_abstracts()]  # fmt: skip
    path = write_jsonl(tmp_path / "same.jsonl", rows)
    built = build_lakes(server, generators=(f"file:{path}",), settings=("base",), n_questions=5)
    assert built.manifest["datasets"]["same"]["questions"] == 1
    assert built.manifest["dropped"]["same"]["question-asked-twice"] > 30


@pytest.mark.full
def test_another_chunk_with_the_answers_words_is_in_no_pool(server, build_lakes, tmp_path):
    lakes = lake_abstracts()
    rows = [{"document": "L5", "pairs": [["What lives in cold water?", "cold lakes"]]}]
    path = write_jsonl(tmp_path / "twice.jsonl", rows)
    twice = lakes[5].model_copy(update={"text": f"{lakes[5].text} Not all cold lakes are alike."})
    built = build_lakes(
        server,
        documents=[*lakes[:5], twice, *lakes[6:]],
        generators=(f"file:{path}",),
        settings=("base",),
        max_tokens=40,
        min_group=1,
        n_contexts=30,
    )
    [made] = read_instances(built.folder / "twice.base.jsonl")
    texts = [one.text for one in made.contexts if one.id.startswith("L5#") and not one.is_golden]
    assert [one.is_golden for one in made.contexts].count(True) == 1
    assert not any("cold lakes" in text for text in texts)
    assert len(made.contexts) == 30
    assert built.manifest["datasets"]["twice"]["golden"]["chunks_left_out"] == 1
