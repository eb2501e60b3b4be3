"""`deepera doctor`: the table, the JSON, the exit codes."""

import json
import signal
import time

import pytest

from deepera_graph.retrieval.collections.store import open_store
from deepera_graph.stores.judgements import FILE_NAME
from support.openai_server import ChatServer, Reply

pytestmark = pytest.mark.full

VERDICT = {"reason": "it says so", "evidence": [2], "score": 0.9}
KEY = "tmk-0123456789-never-shown"


@pytest.fixture(autouse=True)
def bare(tmp_path, monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "QDRANT_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def told(result):
    plain = json.loads(result.stdout)
    assert plain["code"] == result.exit_code
    return {one["name"]: one for one in plain["findings"]}


def test_without_options_all_is_well_and_nothing_is_written(deepera, tmp_path):
    result = deepera("doctor")
    assert result.exit_code == 0
    for words in ("local judgement", "judgement cache", "passage store", "langgraph"):
        assert words in result.stdout
    assert list(tmp_path.iterdir()) == []


def test_what_is_wrong_comes_first_and_commands_can_be_copied(deepera, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    (tmp_path / "file").write_text("no folder")
    lines = deepera("doctor", "--cache", tmp_path / "file").stdout.splitlines()
    assert lines[0] == "1 problem"
    assert lines[1].startswith("fail    judgement cache: ")
    assert "name another folder (--cache DIR)" in lines[2]
    statuses = [line.split(" ", 1)[0] for line in lines[1:] if not line.startswith(" ")]
    assert statuses[0] == "fail"
    assert statuses.count("fail") == 1
    assert len(lines) <= 12
    assert any(line.startswith("ok      packages: python 3.") for line in lines)


def test_a_sound_server_is_well_in_json_too(deepera):
    with ChatServer(lambda _: VERDICT) as server:
        result = deepera("doctor", "--base-url", server.base_url, "--json")
    assert result.exit_code == 0
    assert told(result)["structured answers"]["found"] == "JSON schema will be used"


def test_the_calls_promised_in_the_help_are_kept(deepera):
    assert "at most 8 times" in " ".join(deepera("doctor", "--help").stdout.split())


def test_a_missing_v1_has_its_code_and_its_advice(deepera):
    with ChatServer(lambda _: VERDICT) as server:
        result = deepera("doctor", "--base-url", server.base_url.removesuffix("/v1"), "--json")
    assert result.exit_code == 3
    assert server.base_url in told(result)["address"]["advice"]


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_refused_key_is_never_shown(deepera, monkeypatch, form):
    monkeypatch.setenv("MY_KEY", KEY)
    with ChatServer(lambda _: Reply(status=401, content=f"bad key {KEY}")) as server:
        result = deepera("doctor", "--base-url", server.base_url, "--api-key-env", "MY_KEY", *form)
    assert result.exit_code == 3
    assert "refused" in result.stdout
    assert KEY not in result.output


def test_a_key_given_for_its_variable_is_not_repeated(deepera):
    result = deepera("doctor", "--model", "openai:gpt-5-mini", "--api-key-env", KEY)
    assert result.exit_code == 3
    assert KEY not in result.output


def test_an_unwritable_cache_has_its_code(deepera, tmp_path):
    (tmp_path / "file").write_text("no folder")
    result = deepera("doctor", "--cache", tmp_path / "file", "--json")
    assert result.exit_code == 1
    assert told(result)["judgement cache"]["status"] == "fail"


def test_a_cache_of_another_program_is_not_touched(deepera, tmp_path):
    (tmp_path / FILE_NAME).write_bytes(b"something else" * 100)
    assert deepera("doctor", "--cache", tmp_path).exit_code == 1
    assert (tmp_path / FILE_NAME).read_bytes() == b"something else" * 100


def test_a_locked_store_has_its_code(deepera, tmp_path):
    with open_store("papers", path=tmp_path, mode="sparse"):
        result = deepera("doctor", "--path", tmp_path, "--json")
    assert result.exit_code == 3
    assert "another process" in told(result)["passage store"]["found"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--base-url", "localhost:8000"), "must start with http"),
        (("--model", "gpt-5-mini"), "provider:model"),
        (("--api-key-env", "MY_KEY"), "needs --model"),
        (("--path", "a", "--qdrant-url", "http://127.0.0.1:9"), "--path or --qdrant-url"),
        (("--timeout", "0"), "--timeout"),
    ],
)
def test_options_that_make_no_sense_are_usage_errors(deepera, options, words):
    result = deepera("doctor", *options)
    assert result.exit_code == 2
    assert words in result.stderr
    assert not result.stdout


def test_what_a_server_says_cannot_mark_up_the_table(deepera):
    with ChatServer(lambda _: Reply(status=400, content="[red]no[/red] [/]")) as server:
        result = deepera("doctor", "--base-url", server.base_url)
    assert result.exit_code == 3
    assert "[red]no[/red]" in result.stdout


def test_ctrl_c_ends_a_check_that_hangs(start):
    with ChatServer(lambda _: Reply(fault="hang")) as server:
        process = start("doctor", "--base-url", server.base_url)
        deadline = time.monotonic() + 30
        while server.calls == 0 and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert not out
    assert errors == b"deepera: interrupted\n"
