"""How backends are named."""

from pathlib import Path
from pkgutil import iter_modules

import pytest

from deepera_graph import Backend, SettingsError, judges, llm_backend, load_backend
from deepera_graph.cli.shared.options import JudgeOptions
from deepera_graph.testing import scripted_backend

FACTORY = "support.roles:importable_backend"


def no_backend():
    """A factory of something else."""
    return 7


def own_spec():
    """A factory whose backend can be written down by itself."""
    return scripted_backend({}, spec={"kind": "local"})


def test_a_backend_stands_for_itself():
    backend = scripted_backend({})
    assert load_backend(backend) is backend


def test_local_is_a_name():
    backend = load_backend("local")
    assert (backend.name, backend.spec["kind"]) == ("local", "local")


@pytest.mark.parametrize("name", judges.NAMED)
def test_a_judge_with_a_name_can_be_built_and_is_in_the_help_and_the_docs(name):
    backend = load_backend(name)
    assert backend.name == load_backend(backend.spec).name == name
    option = JudgeOptions.__dataclass_fields__["backend"].metadata
    assert f"[b]{name}[/b]" in option["option"].help
    assert f"[b]{name}[/b]" in option["brief"]
    assert f"``{name}``" in judges.__doc__
    assert f"`{name}`" in Path(__file__).parents[2].joinpath("README.md").read_text("utf-8")


@pytest.mark.parametrize(
    "module",
    [
        one.name
        for one in iter_modules(judges.__path__)
        if one.name not in ("adapters", "base", "embeddings")  # what judges are made of
    ],
)
def test_every_judge_of_the_package_has_a_name(module):
    assert f"judges.{module}" in Path(judges.__file__).read_text("utf-8")


def test_a_factory_is_called_and_can_be_named_again():
    backend = load_backend(FACTORY)
    assert backend.spec == {"kind": "factory", "path": FACTORY}
    assert load_backend(backend.spec).name == backend.name
    assert backend.spec == {"kind": "factory", "path": FACTORY}


def test_a_provider_and_a_model_name_an_llm(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-verysecret")
    backend = load_backend("openai:some-model:with-a-tag")
    assert backend.spec == {"kind": "llm", "model": "openai:some-model:with-a-tag"}
    assert backend.about["model"] == "some-model:with-a-tag"


@pytest.mark.parametrize("name", ["", "Local", "gpt", ":", "a:", ":b", "openai:", "a.b:"])
def test_a_name_of_nothing_is_named_in_the_error(name):
    with pytest.raises(SettingsError) as caught:
        load_backend(name)
    assert f"got {name!r}" in str(caught.value)


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("no.such.module:make", "cannot be imported: No module named 'no'"),
        ("support.roles:nothing", "has no attribute 'nothing'"),
        (".support:make", "cannot be imported"),
        ("support..roles:make", "cannot be imported"),
    ],
)
def test_a_factory_that_cannot_be_imported_is_named(path, named):
    with pytest.raises(SettingsError) as caught:
        load_backend(path)
    assert f"backend {path!r}" in str(caught.value)
    assert named in str(caught.value)


def test_a_factory_must_return_a_backend(monkeypatch):
    monkeypatch.setattr("support.roles.importable_backend", no_backend)
    with pytest.raises(SettingsError, match="must return a Backend, got 7"):
        load_backend(FACTORY)


def test_a_factory_may_name_a_better_spec(monkeypatch):
    monkeypatch.setattr("support.roles.importable_backend", own_spec)
    assert load_backend(FACTORY).spec == {"kind": "local"}


@pytest.mark.parametrize("spec", [{}, {"kind": "magic"}, {"kind": None}, {"kind": ["llm"]}])
def test_a_spec_of_no_kind_is_named(spec):
    with pytest.raises(SettingsError, match=r"backend kind must be one of .* got"):
        load_backend(spec)


@pytest.mark.parametrize("thing", [None, 3, scripted_backend, Backend])
def test_only_backends_names_and_specs_will_do(thing):
    with pytest.raises(SettingsError, match="must be a Backend or its name"):
        load_backend(thing)


def test_with_an_address_a_bare_name_is_enough_as_on_the_command_line():
    address = "http://127.0.0.1:9/v1"
    spec = llm_backend("my-model", base_url=address).spec
    assert spec == llm_backend("openai:my-model", base_url=address).spec


def test_a_name_with_a_colon_of_a_server_of_ones_own_is_told_how_it_is_written():
    with pytest.raises(SettingsError, match="takes 'openai:qwen3:8b'"):
        llm_backend("qwen3:8b", base_url="http://127.0.0.1:9/v1")


def test_an_unknown_provider_is_named():
    with pytest.raises(SettingsError, match="'nowhere:model' cannot be made"):
        load_backend("nowhere:model")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("nowhere:build", "module 'nowhere', if it is one of yours, cannot be imported"),
        ("json:loads", "a judge of yours needs a dot, as in 'package.module:factory'"),
        ("json:build", "module 'json' has no function 'build'; as a chat model: "),
    ],
)
def test_a_module_without_a_dot_is_told_from_a_chat_model(name, told):
    with pytest.raises(SettingsError) as caught:
        load_backend(name)
    assert told in str(caught.value)


def test_a_provider_whose_package_is_missing_is_no_module():
    with pytest.raises(SettingsError, match="pip install langchain langchain-anthropic") as caught:
        load_backend("anthropic:claude-x")
    assert "module" not in str(caught.value).partition("Install")[0].replace("No module named", "")


def test_a_missing_key_names_the_variable(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(SettingsError, match="OPENAI_API_KEY"):
        load_backend("openai:some-model")
