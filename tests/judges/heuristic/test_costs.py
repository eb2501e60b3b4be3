"""No text costs more than its length."""

import tracemalloc
from time import process_time

import pytest

from deepera_graph import EvidenceReranker, InputError, local_backend
from deepera_graph.judges.heuristic.roles import recognize_intent
from deepera_graph.judges.heuristic.topicality import UNKNOWN_TOPIC, find_topic
from deepera_graph.literature.citation import Citation
from deepera_graph.passages import MOST_QUESTION

pytestmark = pytest.mark.full

SECONDS = 4  # each took more than ten times as long, or gigabytes, where its cost grew faster
UNITS = (
    "a",
    "A",
    "1",
    "or ",
    "which, ",
    "which is ",
    "or which: ",
    "replaced ",
    "a-",
    "a: ",
    "“a ",
)


@pytest.fixture(scope="module")
def rules():
    return EvidenceReranker("rules")


@pytest.fixture
def in_time():
    started = process_time()
    yield
    assert process_time() - started < SECONDS


@pytest.mark.parametrize("unit", UNITS)
def test_a_question_as_long_as_may_be_is_read_in_time(rules, in_time, unit):
    question = (unit * MOST_QUESTION)[:MOST_QUESTION]
    assert len(rules.rerank(question, ["Tea lowered glucose by 4% in 60 adults."]).passages) == 1


@pytest.mark.parametrize("unit", UNITS)
def test_a_long_passage_with_long_metadata_is_read_in_time(rules, in_time, unit):
    long = unit * (40_000 // len(unit))
    passage = {"text": long, "title": long, "authors": long, "section": long}
    assert len(rules.rerank("Does tea lower glucose in DBA mice?", [passage]).passages) == 1


def test_names_far_apart_are_split_in_time(in_time):
    far = f"Ann Lee{' ' * 50_000}and{' ' * 50_000}Bo Yu"
    assert Citation.of({"authors": far}, "p").authors == ("Ann Lee", "Bo Yu")


def test_a_word_takes_no_more_memory_than_a_few_of_it():
    find_topic(["glucose"])
    tracemalloc.start()
    find_topic(["a" * 60_000, "b" * 60_000])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000


def test_a_long_word_still_tells_a_domain():
    told = find_topic(["neurons"])
    assert find_topic(["neurons" + "x" * 300]) == told
    assert find_topic(["x" * 300]) == UNKNOWN_TOPIC != told


def test_the_end_of_a_long_question_tells_what_kind_it_is():
    asked = "What is the mechanism of apoptosis?"
    alone = recognize_intent({"question": asked, "problem": ""})
    long = recognize_intent({"question": f"{'Cells die. ' * 300}{asked}", "problem": ""})
    kind, form = long.intent, long.expected_answer_type
    assert (kind, form) == (alone.intent, alone.expected_answer_type)


@pytest.mark.parametrize("judge", ["rules", local_backend])
def test_a_question_that_is_too_long_is_refused_with_its_length(judge):
    reranker = EvidenceReranker(judge if isinstance(judge, str) else judge())
    with pytest.raises(InputError, match="at most 10000 characters, got 10001"):
        reranker.rerank("a" * 10_001, ["Tea."])
