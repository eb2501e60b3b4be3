"""Defaults from a file and from the environment."""

import json
import os

import pytest

from deepera_graph.cli import config
from deepera_graph.cli.libraries.index import index
from deepera_graph.cli.main import load_command
from deepera_graph.cli.shared.declaring import configurable
from deepera_graph.testing import answer_in_json
from support.openai_server import ChatServer

TEXTS = ["Tea lowered glucose by 4% in 60 adults (p < 0.01).", "Effects of tea are debated."]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty working directory, no variables of ours, and no key."""
    for name in [name for name in os.environ if name.startswith("DEEPERA_")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration"))
    here = tmp_path / "project" / "notes"
    here.mkdir(parents=True)
    monkeypatch.chdir(here)
    return tmp_path / "project"


@pytest.fixture
def shown(deepera):
    def show():
        result = deepera("config", "show", "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    return show


@pytest.fixture
def papers(questions):
    return questions(*({"text": text} for text in TEXTS), name="papers.jsonl")


@pytest.fixture
def ask(deepera, papers):
    def run(*args, source=papers):
        result = deepera("ask", "Does tea lower glucose?", source, "--json", *args)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    return run


def test_the_nearest_file_upward_counts(folder, shown):
    assert shown()["file"] is None
    (folder.parent / "deepera.toml").write_text("top_n = 1")
    (folder / "pyproject.toml").write_text("[tool.other]\ntop_n = 2\n")
    assert shown()["values"]["top_n"]["value"] == "1"
    (folder / "pyproject.toml").write_text("[tool.deepera]\ntop_n = 3\n")
    assert shown()["values"]["top_n"] == {"value": "3", "from": str(folder / "pyproject.toml")}
    (folder / "notes" / "deepera.toml").write_text("")
    assert shown()["values"]["top_n"] == {"value": None, "from": "default"}


@pytest.mark.full
def test_an_option_counts_more_than_a_variable_than_a_file_than_the_default(
    folder, ask, monkeypatch
):
    seen = [ask()["threshold"]]
    (folder / "deepera.toml").write_text("threshold = 0.61")
    seen.append(ask()["threshold"])
    monkeypatch.setenv("DEEPERA_THRESHOLD", "0.62")
    seen.append(ask()["threshold"])
    seen.append(ask("--threshold", "0.63")["threshold"])
    assert seen[1:] == [0.61, 0.62, 0.63]
    assert seen[0] not in seen[1:]


def test_every_value_is_shown_with_where_it_is_from(folder, deepera, shown, monkeypatch):
    (folder / "deepera.toml").write_text('library = "apples"\npath = "store"\nno_summaries = true')
    deepera("config", "trust")
    monkeypatch.setenv("DEEPERA_MODEL", "openai:gpt-5-mini")
    values = shown()["values"]
    file = str(folder / "deepera.toml")
    assert values["library"] == {"value": "apples", "from": file}
    assert values["path"] == {"value": str(folder / "store"), "from": file}
    assert values["no_summaries"] == {"value": True, "from": file}
    assert values["model"] == {"value": "openai:gpt-5-mini", "from": "DEEPERA_MODEL"}
    assert {one["from"] for one in values.values()} == {file, "DEEPERA_MODEL", "default"}
    words = deepera("config", "show").stdout
    assert all(name in words for name in (*values, "apples", "DEEPERA_MODEL", "gpt-5-mini"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("treshold = 0.5", "unknown key 'treshold'; did you mean 'threshold'?"),
        ('base-url = "http://x"', "unknown key 'base-url'; did you mean 'base_url'?"),
        ("port = 8111", "'port' is no key, but an option of deepera serve: give --port with the"),
        ('host = "0.0.0.0"', "'host' is no key, but an option of deepera serve: give --host with"),
        ("max-documents = 9", "option of deepera serve: give --max-documents with the command"),
        ("max_document = 9", "unknown key 'max_document'; DEEPERA_CONFIG=off deepera config show"),
        ("colour = 1", "unknown key 'colour'; DEEPERA_CONFIG=off deepera config show lists all "),
        ('api_key = "sk-secret"', "a secret stays in a variable, which api_key_env names"),
        ("top_n = [1]", "top_n must be a text, a number or true/false"),
        ("top_n = ", "is not TOML"),
    ],
)
def test_what_cannot_be_read_is_refused_by_its_name(folder, deepera, text, said):
    (folder / "deepera.toml").write_text(text)
    for command in (("config", "show"), ("ask", "Tea?", "x")):
        result = deepera(*command)
        assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
        assert said in result.stderr
        assert str(folder / "deepera.toml") in result.stderr
        assert "sk-secret" not in result.stderr


def test_a_value_of_the_wrong_kind_is_named_with_its_file(folder, deepera, papers):
    (folder / "deepera.toml").write_text('order = "size"')
    result = deepera("ask", "Tea?", papers)
    assert result.exit_code == 2
    assert f"got 'size' from {folder / 'deepera.toml'}" in result.stderr


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("top_n", "0", "top_n must be a whole number >= 1, got 0"),
        ("top_n", "many", "top_n must be a whole number, got 'many'"),
        ("threshold", "80", "threshold must be in [0, 1], got 80.0; did you mean 0.8?"),
        ("threshold", "gapp", "--threshold must be a number from 0 to 1, gap"),
        ("preset", "carefull", "got 'carefull'; did you mean 'careful'?"),
        ("backend", "rule", "got 'rule'; did you mean 'rules'?"),
        ("mode", "group", "mode must be one of 'separate', 'fused', 'grouped', got 'group'; did"),
        ("no_summaries", "maybe", "no_summaries must be true or false, got 'maybe'"),
        ("base_url", "localhost:8000", "must start with http:// or https://, got 'localhost:8000'"),
        ("max_cost", "-1", "max_cost must be > 0, got -1.0"),
        ("max_tokens", "1.5", "max_tokens must be a whole number, got '1.5'"),
        ("probability", "7", "probability must be in [0, 1], got 7.0"),
        ("requests_per_minute", "0", "requests_per_minute must be > 0, got 0.0"),
        ("call_timeout", "0", "call_timeout must be > 0 seconds, and a number, got 0.0"),
        ("cascade", "0", "cascade must be a whole number >= 1, got 0"),
        ("embeddings", "words", "--embeddings must be 'local', "),
        ("engine", "rays", "engine must be one of 'local', 'ray', got 'rays'; did you mean 'ray'?"),
    ],
)
def test_a_value_that_cannot_be_used_is_named_with_its_place(
    folder, deepera, monkeypatch, key, value, said
):
    (folder / "deepera.toml").write_text(f'order = "score"\n{key} = "{value}"')
    result = deepera("config", "show")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert result.stderr.startswith(f"deepera: {folder / 'deepera.toml'}: ")
    assert said in result.stderr
    assert "order " in result.stdout
    monkeypatch.setenv("DEEPERA_CONFIG", "off")
    monkeypatch.setenv(f"DEEPERA_{key.upper()}", value)
    plain = deepera("config", "show", "--json")
    assert plain.stderr.startswith(f"deepera: DEEPERA_{key.upper()}: ")
    assert said in json.loads(plain.stdout)["values"][key]["problem"]


def test_values_that_can_be_used_are_no_problem(folder, deepera):
    (folder / "deepera.toml").write_text(
        'threshold = "gap:0.4"\nmax_cost = 1\nno_summaries = true\nbackend = "a.b:c"\ntop_n = 3\n'
        'require_evidence = true\nembeddings = "local"\ncurve = "curve.json"\nmodel = "m"'
    )
    deepera("config", "trust")
    result = deepera("config", "show")
    assert (result.exit_code, result.stderr) == (0, "")


def test_a_command_names_the_place_of_a_value_that_it_cannot_use(folder, deepera, papers):
    (folder / "deepera.toml").write_text("top_n = 0")
    result = deepera("ask", "Tea?", papers)
    assert result.exit_code == 2
    place = folder / "deepera.toml"
    assert result.stderr == (f"deepera: top_n must be a whole number >= 1, got 0 (from {place})\n")
    given = deepera("ask", "Tea?", papers, "--top-n", "-1")
    assert given.stderr == "deepera: top_n must be a whole number >= 1, got -1\n"


@pytest.mark.parametrize("is_variable", [False, True])
def test_a_library_that_is_not_there_is_named_with_the_place_that_says_it(
    folder, deepera, papers, monkeypatch, is_variable
):
    place = "DEEPERA_LIBRARY" if is_variable else folder / "deepera.toml"
    assert deepera("index", papers, "-l", "tea").exit_code == 0
    if is_variable:
        monkeypatch.setenv(place, "teas")
    else:
        place.write_text('library = "teas"')
    asked = deepera("ask", "Tea?")
    assert asked.exit_code == 2
    assert asked.stderr.endswith(f"did you mean 'tea'? (library is set by {place})\n")
    assert "is set by" not in deepera("ask", "Tea?", "-l", "teaz").stderr


def test_a_variable_that_is_nearly_ours_is_refused_and_others_are_not_ours(deepera, monkeypatch):
    monkeypatch.setenv("DEEPERA_HOUSE", "of another program")
    assert deepera("config", "show").exit_code == 0
    monkeypatch.setenv("DEEPERA_TRESHOLD", "0.5")
    assert "did you mean DEEPERA_THRESHOLD?" in deepera("config", "show").stderr


def test_another_file_may_be_named_or_none(folder, shown, monkeypatch):
    (folder / "deepera.toml").write_text("top_n = 1")
    (folder / "other.toml").write_text("top_n = 2")
    monkeypatch.setenv("DEEPERA_CONFIG", str(folder / "other.toml"))
    assert shown()["values"]["top_n"]["value"] == "2"
    monkeypatch.setenv("DEEPERA_CONFIG", "off")
    assert shown()["values"]["top_n"]["value"] is None


@pytest.mark.full
def test_a_judge_that_is_given_leaves_the_configured_model_out(folder, ask, deepera, papers):
    (folder / "deepera.toml").write_text('model = "openai:gpt-5-mini"\nmode = "grouped"')
    deepera("config", "trust")
    assert "no API key" in deepera("ask", "Tea?", papers).stderr
    assert ask("--backend", "local")["usage"]["calls"] == 0


@pytest.mark.parametrize(
    ("file", "given", "left"),
    [
        ({"backend": "local"}, {"model": "m"}, {"model": "m"}),
        ({"model": "a", "base_url": "u"}, {"model": "b"}, {"model": "b", "base_url": "u"}),
        ({"model": "a", "base_url": "u"}, {"model": "openai:b"}, {"model": "openai:b"}),
        ({"base_url": "u", "api_key_env": "K"}, {"base_url": "v"}, {"base_url": "v"}),
        ({"threshold": "0.5"}, {"curve": "c"}, {"curve": "c"}),
        ({"mode": "grouped", "group_size": 5}, {"mode": "fused"}, {"mode": "fused"}),
        ({"mode": "grouped", "top_n": 5}, {"preset": "fast"}, {"preset": "fast", "top_n": 5}),
        ({"library": "c", "path": "p"}, {"source": "s"}, {"source": "s"}),
        ({"path": "p"}, {"qdrant_url": "u"}, {"qdrant_url": "u"}),
        ({"model": "a"}, {"backend": "llm"}, {"model": "a", "backend": "llm"}),
    ],
)  # fmt: skip
def test_what_does_not_go_with_an_option_that_was_given_is_left_out(
    folder, deepera, file, given, left
):
    (folder / "deepera.toml").write_text(
        "".join(f"{key} = {value!r}\n" for key, value in file.items())
    )
    deepera("config", "trust")
    values = {**file, **given}
    sources = dict.fromkeys(file, "ParameterSource.DEFAULT_MAP")
    config.defaults_of("ask", set(file))
    config.settle(values, {**sources, **dict.fromkeys(given, "ParameterSource.COMMANDLINE")})
    assert {name: value for name, value in values.items() if value is not None} == left


def test_a_collection_may_be_configured_for_index(folder, deepera, papers):
    (folder / "deepera.toml").write_text('library = "tea"\nmode = "fused"')
    result = deepera("index", papers)
    assert (result.exit_code, "'tea'" in result.stdout) == (0, True), result.output
    assert "mode" not in configurable(index)  # that of a judge, not of an index


@pytest.mark.full
def test_what_is_shown_and_measured_is_the_same_for_everybody(folder, deepera):
    (folder / "deepera.toml").write_text('modell = "x"')
    result = deepera("demo", "--question", "q01", "--json")
    assert result.exit_code == 0, result.output


@pytest.mark.full
def test_a_local_server_is_asked_by_its_own_name_of_the_model_and_sent_no_key(
    folder, ask, deepera, monkeypatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai")
    with ChatServer(lambda one: answer_in_json({"Tea": 0.9}, one.system, one.user)) as server:
        (folder / "deepera.toml").write_text(
            f'model = "qwen3:8b"\nbase_url = "{server.base_url}"\ncache = "off"'
        )
        deepera("config", "trust")
        ask()
        asked = {(one.body["model"], one.headers["authorization"]) for one in server.requests}
    assert asked == {("qwen3:8b", "Bearer not-needed")}


@pytest.mark.full
@pytest.mark.parametrize("key", ["sk-proj-abc123def", "gsk_aBc123dEf456gHi", "hf_abcdefghijkl"])
@pytest.mark.parametrize("place", ["file", "variable"])
@pytest.mark.parametrize("args", [(), ("--json",)])
def test_a_key_in_place_of_its_variable_is_refused_and_not_shown(
    deepera, tmp_path, monkeypatch, key, place, args
):
    monkeypatch.chdir(tmp_path)
    if place == "file":
        url = 'base_url = "http://localhost:9/v1"'
        (tmp_path / "deepera.toml").write_text(f'{url}\napi_key_env = "{key}"', encoding="utf-8")
        assert key not in deepera("config", "trust").output
    else:
        monkeypatch.setenv("DEEPERA_BASE_URL", "http://localhost:9/v1")
        monkeypatch.setenv("DEEPERA_API_KEY_ENV", key)
    shown = deepera("config", "show", *args)
    assert shown.exit_code == 2
    assert "name of an environment variable that is set, not the key itself" in shown.stderr
    assert key not in shown.output
    (tmp_path / "p.jsonl").write_text('{"text": "Tea."}\n', encoding="utf-8")
    asked = deepera("ask", "Tea?", "p.jsonl", "--model", "m")
    assert asked.exit_code == 2
    assert "not the key itself" in asked.stderr
    assert key not in asked.output


@pytest.mark.parametrize(
    ("option", "url", "shown"),
    [
        ("base_url", "https://me:s3cret@a.example/v1", "https://***@a.example/v1"),
        (
            "base_url",
            "https://a.example/v1?api-key=s3cret&v=1",
            "https://a.example/v1?api-key=***&v=1",
        ),
        ("base_url", "ftp://me:s3cret@a.example", "ftp://***@a.example"),
        ("qdrant_url", "http://s3cret@127.0.0.1:6333", "http://***@127.0.0.1:6333"),
        ("qdrant_url", "me:s3cret@127.0.0.1:6333", "***@127.0.0.1:6333"),
        ("ray_address", "ray://me:s3cret@127.0.0.1:10001", "ray://***@127.0.0.1:10001"),
    ],
)
@pytest.mark.parametrize("args", [(), ("--json",)])
def test_no_password_of_an_address_is_shown(deepera, monkeypatch, option, url, shown, args):
    monkeypatch.setenv(f"DEEPERA_{option.upper()}", url)
    told = deepera("config", "show", *args)
    assert "s3cret" not in told.output
    assert shown in told.stdout.replace("\n", "")


def test_a_variable_that_is_set_may_have_any_name(deepera, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("my_key", "sk-secret")
    (tmp_path / "deepera.toml").write_text('api_key_env = "my_key"', encoding="utf-8")
    deepera("config", "trust")
    shown = deepera("config", "show")
    assert shown.exit_code == 0
    assert "my_key" in shown.stdout
    assert "sk-secret" not in shown.output


def test_options_of_the_server_that_are_no_keys_are_its_options():
    options = {one.name for one in load_command("serve").params}
    assert options - config.OPTIONS.keys() >= config._OF_SERVE
