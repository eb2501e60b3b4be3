"""A benchmark of searches for papers, from topics to graded papers, over a planted world."""

from bench.quest.conftest import TOPICS, read
from bench.quest.scripted import Scripted


def test_planted_answers_are_found_and_nothing_else(build, planted):
    """Three judges of accuracy .95, and an adjudicator of the same."""
    judges = [Scripted(model_name=f"judge-{one}", planted=planted, accuracy=0.95) for one in "abc"]
    result = build(topics=TOPICS, judges=judges)
    asked = [text for four in planted.questions.values() for text, _ in four.values()]
    wanted = {(text, id) for text in asked for id in planted.answers(text)}
    kept = read(result.folder, "queries.jsonl")
    found = {(one["query"], id) for one in kept for id in one["gold"]}
    assert result.failed == {}
    assert {one["query"] for one in kept} == {text for text, _ in wanted}
    assert result.manifest["pairs"]["adjudicated"] > 0
    assert len(wanted & found) / len(wanted) >= 0.95
    assert len(wanted & found) / len(found) >= 0.95
