"""`deepera-lab bench build` on the command line."""

import json

import pytest

from bench.build.lake_abstracts import lake_abstracts
from bench.build.model_script import answer, step_of
from bench.lakes import write_jsonl
from support.literature import Literature
from support.openai_server import ChatServer, Reply

pytestmark = pytest.mark.full

SMALL = ("--questions", 3, "--contexts", 8, "--generator", "lmqg")


@pytest.fixture
def server():
    with ChatServer(answer) as running:
        yield running


@pytest.fixture
def lakes(tmp_path):
    rows = [one.model_dump(include={"id", "title", "text", "subject"}) for one in lake_abstracts()]
    return write_jsonl(tmp_path / "lakes.jsonl", rows)


@pytest.fixture
def build(deepera_lab, lakes, tmp_path):
    """Runs the command on the lakes; needs the server's address unless nothing is asked."""

    def run(*args, documents=lakes, url=None):
        model = ("--model", "scripted", "--base-url", url) if url else ()
        return deepera_lab("bench", "build", documents, "--out", tmp_path / "out", *model, *args)

    return run


def test_data_sets_are_built_and_can_be_measured(build, server, deepera_lab, tmp_path):
    done = build(*SMALL, url=server.base_url)
    assert done.exit_code == 0, done.stderr
    assert "lmqg: 3 questions" in done.stdout
    table = deepera_lab("bench", "table", tmp_path / "out" / "lmqg.ssli.jsonl", "--rankers", "bm25")
    assert "| BM25 |" in table.stdout


def test_json_is_the_manifest(build, server, tmp_path):
    done = build(*SMALL, "--json", url=server.base_url)
    assert json.loads(done.stdout) == json.loads((tmp_path / "out" / "manifest.json").read_text())


def test_documents_of_each_subject_are_fetched_once(build, tmp_path, monkeypatch):
    with Literature() as world:
        monkeypatch.setenv("DEEPERA_OPENALEX_URL", world.url("openalex"))
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        args = ("--by-subject", 3, "--subjects", "biology,physics", "--dry-run", *SMALL)
        first, again = (build(*args, documents=tmp_path / "works.jsonl") for _ in range(2))
    assert "3 works on 2 subjects written to" in first.stderr
    assert "exists: nothing is fetched" in again.stderr
    assert first.stdout == again.stdout
    assert len(world.of("openalex")) == 2
    rows = [json.loads(one) for one in (tmp_path / "works.jsonl").read_text().splitlines()]
    assert [one["subject"] for one in rows] == ["biology"] * 3


def test_subjects_without_by_subject_are_refused(build):
    done = build("--subjects", "biology", "--dry-run")
    assert (done.exit_code, "--subjects goes with --by-subject" in done.stderr) == (2, True)


def test_a_dry_run_needs_no_model_and_writes_nothing(build, tmp_path):
    done = build(*SMALL, "--dry-run", "--json", "--input-price", 1, "--output-price", 2)
    found = json.loads(done.stdout)
    assert found["steps"] == {"lmqg": 3, "guidance": 3, "distractor": 9, "verify": 9}
    assert (found["calls"], found["most_calls"]) == (24, 60)
    cost = (found["input_tokens"] + 2 * found["output_tokens"]) / 1e6
    assert found["cost"] == pytest.approx(cost)
    assert not (tmp_path / "out").exists()


def test_a_spent_budget_says_how_to_go_on(build, server):
    stopped = build(*SMALL, "--max-calls", 4, url=server.base_url)
    assert stopped.exit_code == 1
    assert "budget reached: 4 calls" in stopped.stderr
    assert "run it again to go on" in stopped.stderr
    assert build(*SMALL, url=server.base_url).exit_code == 0


def test_failed_calls_are_told_and_give_code_1(build):
    def script(request):
        return Reply(status=400, content="no") if request.number % 9 == 8 else answer(request)

    with ChatServer(script) as server:
        done = build(*SMALL, url=server.base_url)
    assert done.exit_code == 1
    assert "calls failed" in done.stderr


@pytest.fixture
def again(deepera_lab, lakes, tmp_path):
    """Runs the command on the lakes with the manifest of the build in ``out``."""

    def run(*args, out="again"):
        manifest = tmp_path / "out" / "manifest.json"
        return deepera_lab(
            "bench", "build", lakes, "--out", tmp_path / out, "--manifest", manifest, *args
        )

    return run


def files(folder):
    return {one.name: one.read_bytes() for one in folder.iterdir() if one.is_file()}


def test_a_manifest_builds_the_same_bytes_again(build, again, server, tmp_path):
    build(*SMALL, "--seed", 5, "--limit", 35, url=server.base_url)
    done = again()
    assert (done.exit_code, done.stderr) == (0, "")
    assert files(tmp_path / "again") == files(tmp_path / "out")


def test_a_manifest_beside_the_kept_answers_asks_for_nothing(build, again, server, tmp_path):
    build(*SMALL, url=server.base_url)
    before, n_calls = files(tmp_path / "out"), server.calls
    assert again("--overwrite", out="out").exit_code == 0
    assert (files(tmp_path / "out"), server.calls) == (before, n_calls)


def test_what_comes_out_otherwise_than_in_the_manifest_is_told(build, again, server, lakes):
    build(*SMALL, url=server.base_url)
    lines = lakes.read_text().splitlines(keepends=True)
    lakes.write_text("".join(reversed(lines)))
    done = again()
    assert done.exit_code == 1
    assert "not the same as in" in done.stderr
    assert "documents" in done.stderr


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (("--seed", "1"), "--manifest settles --seed: leave them out"),
        (("--questions", "3", "--limit", "5"), "--manifest settles --limit, --questions"),
        (("--manifest", "none.json"), "none.json cannot be read"),
        (("--manifest", __file__), "is no manifest of a build"),
    ],
)
def test_what_does_not_go_with_a_manifest_is_one_line(build, again, server, args, problem):
    build(*SMALL, url=server.base_url)
    done = again(*args)
    assert done.exit_code == 2
    assert problem in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_manifest_of_pairs_made_elsewhere_needs_their_file(build, again, server, tmp_path):
    pairs = {"document": "L1", "pairs": [["How deep did trout live in the lake?", "metres"]]}
    path = write_jsonl(tmp_path / "mine.jsonl", [pairs])
    named = ("--generator", f"file:{path}")
    made = build("--contexts", 8, "--questions", 1, *named, url=server.base_url)
    assert made.exit_code == 0, made.stderr
    assert "name all generators with --generator" in again().stderr
    assert again(*named).exit_code == 0


def test_a_data_set_without_a_question_is_told_with_code_1(build):
    def script(request):
        return {"pairs": []} if step_of(request) == "guided" else answer(request)

    small = ("--questions", 2, "--contexts", 8)
    with ChatServer(script) as server:
        done = build(*small, url=server.base_url)
    assert done.exit_code == 1
    assert "guided has no question, see dropped.jsonl" in done.stderr


def test_a_model_that_refuses_everything_is_one_line(build):
    with ChatServer(lambda request: "I cannot help with that.") as server:
        done = build(*SMALL, url=server.base_url)
    assert done.exit_code == 2
    assert "no question could be made: lmqg: " in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_nobody_listening_is_code_3(build, no_wait):
    done = build(*SMALL, url="http://127.0.0.1:9/v1")
    assert done.exit_code == 3
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ((), "give --model"),
        (("--generator", "lmgq", "--dry-run"), "got 'lmgq'"),
        (("--generator", "lmqg,", "--dry-run"), "--generator must be names"),
        (("--generator", "file:none.jsonl", "--model", "openai:x"), "none.jsonl"),
        (("--settings", "hard", "--dry-run"), "got 'hard'"),
        (("--questions", "0", "--dry-run"), "n_questions must be a whole number >= 1, got 0"),
        (("--min-similarity", "7", "--dry-run"), "min_similarity must be in [-1, 1], got 7"),
        (("--contexts", "3", "--dry-run"), "n_contexts must be above n_distractors (3), got 3"),
        (("--max-concurrency", "0", "--model", "openai:x"), "got 0"),
        (("--embeddings", "none:such", "--model", "openai:x"), "--embeddings none:such"),
    ],
)
def test_options_that_cannot_be_are_one_line(build, args, problem, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")
    done = build(*args)
    assert done.exit_code == 2
    assert problem in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("content", [b"", b"\n\n", b"garbage\n", b'{"id": "a"}\n', b"\xff\xfe"])
def test_files_that_are_no_documents_are_one_line(build, tmp_path, content):
    path = tmp_path / "odd.jsonl"
    path.write_bytes(content)
    done = build("--dry-run", documents=path)
    assert done.exit_code == 2
    assert len(done.stderr.splitlines()) == 1


def test_a_missing_file_is_one_line(build, tmp_path):
    done = build("--dry-run", documents=tmp_path / "missing.jsonl")
    assert done.exit_code == 2
    assert "missing.jsonl" in done.stderr
