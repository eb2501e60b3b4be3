"""A configuration that is found sets what can do harm only once it was trusted."""

import json
import os

import pytest

from deepera_graph.cli.config import OPTIONS
from deepera_graph.testing import answer_in_json
from support.openai_server import ChatServer

EVIL = """
from pathlib import Path
Path("ran").touch()
def factory():
    Path("ran").touch()
"""
DATA = "Tea lowered glucose by 4% in 60 adults (p < 0.01)."
HARMLESS = """
preset = "fast"
backend = "local"
embeddings = "local"
cache = "off"
collection = "c"
contact = "name@example.org"
domain = "law"
engine = "local"
keep_vectors = "off"
threshold = "gap:0.4"
top_n = 3
no_summaries = true
"""
NEEDS_TRUST = {
    "backend": "encoder:models",
    "model": "openai:gpt-5-mini",
    "base_url": "http://localhost:9/v1",
    "api_key_env": "AWS_SECRET_ACCESS_KEY",
    "domain": "rules.toml",
    "cache": "kept",
    "curve": "curve.json",
    "path": "store",
    "qdrant_url": "http://localhost:9",
    "embeddings": "evil:factory",
    "ray_address": "ray.example.org:6379",
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Somebody else's project, in a folder of which one works."""
    for name in [name for name in os.environ if name.startswith("DEEPERA_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration"))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "aws-secret")
    here = tmp_path / "project" / "notes"
    here.mkdir(parents=True)
    monkeypatch.chdir(here)
    (here / "p.jsonl").write_text(json.dumps({"text": DATA}) + "\n")
    (here / "evil.py").write_text(EVIL)
    return tmp_path / "project"


@pytest.fixture
def write(folder):
    """Writes the configuration, in the folder above the one where one works."""

    def write(text, name="deepera.toml"):
        (folder / name).write_text(text)
        return folder / name

    return write


@pytest.fixture
def ask(deepera):
    return lambda *args: deepera("ask", "Does tea lower glucose?", "p.jsonl", "-q", *args)


@pytest.mark.parametrize("text", ['backend = "evil:factory"', 'embeddings = "evil:factory"'])
@pytest.mark.parametrize("name", ["deepera.toml", "pyproject.toml"])
def test_a_file_that_is_found_runs_no_code(folder, write, deepera, text, name):
    file = write(f"[tool.deepera]\n{text}" if name == "pyproject.toml" else text, name)
    for command in (("ask", "Tea?", "p.jsonl", "-q"), ("index", "p.jsonl", "-l", "tea")):
        result = deepera(*command)
        if result.exit_code == 0:
            assert command[0] == "index"  # which takes no judge
            assert text.startswith("backend")
            continue
        assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
        for said in (str(file), text.split()[0], "not trusted", "`deepera config trust`"):
            assert said in result.stderr
    assert not (folder / "notes" / "ran").exists()


def test_a_file_that_is_found_sends_no_secret_and_no_passage(write, ask, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("DEEPERA_MODEL", "of-the-user")
    with ChatServer(lambda one: answer_in_json({}, one.system, one.user)) as server:
        for key in ("AWS_SECRET_ACCESS_KEY", "OPENAI_API_KEY"):
            write(f'base_url = "{server.base_url}"\napi_key_env = "{key}"')
            result = ask()
            assert result.exit_code == 2
            assert "sets api_key_env, base_url, which may run code or send data" in result.stderr
        assert server.requests == []


def test_what_is_given_nearer_by_leaves_nothing_to_refuse(write, ask):
    write('model = "openai:gpt-5-mini"\nbackend = "evil:factory"')
    result = ask("--backend", "rules")
    assert result.exit_code == 0, result.output


@pytest.mark.full
def test_numbers_choices_and_plain_names_need_no_trust(write, deepera, ask):
    write(HARMLESS)
    shown = deepera("config", "show")
    assert (shown.exit_code, shown.stderr) == (0, "")
    write(HARMLESS.replace('domain = "law"', "").replace('collection = "c"', ""))
    asked = ask("--json")
    assert asked.exit_code == 0, asked.stderr


def test_every_text_that_is_no_plain_name_needs_trust(write, deepera):
    for name, value in NEEDS_TRUST.items():
        write(f'{name} = "{value}"')
        plain = json.loads(deepera("config", "show", "--json").stdout)
        assert plain["trusted"] is False
        assert "not trusted" in plain["values"][name]["problem"], name


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_an_option_is_harmless_or_needs_trust(write, deepera, name):
    write(f'{name} = "../other:thing"')
    problem = json.loads(deepera("config", "show", "--json").stdout)["values"][name].get("problem")
    assert problem or name in {"collection", "contact", "keep_vectors"}


def test_a_file_that_was_trusted_counts_until_a_value_in_it_changes(write, deepera, ask):
    file = write('backend = "support.scripted:tea_backend"')
    assert ask().exit_code == 2
    trusted = deepera("config", "trust")
    assert (trusted.exit_code, str(file) in trusted.stdout) == (0, True)
    assert "backend = 'support.scripted:tea_backend'" in trusted.stdout
    assert json.loads(deepera("config", "show", "--json").stdout)["trusted"] is True
    assert ask().exit_code == 0
    write('# a remark\nbackend = "support.scripted:tea_backend"')
    assert ask().exit_code == 0
    write('backend = "support.scripted:tea_backend"\nmax_calls = 100')
    assert ask().exit_code == 2


def test_trust_is_of_one_file_and_can_be_taken_back(folder, write, deepera, ask):
    write('backend = "support.scripted:tea_backend"')
    assert "was not trusted" in deepera("config", "trust", "--remove").stdout
    deepera("config", "trust")
    nearer = folder / "notes" / "deepera.toml"
    nearer.write_text('backend = "support.scripted:tea_backend"')
    assert ask().exit_code == 2
    nearer.unlink()
    assert ask().exit_code == 0
    assert "trusted no more" in deepera("config", "trust", "--remove").stdout
    assert ask().exit_code == 2


def test_a_file_that_the_user_names_needs_no_trust(write, deepera, ask, monkeypatch):
    file = write('backend = "support.scripted:tea_backend"')
    monkeypatch.setenv("DEEPERA_CONFIG", str(file))
    assert ask().exit_code == 0
    assert "which is trusted" in " ".join(deepera("config", "show").stdout.split())


def test_without_a_file_there_is_nothing_to_trust(deepera):
    result = deepera("config", "trust")
    assert (result.exit_code, "no deepera.toml" in result.stderr) == (2, True)


@pytest.mark.parametrize("text", ["", "[]", "{"])
def test_a_broken_list_of_what_is_trusted_trusts_nothing(folder, write, ask, text):
    write('backend = "evil:factory"')
    kept = folder.parent / "configuration" / "deepera"
    kept.mkdir(parents=True)
    (kept / "trusted.json").write_text(text)
    result = ask()
    assert (result.exit_code, "trusted.json" in result.stderr) == (2, True)


def test_trust_is_told_to_programs_as_json(write, deepera, folder):
    write('backend = "support.scripted:tea_backend"')
    told = [deepera("config", "trust", *more, "--json").stdout for more in ((), ("--remove",))]
    assert [json.loads(one)["trusted"] for one in told] == [True, False]
