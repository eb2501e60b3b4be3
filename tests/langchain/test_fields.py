"""Settings of the LangChain classes are fields: shown, changed, serialised."""

import asyncio
import json
from dataclasses import fields
from inspect import Parameter, signature
from typing import Unpack, get_type_hints

import pytest
from langchain_core.runnables import ConfigurableField, RunnableLambda
from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from deepera_graph import (
    Backend,
    Budget,
    EvidenceReranker,
    Quantile,
    Settings,
    SettingsError,
    build_graph,
    encoder_backend,
    llm_backend,
    load_backend,
    open_cache,
)
from deepera_graph.judges.llm.backend import LlmKwargs
from deepera_graph.settings import SettingsKwargs
from deepera_graph.testing import ScriptedChat, answer_in_json
from langchain_deepera import DeepEraCompressor, DeepEraRetriever, EvidenceCrossEncoder
from support.openai_server import ChatServer
from support.scripted import TEA_SCORES as SCORES
from support.scripted import Script
from support.tiny_encoder import write_model

FACTORY = "support.scripted:tea_backend"
URL = "http://127.0.0.1:9/v1"
SOURCE = RunnableLambda(lambda _: [])
KINDS = [
    pytest.param(DeepEraCompressor, {}, id="compressor"),
    pytest.param(DeepEraRetriever, {"source": SOURCE}, id="retriever"),
]
LLM_OPTIONS = {
    "base_url": URL, "api_key_env": "SOME_KEY", "retry": {"attempts": 2}, "domain": "law",
    "limits": {"calls_at_once": 3}, "mode": "grouped", "group_size": 4,
}  # fmt: skip


@pytest.mark.parametrize(("kind", "given"), KINDS)
def test_every_setting_is_a_field_with_its_default(kind, given):
    shown = signature(kind).parameters
    for one in fields(Settings):
        assert shown[one.name].default == one.default, one.name
    made = kind(**given)
    assert Settings.of({one.name: getattr(made, one.name) for one in fields(Settings)}) == (
        made.reranker.settings
    )


def test_keyword_arguments_are_typed_by_name():
    assert set(SettingsKwargs.__annotations__) == {one.name for one in fields(Settings)}
    assert set(LlmKwargs.__annotations__) == set(LLM_OPTIONS)
    settings = Unpack[SettingsKwargs]
    changed = EvidenceReranker.with_settings
    for function in (EvidenceReranker, changed, EvidenceCrossEncoder, build_graph):
        assert list(signature(function).parameters.values())[-1].annotation == settings
    for kind in (DeepEraCompressor, DeepEraRetriever):
        for function in (kind.local, kind.from_backend):
            assert list(signature(function).parameters.values())[-1].annotation == settings
        [*_, options] = signature(kind.from_llm).parameters.values()
        [typed] = options.annotation.__args__
        assert set(get_type_hints(typed)) == {*SettingsKwargs.__annotations__, *LLM_OPTIONS}


@pytest.mark.slow
def test_mypy_refuses_a_misspelt_setting(tmp_path):
    run = pytest.importorskip("mypy.api", reason="needs the extra 'lint'").run
    code = tmp_path / "code.py"
    code.write_text(
        "from deepera_graph import EvidenceReranker\n"
        "from langchain_deepera import DeepEraCompressor, DeepEraRetriever\n"
        "EvidenceReranker('local', treshold=0.5)\n"
        "DeepEraCompressor(treshold=0.5)\n"
        "DeepEraCompressor.local(treshold=0.5)\n"
        "DeepEraRetriever.from_llm([], 'a:b', mode='fused', treshold=0.5)\n"
        "DeepEraCompressor.local(threshold=0.5, budget={'max_calls': 3})\n"
        "DeepEraRetriever.from_llm([], 'a:b', mode='fused', threshold=0.5)\n"
    )
    found, _, _ = run(["--strict", "--cache-dir", str(tmp_path), str(code)])
    lines = [line.split(":")[1] for line in found.splitlines() if "error:" in line]
    assert lines == ["3", "4", "5", "6"]
    assert found.count('did you mean "threshold"?') == 4


@pytest.mark.parametrize(
    "make", [lambda **given: DeepEraRetriever(source=SOURCE, **given),
             lambda **given: DeepEraRetriever.local(SOURCE, **given),
             lambda **given: DeepEraRetriever.from_llm(SOURCE, "openai:m", **given)],
    ids=["constructor", "local", "from_llm"],
)  # fmt: skip
def test_the_retriever_knows_its_own_names_too(make):
    with pytest.raises(SettingsError, match="'ncandidates'; did you mean 'n_candidates'"):
        make(ncandidates=9)
    with pytest.raises(SettingsError, match=r"'cutoff'; settings are .*n_candidates, k, .*top_n"):
        make(cutoff=9)


@pytest.mark.parametrize(("kind", "given"), KINDS)
def test_settings_are_given_to_the_constructor(kind, given):
    made = kind(**given, backend="rules", threshold=0.4, top_n=3)
    assert (made.reranker.settings.threshold, made.reranker.settings.top_n) == (0.4, 3)
    assert (made.threshold, made.top_n) == (0.4, 3)
    assert made.reranker.backend.spec["judge"] == "rules"


def test_the_fields_say_what_a_reranker_that_is_given_does():
    reranker = EvidenceReranker(FACTORY, top_n=2)
    made = DeepEraCompressor(reranker=reranker)
    assert made.reranker is reranker
    assert made.top_n == 2


def test_a_setting_beside_a_reranker_counts(documents, question):
    reranker = EvidenceReranker(FACTORY, top_n=2)
    made = DeepEraCompressor(reranker=reranker, top_n=1)
    assert len(made.compress_documents(documents, question)) == 1
    assert reranker.settings.top_n == 2


def test_a_backend_beside_a_reranker_is_an_error():
    with pytest.raises(SettingsError, match="give a backend or a reranker, not both"):
        DeepEraCompressor(reranker=EvidenceReranker(FACTORY), backend="rules")


@pytest.mark.full
def test_a_field_that_is_changed_counts_from_the_next_call_on(documents, question):
    made = DeepEraCompressor(backend=FACTORY)
    assert len(made.compress_documents(documents, question)) == 4
    made.top_n = 1
    assert len(made.compress_documents(documents, question)) == 1
    assert len(made.model_copy(update={"top_n": 2}).compress_documents(documents, question)) == 2
    assert made.to_dict()["reranker"]["settings"]["top_n"] == 1
    made.backend = "rules"
    assert made.reranker.backend.name == "rules"
    assert made.to_dict()["reranker"]["settings"]["top_n"] == 1
    made.preset = "careful"
    assert (made.require_evidence, made.top_n) == (True, 1)


def test_another_backend_keeps_the_cache(documents, question, tmp_path):
    cached = EvidenceReranker("rules", cache=open_cache(tmp_path / "kept.sqlite"))
    made = DeepEraCompressor(reranker=cached)
    made.backend = FACTORY
    made.compress_documents(documents, question)
    assert made.reranker.rerank(question, documents).total_usage.cached_calls > 0


def test_another_reranker_brings_its_settings():
    made = DeepEraCompressor(backend="rules", threshold=0.5, top_n=2)
    made.reranker = EvidenceReranker(FACTORY, threshold=0.2, top_n=5)
    assert (made.threshold, made.top_n) == (0.2, 5)
    assert made.to_dict()["reranker"] == made.reranker.to_dict()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("reranker", "local", "reranker must be an EvidenceReranker, got 'local'"),
        ("threshold", 80, r"threshold must be in \[0, 1\], got 80; did you mean 0.8\?"),
        ("top_n", 0, "top_n must be a whole number >= 1, got 0"),
        ("treshold", 0.5, "unknown setting 'treshold'; did you mean 'threshold'"),
        ("n_candidates", 0, "n_candidates must be a whole number >= 1, got 0"),
        ("k", 0, "k must be a whole number >= 1, got 0"),
        ("source", 3, "source must be a retriever, .*, got 3"),
        ("backend", "rule", "got 'rule'; did you mean 'rules'"),
        ("preset", "carefull", "got 'carefull'; did you mean 'careful'"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_when_it_is_assigned(name, value, message):
    made = DeepEraRetriever(source=SOURCE, backend=FACTORY)
    before = dict(made.__dict__)
    with pytest.raises(SettingsError, match=message):
        setattr(made, name, value)
    assert made.__dict__ == before


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kk": 3}, r"DeepEraRetriever\.invoke takes no 'kk': .*did you mean 'k'\?"),
        ({"threshold": 0.5}, r"invoke takes no 'threshold'; it is a field: retriever\.threshold"),
    ],
)
def test_a_call_names_what_it_does_not_take(store, question, given, message):
    retriever = DeepEraRetriever(source=store, backend=FACTORY)
    with pytest.raises(SettingsError, match=message):
        retriever.invoke(question, **given)
    with pytest.raises(SettingsError, match=message):
        asyncio.run(retriever.ainvoke(question, **given))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (DeepEraRetriever, r"takes its fields by name, e\.g\. DeepEraRetriever\(source=store\)"),
        (DeepEraCompressor, r"by name, .*what is searched goes to DeepEraRetriever\(source=\)"),
        (
            DeepEraCompressor.local,
            r"what is searched goes to DeepEraRetriever\.local, got Runnable",
        ),
    ],
)
def test_a_source_that_is_misplaced_is_shown_its_place(make, message):
    with pytest.raises(SettingsError, match=message):
        make(SOURCE)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"threshold": Quantile(share=0.5), "budget": Budget(max_calls=90), "content": "passage"},
        {"stop_after": 1, "round_size": 2, "require_evidence": False},
    ],
)
@pytest.mark.parametrize(("kind", "given"), KINDS)
def test_a_dump_is_json_and_builds_the_same_again(kind, given, changes):
    made = kind(**given, backend=FACTORY, **changes)
    again = kind(**given, **json.loads(made.model_dump_json()))
    assert again.reranker.settings == made.reranker.settings
    assert again.reranker.to_dict() == made.reranker.to_dict()
    assert again.model_dump() == made.model_dump()


def test_a_dump_of_live_objects_is_an_error():
    made = DeepEraCompressor(reranker=EvidenceReranker(Script(SCORES).backend()))
    assert made.backend is None
    with pytest.raises(PydanticSerializationError, match="made from live objects"):
        made.model_dump()


@pytest.mark.parametrize(("kind", "given"), KINDS)
def test_a_copy_has_what_is_updated_and_the_first_stays(kind, given):
    made = kind(**given, backend="local", top_n=3)
    other = made.model_copy(update={"backend": "rules", "threshold": 0.4})
    assert other.reranker.backend.name == "rules"
    assert (other.threshold, other.top_n, other.model_dump()["backend"]["judge"]) == (
        0.4, 3, "rules",
    )  # fmt: skip
    assert (made.reranker.backend.name, made.threshold) == ("local", None)
    assert made.model_copy() == made
    with pytest.raises(SettingsError, match="threshold must be in"):
        made.model_copy(update={"threshold": 5})
    with pytest.raises(SettingsError, match="unknown setting 'treshold'"):
        made.model_copy(update={"treshold": 0.5})


@pytest.mark.full
def test_a_field_can_be_configured_for_a_call(store, question):
    retriever = DeepEraRetriever(source=store, backend=FACTORY)
    configurable = retriever.configurable_fields(top_n=ConfigurableField(id="most"))
    assert len(configurable.invoke(question)) == 4
    assert len(configurable.invoke(question, {"configurable": {"most": 1}})) == 1
    assert retriever.top_n == 10


def test_all_named_options_of_the_llm_backend_are_tried_here():
    named = signature(llm_backend).parameters.values()
    known = {one.name for one in named if one.kind == Parameter.KEYWORD_ONLY}
    assert known == set(LLM_OPTIONS)


@pytest.mark.full
@pytest.mark.parametrize(("kind", "given"), KINDS)
def test_from_llm_takes_every_option_of_the_llm_backend(kind, given, monkeypatch):
    monkeypatch.setenv("SOME_KEY", "sk-verysecret")
    made = kind.from_llm(
        *given.values(), "openai:m", **LLM_OPTIONS, threshold=0.5, model_options={"seed": 7}
    )
    assert made.reranker.backend.spec == llm_backend("openai:m", **LLM_OPTIONS, seed=7).spec
    assert made.threshold == 0.5


@pytest.mark.parametrize(("kind", "given"), KINDS)
def test_from_llm_refuses_what_nobody_knows(kind, given):
    with pytest.raises(SettingsError, match="unknown setting 'treshold'"):
        kind.from_llm(*given.values(), ScriptedChat(scores={}), treshold=0.5)
    with pytest.raises(SettingsError, match="mode must be one of"):
        kind.from_llm(*given.values(), ScriptedChat(scores={}), mode="quick")
    for model in (None, 5, RunnableLambda(len)):
        with pytest.raises(SettingsError, match="model must be a LangChain chat model or its name"):
            kind.from_llm(*given.values(), model)


@pytest.mark.full
def test_a_mode_changes_the_calls_and_not_the_evidence(documents, question):
    found = {}
    for mode in ("separate", "fused"):
        with ChatServer(lambda one: answer_in_json(SCORES, one.system, one.user)) as server:
            made = DeepEraCompressor.from_llm(
                "openai:scripted", base_url=server.base_url, mode=mode, content="passage"
            )
            found[mode] = [one.id for one in made.compress_documents(documents, question)]
    assert found["fused"] == found["separate"] == ["trial", "meal", "cohort", "null"]


@pytest.mark.parametrize(("kind", "given"), KINDS)
def test_from_backend_takes_a_name_of_any_kind(kind, given, tmp_path):
    write_model(tmp_path)
    made = kind.from_backend(*given.values(), f"encoder:{tmp_path}", threshold=0.2)
    assert made.reranker.backend.spec == encoder_backend(str(tmp_path)).spec
    assert made.threshold == 0.2
    assert kind.from_backend(*given.values()).reranker.backend.name == "local"


@pytest.mark.full
@pytest.mark.parametrize(("kind", "given"), KINDS)
def test_a_preset_is_where_settings_begin(kind, given):
    assert kind(**given, preset="fast").content == "passage"
    assert kind(**given, preset="fast", content="summary").content == "summary"
    assert kind(**given, preset="fast", reranker=EvidenceReranker("rules")).content == "passage"
    cheap = kind.from_llm(*given.values(), "openai:m", base_url=URL, preset="cheap")
    assert (cheap.backend["kind"], cheap.backend["keep"]) == ("cascade", 20)
    assert cheap.backend["llm"]["mode"] == "grouped"
    with pytest.raises(SettingsError, match="preset must be one of fast, careful, cheap"):
        kind(**given, preset="quick")


def test_a_model_of_the_users_may_hold_a_backend():
    class Study(BaseModel):
        backend: Backend

    backend = load_backend("rules")
    assert Study(backend=backend).backend is backend
    with pytest.raises(ValidationError):
        Study(backend="rules")
