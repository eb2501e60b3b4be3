"""`deepera-lab bioasq answer`: the submission, its log, resuming, and what is refused."""

import json

import pytest

from deepera_graph.bioasq.questions import read_questions, write_questions
from support.bioasq_answers import ALL, IDEAL, answered, asked, part_of, play
from support.openai_server import ChatServer, Reply


@pytest.fixture
def files(tmp_path):
    """A file of questions, and where the submission goes."""
    source, out = tmp_path / "phase_a.json", tmp_path / "submission.json"
    write_questions(source, ALL)
    return source, out


def log_of(out):
    path = out.with_name(f"{out.name}.answers.jsonl")
    return [json.loads(one) for one in path.read_text(encoding="utf-8").splitlines()]


def model_of(server):
    return ("--model", "scripted", "--base-url", server.base_url)


def test_without_a_model_answers_are_extracted_and_said_to_be(deepera_lab, files):
    source, out = files
    result = deepera_lab("bioasq", "answer", source, "-o", out)
    assert result.exit_code == 0, result.stderr
    assert "4 questions: 4 put together from the snippets by rules" in result.stdout
    read = read_questions(out)
    assert [one.id for one in read] == [one.id for one in ALL]
    assert [bool(one.exact_answer) for one in read] == [True, True, True, False]
    assert all(one.ideal_answers for one in read)
    statuses = {one["id"]: one["exact_status"] for one in log_of(out)[1:]}
    assert [statuses[one.id] for one in ALL] == ["extracted"] * 3 + ["not_asked"]


@pytest.mark.full
def test_a_model_answers(deepera_lab, files):
    source, out = files
    with ChatServer(play) as server:
        result = deepera_lab("bioasq", "answer", source, "-o", out, *model_of(server), "--json")
    assert result.exit_code == 0, result.stderr
    summary = json.loads(result.stdout)
    assert summary["outcomes"] == {"answered": 4}
    assert summary["usage"]["calls"] == server.calls == 7
    assert summary["manifest"]["style"] == 2
    assert {one.ideal_answers for one in read_questions(out)} == {(IDEAL,)}


@pytest.mark.full
def test_examples_of_a_training_file_are_shown(deepera_lab, files, tmp_path):
    source, out = files
    training = tmp_path / "training.json"
    write_questions(training, [answered(one.type, name=f"t{n}") for n in range(2) for one in ALL])
    with ChatServer(play) as server:
        how = ("--examples", training, "--shots", "2", "--style", "3")
        result = deepera_lab("bioasq", "answer", source, "-o", out, *model_of(server), *how)
    assert result.exit_code == 0, result.stderr
    assert all("Example 2" in one.user for one in server.requests)


@pytest.mark.full
def test_the_preset_of_the_paper_shows_examples_as_turns_in_style_3(deepera_lab, files, tmp_path):
    source, out = files
    training = tmp_path / "training.json"
    write_questions(training, [answered(one.type) for one in ALL])
    with ChatServer(play) as server:
        how = ("--examples", training, "--preset", "paper", "--json")
        result = deepera_lab("bioasq", "answer", source, "-o", out, *model_of(server), *how)
    assert result.exit_code == 0, result.stderr
    manifest = json.loads(result.stdout)["manifest"]
    assert (manifest["preset"], manifest["style"]) == ("paper", 3)
    sent = {tuple(one["role"] for one in call.messages) for call in server.requests}
    assert sent == {("system", "user", "assistant", "user")}
    assert all("background knowledge" in one.system for one in server.requests)


def test_an_example_that_is_asked_is_refused(deepera_lab, files):
    source, out = files
    with ChatServer(play) as server:
        how = (*model_of(server), "--examples", source)
        result = deepera_lab("bioasq", "answer", source, "-o", out, *how)
    assert result.exit_code == 2
    assert "is one of the questions asked" in result.stderr
    assert not out.exists()


@pytest.mark.full
def test_resume_asks_again_only_what_the_model_did_not_answer(deepera_lab, files):
    source, out = files
    log = out.with_name(f"{out.name}.answers.jsonl")

    def fail_list(request):
        return "Hard to say." if part_of(request) == "list" else play(request)

    with ChatServer(fail_list) as server:
        args = ("bioasq", "answer", source, "-o", out, *model_of(server), "--cache", "off")
        first = deepera_lab(*args)
        kept = log.read_bytes()
        server._answer = play
        server.reset_counts()
        n_before = len(server.requests)
        again = deepera_lab(*args, "--resume")
        n_again = len(server.requests) - n_before
    assert first.exit_code == 1
    assert "rules instead" in first.stderr
    assert "ask for the rest again with: deepera-lab " in first.stderr
    assert "ask for the rest" not in again.stderr
    assert again.exit_code == 0
    assert "3 questions of 4 answered before" in again.stderr
    assert n_again == 2
    assert log.read_bytes().startswith(kept)  # what was paid for is never written anew
    assert [one.id for one in read_questions(out)] == [one.id for one in ALL]


def test_a_log_that_a_kill_cut_off_is_gone_on_with(deepera_lab, files):
    source, out = files
    deepera_lab("bioasq", "answer", source, "-o", out)
    whole = out.read_bytes()
    log = out.with_name(f"{out.name}.answers.jsonl")
    log.write_bytes(log.read_bytes()[:-40])
    out.unlink()
    result = deepera_lab("bioasq", "answer", source, "-o", out, "--resume")
    assert result.exit_code == 0
    assert "3 questions of 4 answered before" in result.stderr
    assert out.read_bytes() == whole


def test_a_question_that_changed_is_answered_again(deepera_lab, files):
    source, out = files
    deepera_lab("bioasq", "answer", source, "-o", out)
    write_questions(source, [asked("yesno", texts=["Celalol had no effect."]), *ALL[1:]])
    result = deepera_lab("bioasq", "answer", source, "-o", out, "--resume")
    assert "3 questions of 4 answered before" in result.stderr


@pytest.mark.full
def test_a_log_of_another_style_is_not_gone_on_with(deepera_lab, files):
    source, out = files
    with ChatServer(play) as server:
        args = ("bioasq", "answer", source, "-o", out, *model_of(server))
        deepera_lab(*args)
        result = deepera_lab(*args, "--resume", "--style", "3")
    assert result.exit_code == 2
    assert "cannot be continued: style was 2 and is 3" in result.stderr


@pytest.mark.full
def test_a_server_that_refuses_the_key_is_an_error_and_no_file(deepera_lab, files):
    source, out = files
    with ChatServer(lambda request: Reply(status=401)) as server:
        result = deepera_lab("bioasq", "answer", source, "-o", out, *model_of(server))
    assert result.exit_code == 3
    assert "refused the API key" in result.stderr
    assert not out.exists()


def test_a_question_without_snippets_is_left_out_and_named(deepera_lab, files):
    source, out = files
    write_questions(source, [*ALL, asked("yesno", name="bare", texts=[])])
    result = deepera_lab("bioasq", "answer", source, "-o", out)
    assert result.exit_code == 1
    assert "left out of the submission for want of an answer: bare" in result.stderr
    assert [one.id for one in read_questions(out)] == [one.id for one in ALL]


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (("--style", "2"), "--style goes with --model"),
        (("--preset", "paper"), "--preset goes with --model"),
        (("--model", "openai:any", "--style", "4"), "--style must be 1, 2 or 3, got 4"),
        (("--model", "openai:any", "--shots", "2"), "--shots needs --examples"),
        (("--model", "openai:any", "--examples", "none.json"), "no such file: 'none.json'"),
        (("--model", "openai:any"), "OPENAI_API_KEY"),
        (("--resume", "--overwrite"), "not both"),
    ],
)
def test_options_that_cannot_work_are_one_line(deepera_lab, files, monkeypatch, args, hint):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    source, out = files
    result = deepera_lab("bioasq", "answer", source, "-o", out, *args)
    assert result.exit_code == 2
    assert hint in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("{", "not a JSON file"),
        ('{"questions": []}', "has no question"),
        ('{"questions": [{"id": "a", "type": "which", "body": "?"}]}', "'which'"),
        (
            '{"questions": [{"id": "a", "type": "list", "body": "?"}, '
            '{"id": "a", "type": "list", "body": "?"}]}',
            "stands there twice",
        ),
    ],
)
def test_a_file_that_holds_no_questions_is_refused(deepera_lab, files, text, hint):
    source, out = files
    source.write_text(text, encoding="utf-8")
    result = deepera_lab("bioasq", "answer", source, "-o", out)
    assert result.exit_code == 2
    assert hint in result.stderr


def test_a_submission_is_not_overwritten_unasked(deepera_lab, files):
    source, out = files
    out.write_text("mine", encoding="utf-8")
    result = deepera_lab("bioasq", "answer", source, "-o", out)
    assert result.exit_code == 2
    assert out.read_text(encoding="utf-8") == "mine"
    assert deepera_lab("bioasq", "answer", source, "-o", out, "--overwrite").exit_code == 0
