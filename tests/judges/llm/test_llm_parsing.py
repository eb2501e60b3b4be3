"""Malformed replies give the stated value or the stated failure, never a wrong number."""

import json
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from deepera_graph.chat.parsing import EmptyAnswerError, parse_reply
from deepera_graph.errors import AnswerError
from deepera_graph.judges.llm.prompt import IntentReply, JudgementReply, SummaryReply

GOOD = '{"reason": "r", "evidence": [1], "score": 0.9}'


@pytest.mark.parametrize(
    ("text", "score"),
    [
        pytest.param(GOOD, 0.9, id="plain"),
        pytest.param(f"```json\n{GOOD}\n```", 0.9, id="fenced"),
        pytest.param(f"```\n{GOOD}", 0.9, id="fence-never-closed"),
        pytest.param(f"Here you are: {GOOD} Hope it helps.", 0.9, id="prose-around"),
        pytest.param(f'<think>score 0.1? {{"score": 0.1}}</think>{GOOD}', 0.9, id="think"),
        pytest.param(f"maybe 0.2\n</think>\n{GOOD}", 0.9, id="think-opened-by-the-template"),
        pytest.param(f"<reasoning>hm</reasoning>{GOOD}", 0.9, id="reasoning-block"),
        pytest.param(f'{{"score": 0.1? </think>{GOOD}', 0.9, id="think-ends-in-what-is-cut"),
        pytest.param(
            '{"reason": "</think>", "evidence": [], "score": 0.9,}', 0.9, id="tag-in-text"
        ),
        pytest.param(
            "{'reason': '</think>', 'evidence': [], 'score': 0.9}", 0.9, id="tag-in-python-text"
        ),
        pytest.param(f"{GOOD}\n{GOOD}", 0.9, id="said-twice-the-same"),
        pytest.param('{"reason": "r", "evidence": [1], "score": 0.9,}', 0.9, id="trailing-comma"),
        pytest.param('{"reason": "r", "evidence": [1,], "score": 0.9}', 0.9, id="comma-in-list"),
        pytest.param("{'reason': 'r', 'evidence': [1], 'score': 0.9}", 0.9, id="python-literal"),
        pytest.param('{"reason": "a\nb", "evidence": [1], "score": 0.9}', 0.9, id="raw-line-break"),
        pytest.param('{"reason": "{", "evidence": [], "score": 0.9}', 0.9, id="brace-in-text"),
        pytest.param('{"reason": "r", "evidence": [], "score": "0.9"}', 0.9, id="decimal-as-text"),
        pytest.param('{"reason": "r", "evidence": [], "score": " 1.0 "}', 1.0, id="one-as-text"),
        pytest.param('{"reason": "r", "evidence": [], "score": 1}', 1.0, id="whole-one"),
        pytest.param('{"reason": "r", "evidence": [], "score": 0}', 0.0, id="whole-zero"),
        pytest.param('{"reason": "", "evidence": [], "score": 0.5, "x": 1}', 0.5, id="extra-field"),
        pytest.param('{"score": 0.5, "evidence": [], "reason": "late"}', 0.5, id="other-order"),
        pytest.param('{"set": 1} ' + GOOD, 0.9, id="another-object-first"),
        pytest.param('[{"reason": "r", "evidence": [], "score": 0.7}]', 0.7, id="inside-a-list"),
        pytest.param('{"reason": "β ≥ 2", "evidence": [2], "score": 0.8}', 0.8, id="unicode"),
        pytest.param('{"reason": "r", "evidence": [1], "score": 8e-1}', 0.8, id="exponent"),
        pytest.param('\ufeff{"reason": "r", "evidence": [], "score": 0.4}', 0.4, id="byte-mark"),
    ],
)
def test_form_is_repaired_and_the_value_is_as_written(text: str, score: float) -> None:
    assert parse_reply(text, JudgementReply).score == score


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("The passage is highly relevant.", id="prose"),
        pytest.param("0.9", id="bare-number"),
        pytest.param('{"reason": "r", "evidence": [1], "score": 0.', id="cut-in-the-number"),
        pytest.param('{"reason": "r", "evidence": [1], "score": 0.9', id="cut-after-the-number"),
        pytest.param('{"reason": "r", "evid', id="cut-in-a-key"),
        pytest.param('{"reason": "it says {\\"score\\": 0.9}', id="an-answer-inside-cut-text"),
        pytest.param('{"reason": "r", "evidence": [], "score": 70}', id="of-a-hundred"),
        pytest.param('{"reason": "r", "evidence": [], "score": 8}', id="of-ten"),
        pytest.param('{"reason": "r", "evidence": [], "score": 1.01}', id="just-above-one"),
        pytest.param('{"reason": "r", "evidence": [], "score": -0.1}', id="negative"),
        pytest.param('{"reason": "r", "evidence": [], "score": "8/10"}', id="fraction"),
        pytest.param('{"reason": "r", "evidence": [], "score": "85%"}', id="percent"),
        pytest.param('{"reason": "r", "evidence": [], "score": "70"}', id="of-a-hundred-as-text"),
        pytest.param('{"reason": "r", "evidence": [], "score": "0,9"}', id="decimal-comma"),
        pytest.param('{"reason": "r", "evidence": [], "score": "high"}', id="word"),
        pytest.param('{"reason": "r", "evidence": [], "score": null}', id="null"),
        pytest.param('{"reason": "r", "evidence": [], "score": true}', id="true"),
        pytest.param('{"reason": "r", "evidence": [], "score": NaN}', id="nan"),
        pytest.param('{"reason": "r", "evidence": [], "score": Infinity}', id="infinity"),
        pytest.param('{"reason": "r", "evidence": [], "score": [0.9]}', id="list"),
        pytest.param('{"reason": "r", "evidence": [], "score": {"value": 0.9}}', id="object"),
        pytest.param('{"reason": "r", "evidence": []}', id="no-score"),
        pytest.param('{"reason": "r", "evidence": [], "relevance": 0.9}', id="other-key"),
        pytest.param('{"evidence": [], "score": 0.9}', id="no-reason"),
        pytest.param('{"reason": "r", "score": 0.9}', id="no-evidence"),
        pytest.param('{"reason": "r", "evidence": "1", "score": 0.9}', id="evidence-as-text"),
        pytest.param('{"reason": "r", "evidence": [1.5], "score": 0.9}', id="half-a-sentence"),
        pytest.param('{"answer": {"reason": "r", "evidence": [], "score": 0.9}}', id="wrapped"),
        pytest.param(
            '{"reason": "r", "evidence": [], "score": 0.2, "score": 0.9}', id="score-twice"
        ),
        pytest.param(
            GOOD + ' {"reason": "r", "evidence": [1], "score": 0.2}', id="two-that-differ"
        ),
        pytest.param("I cannot help with that.", id="refusal-in-words"),
        pytest.param('"{\\"score\\": 0.9', id="broken-string"),
        pytest.param("[0.9]", id="list-of-a-number"),
        pytest.param("{reason: r, evidence: [], score: 0.9}", id="no-quotation-marks"),
        pytest.param("<score>0.9</score>", id="markup"),
    ],
)
def test_what_is_no_answer_is_a_failure(text: str) -> None:
    with pytest.raises(AnswerError):
        parse_reply(text, JudgementReply)


@pytest.mark.parametrize("text", ["", "  \n", "{}", "<think>long</think>", "<think>never ended"])
def test_nothing_is_told_apart_from_nonsense(text: str) -> None:
    with pytest.raises(EmptyAnswerError):
        parse_reply(text, JudgementReply)


@pytest.mark.parametrize("intent", ["causal", "Mechanism", "", None, 3])
def test_an_unknown_kind_of_intent_is_a_failure(intent: object) -> None:
    fields = {"topic": "t", "entity_type": "e", "expected_answer_type": "other"}
    text = json.dumps({**fields, "intent": intent})
    with pytest.raises(AnswerError):
        parse_reply(text, IntentReply)


def test_an_empty_summary_is_an_answer() -> None:
    assert parse_reply('{"text": ""}', SummaryReply).text == ""


def test_reading_takes_time_linear_in_the_length() -> None:
    with pytest.raises(AnswerError):
        parse_reply("{" * 20_000, JudgementReply)


OTHER = '{"reason": "r", "evidence": [1], "score": 0.2}'
BITS = [
    GOOD, OTHER, "{", "}", "[", "]", '"', "'", ",", ":", "score", '"score"', "0.9", "0.2", "{}",
    "\\", "\n", "<think>", "</think>", "```json", "```", "//", "/*", "*/", "#", "None", "{{",
    "{'score': 0.2}",
]  # fmt: skip


@pytest.mark.full
@settings(max_examples=400)
@given(st.lists(st.sampled_from(BITS), max_size=12))
@example(["{{", "'score'", ":", "0.2", "}", "}"])
@example(["{", "'score'", ":", "0.2", ",", "'score'", ":", "0.9", "}"])
@example([GOOD, "{", "</think>", "}"])
@example([GOOD, "{", "</think>"])
@example([GOOD, "{", "/*", "</think>", "*/", "}"])
@example([GOOD, "{", "#", "</think>", "\n", "}"])
def test_whatever_is_said_there_is_a_value_that_was_said_or_a_failure(bits: list[str]) -> None:
    text = "".join(bits)
    try:
        score = parse_reply(text, JudgementReply).score
    except AnswerError:
        return
    outside = text.rpartition("</think>")[2]
    assert {0.9: GOOD, 0.2: OTHER}[score] in outside or "<think>" in text


@pytest.mark.parametrize("end", range(len(GOOD)))
def test_a_reply_cut_anywhere_is_a_failure(end: int) -> None:
    with pytest.raises(AnswerError):
        parse_reply(GOOD[:end], JudgementReply)
    with pytest.raises(AnswerError):
        parse_reply(f"```json\n{GOOD[:end]}", JudgementReply)


@pytest.mark.parametrize("end", range(1, len(OTHER)))
def test_a_second_answer_cut_anywhere_is_a_failure(end: int) -> None:
    with pytest.raises(AnswerError):
        parse_reply(f"{GOOD}\n{OTHER[:end]}", JudgementReply)


def test_an_object_that_was_shown_is_a_quote() -> None:
    shown = 'Passage: {"reason": "r",\n "evidence": [1], "score": 0.9} and more.'
    with pytest.raises(AnswerError, match="repeats an object that it was shown"):
        parse_reply(f"The passage says {GOOD}.", JudgementReply, shown)
    assert parse_reply(OTHER, JudgementReply, shown).score == 0.2


@pytest.mark.full
@pytest.mark.parametrize(
    "text",
    [
        "{" * 50_000,
        "{x}" * 5_000,
        '{"a": ' * 50_000,
        "</think>" * 20_000,
        "{</think>" * 20_000,
        "{</think>}" * 20_000,
        "<think>" * 20_000,
        "<think></thinking>" * 10_000,
        '"' * 50_001 + "{",
        '{"' + '\\"' * 50_000,
        "{//" * 20_000 + "}" * 20_000,
        "{/*" * 20_000 + "}" * 20_000,
        "{, " * 20_000 + "}" * 20_000,
        "[" * 100_000 + "{}",
        "{'a':" * 20_000 + "}" * 20_000,
    ],
    ids=lambda text: text[:9],
)
def test_a_long_reply_takes_no_long_time(text: str) -> None:
    began = time.process_time()
    with pytest.raises(AnswerError):
        parse_reply(text, JudgementReply)
    assert time.process_time() - began < 2
