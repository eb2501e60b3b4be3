"""Fields with rules of their own, added to the prompts as data."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, SystemMessage

from deepera_graph import EvidenceReranker, SettingsError, llm_backend, load_backend
from deepera_graph.prompts import NAMES, Domain, load_domain
from deepera_graph.testing import answer_in_json
from support.openai_server import ChatServer

QUESTION = "Does the notice period end on a holiday?"
OWN = "score = ['Only the tide tables of the port count.']\n"


@pytest.fixture
def server() -> Iterator[Any]:
    def answer(request: Any) -> Any:
        system, user = (one["content"] for one in request.messages)
        return answer_in_json({"notice": 0.9}, system, user)

    with ChatServer(answer) as running:
        yield running


def systems(server: Any, domain: Any) -> list[str]:
    before = len(server.requests)
    backend = llm_backend("openai:any", base_url=server.base_url, domain=domain)
    EvidenceReranker(backend).rerank(QUESTION, ["The notice period ends on the next day."])
    return [one.messages[0]["content"] for one in server.requests[before:]]


@pytest.mark.parametrize("name", NAMES)
def test_a_field_of_the_package_has_rules_for_every_role(name: str) -> None:
    domain = load_domain(name)
    assert domain.name == name
    for role in ("intent", "score", "summarize", "answer"):
        filled = domain.add_rules(role, [SystemMessage("Rules."), HumanMessage("Task.")])
        assert str(filled[0].content).startswith(f"Rules.\n\nIn this field ({name}):\n\n- ")
        assert filled[1].content == "Task."


def test_the_rules_stand_in_the_system_prompt_and_nowhere_else(server: Any) -> None:
    plain, law = systems(server, None), systems(server, "law")
    for without, with_rules in zip(plain, law, strict=True):
        assert with_rules.startswith(without)
        assert "In this field (law):" in with_rules.removeprefix(without)
    assert "In this field" not in "".join(plain)


def test_a_file_of_ones_own_is_a_field(server: Any, tmp_path: Path) -> None:
    path = tmp_path / "harbour.toml"
    path.write_text(OWN, encoding="utf-8")
    told = [one for one in systems(server, str(path)) if "tide tables" in one]
    assert len(told) == 1
    assert "In this field (harbour):" in told[0]


def test_a_field_is_part_of_what_a_backend_is_and_survives_being_written_down() -> None:
    made = [
        llm_backend("openai:any", base_url="http://127.0.0.1:9/v1", domain=one)
        for one in (None, "law", "medicine")
    ]
    assert len({str(one.fingerprint()) for one in made}) == 3
    assert load_backend(made[1].spec or {}).fingerprint() == made[1].fingerprint()


@pytest.mark.parametrize(
    ("domain", "named"),
    [
        ("alchemy", "'alchemy'"),
        ("none.toml", "'none.toml'"),
        ({"name": "empty"}, "'empty' has no rule"),
        ({"name": "odd", "score": "one text"}, "score must be a list"),
        ({"name": "odd", "rules": ["a"]}, "rules"),
        ({"name": "odd", "vocabulary": {"reason": ["why"]}}, "'reason'"),
        ({"name": "odd", "vocabulary": {"mechanism": "why"}}, "must be a list"),
    ],
)
def test_what_is_no_field_is_named(domain: Any, named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        load_domain(domain)


def test_a_file_that_is_no_toml_is_named(tmp_path: Path) -> None:
    path = tmp_path / "broken.toml"
    path.write_text("score = [", encoding="utf-8")
    with pytest.raises(SettingsError, match="'broken' is not TOML"):
        load_domain(path)


def test_a_domain_is_a_value() -> None:
    domain = Domain(name="harbour", score=("Tide tables count.",))
    assert load_domain(domain.to_dict()) == domain


def test_the_words_of_a_field_stand_in_the_prompt_that_reads_questions(server: Any) -> None:
    told = [one for one in systems(server, "law") if "is asked for with words such as" in one]
    assert len(told) == 1
    assert '"causal inference" is asked for with words such as: liable, liability' in told[0]


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("Is the seller liable for a hidden defect?", "causal inference"),
        ("Does an unsigned lease constitute a contract?", "definition"),
        ("Are boats painted?", None),
    ],
)
def test_the_words_of_a_field_tell_what_a_question_asks_for(question: str, kind: str) -> None:
    assert load_domain("law").find_intent(question) == kind


def test_the_vocabulary_of_a_field_helps_on_questions_written_for_it() -> None:
    path = Path(__file__).parents[3] / "benchmarks" / "judge" / "domains.py"
    spec = importlib.util.spec_from_file_location("domains", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in NAMES:
        n_questions, plain, own = module.count_right(name)
        assert n_questions == 8
        assert plain < own
