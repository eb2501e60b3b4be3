"""`deepera ask --multihop`: with a chat model the path and the answer, without one the passages."""

import json

import pytest

from support import hop_world as hops
from support.openai_server import ChatServer, Reply

pytestmark = pytest.mark.full


@pytest.fixture
def notes(questions):
    lines = [
        {"id": name, "title": title, "text": text} for name, (title, text) in hops.PASSAGES.items()
    ]
    return questions(*lines, name="notes.jsonl")


@pytest.fixture
def ask(deepera, notes):
    """Asks a question of several hops of the server; the result of the command, and the server."""

    def run(question, *args, play=hops.play, where=(notes,)):
        with ChatServer(play) as server:
            model = ("--model", "scripted", "--base-url", server.base_url)
            result = deepera("ask", question, *where, "--multihop", *model, *args)
            return result, server

    return run


def test_the_path_and_the_answer_are_shown(ask):
    result, _ = ask(hops.TWO)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[2:5] == [
        "step 1  Who founded Versus Books?",
        "        Anna Berg",
        "        [versus] Versus Books: “It was founded in 1998 by Anna Berg.”",
    ]
    assert "answer  Lund" in lines
    assert lines[-1].startswith("answered: 2 steps (complete), 4 calls")


def test_json_has_the_whole_path(ask):
    result, _ = ask(hops.FOUR, "--json")
    said = json.loads(result.stdout)
    assert said["answer"]["text"] == "1992"
    assert [one["answer"] for one in said["steps"]] == ["Anna Berg", "Nils Berg", "Falun", "1992"]
    assert said["steps"][0]["passages"][0]["id"] == "versus"
    assert said["manifest"]["model"] == "scripted"


def test_a_collection_is_searched_once_a_step(deepera, ask, notes, tmp_path):
    place = ("--library", "notes", "--path", tmp_path / "store")
    assert deepera("index", notes, *place).exit_code == 0
    result, _ = ask(hops.TWO, where=place)
    assert result.exit_code == 0, result.output
    assert "answer  Lund" in result.stdout


def test_what_was_asked_before_is_not_asked_again(deepera, notes, tmp_path):
    with ChatServer(hops.play) as server:
        model = ("--model", "scripted", "--base-url", server.base_url, "--cache", tmp_path / "c")
        shown = [
            deepera("ask", hops.TWO, notes, "--multihop", *model).stdout.splitlines()[:-1]
            for _ in range(2)
        ]
    assert shown[0] == shown[1]
    assert len(server.requests) == 4


def test_too_little_evidence_is_no_failure(ask):
    result, _ = ask(hops.NOWHERE)
    assert result.exit_code == 0
    assert "answer  none (insufficient evidence:" in result.stdout


def test_a_spent_budget_is_told_and_some_failed(ask):
    result, server = ask(hops.TWO, "--max-calls", "3")
    assert result.exit_code == 1
    assert len(server.requests) == 3
    assert "note: " in result.stdout
    assert "budget reached: 3 calls" in result.stdout


def test_the_steps_can_be_capped(ask, monkeypatch):
    monkeypatch.setenv("DEEPERA_MAX_STEPS", "1")
    result, _ = ask(hops.FOUR)
    assert "1 step (max_steps)" in result.stdout


def test_a_model_that_says_nothing_usable_is_a_failure(ask):
    result, _ = ask(hops.TWO, play=lambda request: Reply(content="nonsense"))
    assert result.exit_code == 3
    assert "planning failed" in result.stderr


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--threshold", "0.5"], "--threshold does not go with --multihop"),
        (["--preset", "fast"], "--preset does not go with --multihop"),
        (["--per-passage"], "--per-passage does not go with --multihop"),
        (["--format", "csv"], "--format csv does not go with --multihop"),
    ],
)
def test_options_of_judging_alone_are_refused(ask, args, said):
    result, server = ask(hops.TWO, *args)
    assert result.exit_code == 2
    assert said in result.stderr
    assert server.requests == []


def test_without_a_chat_model_the_passages_on_the_way_are_found(deepera, notes):
    result = deepera("ask", hops.TWO, notes, "--multihop", "--top-n", "3")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    heads = [one for one in lines if one[2:3] == "."]
    found = {one.partition("[")[2].partition("]")[0] for one in heads}
    assert len(heads) == 3
    assert {"versus", "anna"} <= found
    assert "led to by [versus]" in result.stdout
    assert lines[-1].endswith("for an answer give --model")


def test_the_passages_on_the_way_are_there_for_programs(deepera, notes):
    said = json.loads(deepera("ask", hops.TWO, notes, "--multihop", "--json").stdout)
    path = {one["id"]: one for one in said["passages"]}
    assert path["versus"]["hop"] == 0
    assert path["anna"]["via"] == "versus"
    assert path["anna"]["text"] == hops.PASSAGES["anna"][1]


def test_a_backend_without_a_chat_model_leaves_a_configured_model_out(
    deepera, notes, tmp_path, monkeypatch
):
    (tmp_path / "deepera.toml").write_text('model = "openai:gpt-5-mini"\n')
    monkeypatch.setenv("DEEPERA_CONFIG", str(tmp_path / "deepera.toml"))
    result = deepera("ask", hops.TWO, notes, "--multihop", "--backend", "local")
    assert result.exit_code == 0, result.output
    assert "led to by [versus]" in result.stdout


def test_a_backend_is_not_both_without_and_with_a_chat_model(ask):
    result, server = ask(hops.TWO, "--backend", "local")
    assert result.exit_code == 2
    assert "--backend does not go with --multihop" in result.stderr
    assert server.requests == []


def test_a_search_that_finds_nothing_is_told(deepera, notes):
    result = deepera("ask", "Quokka?", notes, "--multihop")
    assert result.exit_code == 0
    assert "no passage shares a word with the question" in result.stderr


@pytest.mark.parametrize("form", ["text", "json"])
def test_passages_that_have_few_words_of_the_question_are_told_to(deepera, notes, form):
    poor = ("ask", "Which surveyor measured basalt columns of Iceland?", notes, "--multihop")
    result = deepera(*poor, "--format", form)
    assert result.exit_code == 0
    assert "few words of the question; none has measured, basalt, columns" in result.stderr
    assert "few words" not in deepera("ask", hops.TWO, notes, "--multihop").stderr


def test_passages_on_the_way_are_cited(deepera, questions):
    metadata = {"title": "Rye", "authors": ["Lee"], "year": 2019, "doi": "10.1000/rye.1"}
    notes = questions(
        {"id": "rye", "text": "Rye needs cold.", **metadata}, {"id": "oat", "text": "Oats need it."}
    )
    shown = ("ask", "What does Rye need?", notes, "--multihop")
    assert "[rye] Lee. Rye. 2019. doi:10.1000/rye.1\n" in deepera(*shown).stdout
    said = {one["id"]: one for one in json.loads(deepera(*shown, "--json").stdout)["passages"]}
    assert said["rye"]["citation"]["doi"] == "10.1000/rye.1"
    assert said["rye"]["metadata"]["year"] == 2019


@pytest.mark.parametrize(
    ("condition", "code", "said"),
    [
        ("title=Rye", 0, "no passage meets --where title=Rye, of"),
        ("titel=Lund", 2, "no passage has metadata 'titel'; did you mean 'title'?"),
    ],
)
def test_a_condition_that_leaves_nothing_is_told(deepera, notes, condition, code, said):
    result = deepera("ask", hops.TWO, notes, "--multihop", "--where", condition)
    assert result.exit_code == code
    assert said in result.stderr
    assert "no passage shares a word" not in result.stderr


@pytest.mark.parametrize("option", ["--answer", "--adaptive"])
def test_an_answer_needs_a_chat_model(deepera, notes, option):
    result = deepera("ask", hops.TWO, notes, "--multihop", option)
    assert result.exit_code == 2
    assert f"{option} with --multihop needs --model" in result.stderr


def test_every_step_may_follow_neighbours(deepera, ask, notes, tmp_path):
    place = ("--library", "notes", "--path", tmp_path / "store")
    assert deepera("index", notes, *place, "--neighbours", "3").exit_code == 0
    for where in ((notes,), place):
        result, _ = ask(hops.TWO, "--adaptive", "--json", where=where)
        assert result.exit_code == 0, result.output
        said = json.loads(result.stdout)
        assert said["answer"]["text"] == "Lund"
        metadata = [one["metadata"] for one in said["steps"][0]["passages"]]
        assert {one["iteration"] % 2 for one in metadata} == {0, 1}


def test_a_collection_without_neighbours_is_told_at_the_first_step(deepera, ask, notes, tmp_path):
    place = ("--library", "notes", "--path", tmp_path / "store")
    assert deepera("index", notes, *place).exit_code == 0
    result, server = ask(hops.TWO, "--adaptive", where=place)
    assert result.exit_code == 2
    assert "has no neighbours yet" in result.stderr
    assert server.requests == []


@pytest.mark.parametrize("args", [(), ("--multihop",)])
def test_keys_of_the_agent_are_of_no_matter_elsewhere(deepera, notes, monkeypatch, args):
    for key, value in (("MAX_STEPS", "3"), ("SAMPLES", "2"), ("EQUIVALENCE", "exact")):
        monkeypatch.setenv(f"DEEPERA_{key}", value)
    assert deepera("ask", hops.TWO, notes, *args).exit_code == 0


def test_a_quiet_path_has_no_closing_line(ask):
    loud, quiet = ask(hops.TWO)[0], ask(hops.TWO, "-q")[0]
    assert quiet.stdout.splitlines() == loud.stdout.splitlines()[:-1]
    assert quiet.stderr == ""


def test_passages_on_the_way_are_shown_quietly_without_remarks(deepera, notes):
    question = "Where was the founder of Versus Books born, and which tropical fruit is sour?"
    loud, quiet = (deepera("ask", question, notes, "--multihop", *one) for one in ((), ("-q",)))
    assert "that were read, in path order" in loud.stdout
    assert loud.stdout.startswith(quiet.stdout.rstrip())
    assert "that were read" not in quiet.stdout
    assert quiet.stderr == ""


def test_a_likely_answer_is_marked_in_text_and_json(ask):
    def play(request):
        reply = hops.play(request)
        return {**reply, "support": "likely"} if reply.get("support") == "proven" else reply

    result, _ = ask(hops.TWO, play=play)
    assert result.exit_code == 0
    assert "answer  Lund (likely, not proven)" in result.stdout.splitlines()
    said = json.loads(ask(hops.TWO, "--json", play=play)[0].stdout)
    assert said["answer"]["support"] == "likely"
    assert {one["support"] for one in said["steps"]} == {"likely"}


AGENT = ("You plan", "You answer one step", "You answer a question")


def judging(request):
    """Answers as the agent's chat model; as a judge it takes what speaks of the Bergs."""
    if request.system.startswith(AGENT):
        return hops.play(request)
    return {
        "reason": "r", "evidence": [1], "score": 0.9 if "Berg." in request.user else 0.1,
        "direction": "supports", "topic": "t", "entity_type": "e", "intent": "other",
        "expected_answer_type": "other",
    }  # fmt: skip


def test_a_judge_keeps_passages_in_the_light_of_earlier_answers(ask):
    result, server = ask(hops.TWO, "--judge", "llm", play=judging)
    assert result.exit_code == 0, result.output
    known = "(Known from earlier steps: Who founded Versus Books: Anna Berg.)"
    assert any(known in one.user for one in server.requests)
    replies = [one.user for one in server.requests if one.system.startswith("You answer one step")]
    assert replies
    assert "[versus]" in result.stdout


def test_a_judge_may_be_another_than_the_chat_model(ask):
    result, server = ask(hops.TWO, "--judge", "rules", "--json")
    assert result.exit_code == 0, result.output
    assert all(one.system.startswith(AGENT) for one in server.requests)
    plain, _ = ask(hops.TWO, "--json")
    n_judged, n_found = (
        sum(len(one["passages"]) for one in json.loads(found.stdout)["steps"])
        for found in (result, plain)
    )
    assert n_judged < n_found


def test_answers_are_sampled_from_every_batch(ask, monkeypatch):
    monkeypatch.setenv("DEEPERA_SAMPLES", "2")
    monkeypatch.setenv("DEEPERA_EQUIVALENCE", "exact")
    result, _ = ask(hops.TWO, "--adaptive", "--json")
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    n_batches = [len(one["uncertainty"]) for one in said["steps"]]
    assert min(n_batches) >= 1
    assert said["usage"]["sample"]["calls"] == 2 * sum(n_batches)
    assert said["manifest"]["settings"]["uncertainty"]["samples"] == 2


def test_a_judge_that_nobody_knows_is_refused_before_a_call(ask):
    result, server = ask(hops.TWO, "--judge", "ruls")
    assert result.exit_code == 2
    assert "got 'ruls'" in result.stderr
    assert server.requests == []


def test_a_judge_of_steps_needs_a_chat_model(deepera, notes):
    result = deepera("ask", hops.TWO, notes, "--multihop", "--judge", "rules")
    assert result.exit_code == 2
    assert "--judge goes with --multihop and --model" in result.stderr
