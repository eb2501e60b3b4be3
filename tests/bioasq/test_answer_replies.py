"""What models write instead of an answer, and what each comes to: a submission, or a named problem.

Each line is one reply to one prompt; the server gives it again when it is asked a second time.
"""

import json

import pytest

from deepera_graph.bioasq.phase_b.answer import TypedAnswerer
from deepera_graph.bioasq.phase_b.replies import fit_ideal, fit_names, read_names, read_yes_no
from deepera_graph.bioasq.phase_b.roles import typed_backend
from support.bioasq_answers import IDEAL, asked, part_of
from support.openai_server import ChatServer, Reply

pytestmark = pytest.mark.full

REFUSED = Reply(refusal="I cannot help with that.")
TWELVE = [f"ligase BUM{n}" for n in range(12)]
SENTENCE = "Celalol lowered the airway resistance of ten adults by a fifth in a week. "  # 14 words
LONG = (SENTENCE * 20).strip()

EXACT_REPLIES = [  # type, reply, exact answer or None, a word of its problems
    ("yesno", '{"answer": "yes"}', "yes", ""),
    ("yesno", '{"answer": "Yes"}', "yes", ""),
    ("yesno", '{"answer": true}', "yes", ""),
    ("yesno", '{"answer": ["no"]}', "no", ""),
    ("yesno", '{"exact_answer": "no"}', "no", ""),
    ("yesno", '{"answer": {"answer": "no"}}', "no", ""),
    ("yesno", '{"answer": "Yes, in adults; no study tested children."}', "yes", ""),
    ("yesno", "Yes.", "yes", ""),
    ("yesno", "**No**, it does not.", "no", ""),
    ("yesno", "The snippets agree, so the answer is yes.", "yes", ""),
    ("yesno", "<think>no? no.</think>\nyes", "yes", ""),
    ("yesno", '<think>{"answer": "no"}</think>{"answer": "yes"}', "yes", ""),
    ("yesno", '```json\n{"answer": "no"}\n```', "no", ""),
    ("yesno", "{'answer': 'no'}", "no", ""),
    ("yesno", '{"answer": "maybe"}', None, "neither yes nor no"),
    ("yesno", "There is no evidence for that.", None, "no complete JSON object"),
    ("yesno", "It is not known.", None, "no complete JSON object"),
    ("yesno", '{"answer": "yes"} {"answer": "no"}', None, "differ"),
    ("yesno", '{"verdict": "supported"}', None, "missing"),
    ("yesno", '{"answer": null}', None, "neither yes nor no"),
    ("yesno", "", None, "empty"),
    ("yesno", "{}", None, "empty object"),
    ("yesno", REFUSED, None, "refused"),
    ("yesno", '{"answer": "ye', None, "no complete JSON object"),
    ("factoid", '{"names": ["helicase ZIR3"]}', [["helicase ZIR3"]], ""),
    ("factoid", json.dumps({"names": TWELVE}), [[one] for one in TWELVE[:5]], "first 5 are kept"),
    ("factoid", '{"names": ["helicase ZIR3 (ZIR3)"]}', [["helicase ZIR3"]], "'ZIR3'"),
    ("factoid", '{"names": ["poly(ADP-ribose) kinase"]}', [["poly(ADP-ribose) kinase"]], ""),
    ("factoid", '{"names": [["helicase ZIR3", "ZIR3"]]}', [["helicase ZIR3"]], ""),
    ("factoid", '{"names": [{"name": "ZIR3", "score": 0.9}]}', [["ZIR3"]], ""),
    ("factoid", '{"names": "ZIR3"}', [["ZIR3"]], ""),
    ("factoid", '{"answer": "ZIR3."}', [["ZIR3"]], ""),
    ("factoid", '{"names": [42]}', [["42"]], ""),
    ("factoid", '["ZIR3", "BUM7"]', [["ZIR3"], ["BUM7"]], ""),
    ("factoid", "['ZIR3', 'BUM7']", [["ZIR3"], ["BUM7"]], ""),
    ("factoid", '{"names": ["ZIR3", "zir3", " ZIR3 "]}', [["ZIR3"]], "given twice"),
    ("factoid", '{"names": ["unknown"]}', None, "no name"),
    ("factoid", '{"names": []}', None, "no name"),
    ("factoid", '{"names": ["I cannot answer that."]}', None, "no name"),
    ("factoid", "I am sorry, I cannot tell from the snippets.", None, "no complete JSON object"),
    ("factoid", '{"names": null}', None, "not a list"),
    ("list", "- ankle swelling\n- muscle cramps", [["ankle swelling"], ["muscle cramps"]], ""),
    ("list", "1. ankle swelling\n2. muscle cramps", [["ankle swelling"], ["muscle cramps"]], ""),
    ("list", "They are: nausea, rash and cramps", [["nausea"], ["rash"], ["cramps"]], ""),
    ("list", '{"names": "nausea; rash, itching"}', [["nausea"], ["rash, itching"]], ""),
    ("list", '{"entities": ["nausea", null, ""]}', [["nausea"]], ""),
    ("list", json.dumps({"names": ["a" * 101, "rash"]}), [["rash"]], "above 100 characters"),
    (
        "list",
        "Many patients who took the drug for longer than that reported nausea. Some had rash.",
        None,
        "no complete JSON object",
    ),
    ("list", '{"names": ["nausea"], "names": ["rash"]}', None, "names a field twice"),
    ("list", "lorem ipsum, I like turtles", None, "no complete JSON object"),
    ("list", '{"names": ["lorem ipsum", "I like turtles"]}', None, "an item is a sentence"),
]  # fmt: skip
IDEAL_REPLIES = [
    (json.dumps({"text": IDEAL}), IDEAL, ""),
    (IDEAL, IDEAL, ""),
    (f"<think>Hm.</think>{IDEAL}", IDEAL, ""),
    (json.dumps({"ideal_answer": IDEAL}), IDEAL, ""),
    (json.dumps({"ideal_answer": [IDEAL]}), IDEAL, ""),
    (json.dumps({"text": f"- {IDEAL}\n- {IDEAL}"}), f"{IDEAL} {IDEAL}", ""),
    (f"**Answer:** {IDEAL}", IDEAL, ""),
    (json.dumps({"text": LONG}), (SENTENCE * 14).strip(), "cut from 280 words to 196"),
    (json.dumps({"text": "word " * 300}), ("word " * 200).strip(), "cut from 300 words to 200"),
    (json.dumps({"text": ""}), "", "must have words"),
    (json.dumps({"text": "..."}), "", "must have words"),
    (json.dumps({"text": 7}), "", "not a text"),
    (json.dumps({"text": "I'm sorry, but I cannot help."}), "", "refuses"),
    ("As an AI, I do not know.", "", "no complete JSON object"),
    ("", "", "empty"),
    (REFUSED, "", "refused"),
]


def played(kind, part, reply):
    """Answer a question with one reply for one part, and a good one for the other."""

    def play(request):
        if (part_of(request) == "ideal") == (part == "ideal"):
            return reply
        return json.dumps({"text": IDEAL} if part == "exact" else {"answer": "yes"})

    with ChatServer(play) as server:
        backend = typed_backend("openai:scripted", base_url=server.base_url)
        return TypedAnswerer(backend, fallback=False).answer(asked(kind))


@pytest.mark.parametrize(("kind", "reply", "exact", "problem"), EXACT_REPLIES)
def test_an_exact_answer_is_read_or_its_problem_is_named(kind, reply, exact, problem):
    found = played(kind, "exact", reply)
    plain = found.to_dict()
    assert plain["exact_answer"] == exact
    assert found.exact_status == ("failed" if exact is None else "answered")
    assert found.is_complete == (exact is not None)
    assert problem in " ".join(found.problems)
    assert bool(found.problems) == bool(problem)


@pytest.mark.parametrize(("reply", "ideal", "problem"), IDEAL_REPLIES)
def test_an_ideal_answer_is_read_or_its_problem_is_named(reply, ideal, problem):
    found = played("yesno", "ideal", reply)
    assert found.ideal == ideal
    assert found.ideal_status == ("answered" if ideal else "failed")
    assert problem in " ".join(found.problems)
    assert bool(found.problems) == bool(problem)


def test_a_first_reply_that_cannot_be_read_is_asked_for_again_and_told():
    replies = iter(["Hard to say.", '{"answer": "no"}'])

    def play(request):
        return json.dumps({"text": IDEAL}) if part_of(request) == "ideal" else next(replies)

    with ChatServer(play) as server:
        backend = typed_backend("openai:scripted", base_url=server.base_url)
        found = TypedAnswerer(backend).answer(asked("yesno"))
    assert found.exact == "no"
    assert found.problems == ("exact: asked twice, as the reply holds no complete JSON object",)
    assert found.usage["exact"].reasked_calls == 1


@pytest.mark.parametrize("said", ["known", "unknown", "not sure", "yes and no", None, [], 3])
def test_what_the_evaluator_would_take_for_a_no_is_none(said):
    with pytest.raises(ValueError, match="yes"):
        read_yes_no(said)


def test_names_are_never_evaluated():
    code = "[__import__('os').getcwd()]"
    assert read_names(code) == ["__import__('os').getcwd()"]


def test_a_hundred_names_of_a_list_are_kept():
    names, notes = fit_names([f"n{n}" for n in range(130)], factoid=False)
    assert len(names) == 100
    assert notes == ["130 names: the first 100 are kept"]


def test_two_hundred_words_are_not_cut():
    text = "word " * 199 + "end."
    assert fit_ideal(text) == (text, [])
