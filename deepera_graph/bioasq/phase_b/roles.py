"""Who answers: the two roles of phase B, the exact and the ideal answer, played by a chat model.

Every role is a LangChain `Runnable`, given plain data and giving a `RoleAnswer`, so that a function
can stand in for either. Neither sees an id or a document.

Source:
    The 13b system whose styles these are (inventory, BA-13 to BA-17): 1 is query template T1 with
    answer template A1, 2 is T2 with A1, 3 is T2 with A2. All prompts are in our own words. Beyond
    its templates that system let the model draw on background knowledge and showed examples as
    turns of a conversation, which ``preset="paper"`` does.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal, NamedTuple, Unpack, get_args

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import Field
from typing_extensions import TypedDict

from deepera_graph.agents.role import LlmRole
from deepera_graph.bioasq.phase_b.replies import IdealReply, NamesReply, YesNoReply
from deepera_graph.bioasq.questions import (
    BioasqQuestion,
    QuestionType,
    example_texts,
    hash_examples,
)
from deepera_graph.chat.client import ChatModel, request_reply
from deepera_graph.chat.parsing import sanitize_line, schemas_hash
from deepera_graph.errors import SettingsError
from deepera_graph.judges.llm import prompt as show
from deepera_graph.judges.llm.backend import LlmKwargs, open_roles_model
from deepera_graph.prompts import text_of
from deepera_graph.schema import Backend, RoleAnswer, RoleSet

PACKAGE = "deepera_graph.bioasq.prompts"
Part = Literal["exact", "ideal"]
Preset = Literal["paper"]
Examples = Mapping[QuestionType, Sequence[BioasqQuestion]]
TYPE_NAMES: Mapping[QuestionType, str] = {
    "yesno": "yes/no",
    "factoid": "factoid",
    "list": "list",
    "summary": "summary",
}


class TypedAnswerTask(TypedDict):
    """What a role is given: the question, its type, and its snippets, best first, at least one.

    `exact` is the exact answer to be kept to, ``["yes"]`` or names; None if there is none yet.
    """

    type: QuestionType
    question: str
    snippets: list[str]
    exact: list[str] | None


class ExactAnswered(RoleAnswer):
    """An exact answer: ``["yes"]`` or ``["no"]``, or names, the most likely first."""

    names: list[str] = Field(description="yes or no, or names, best first.")
    notes: list[str] = Field(default_factory=list, description="What a reader should know of it.")


class IdealAnswered(RoleAnswer):
    """An answer in sentences."""

    text: str = Field(description="One paragraph.")
    notes: list[str] = Field(default_factory=list, description="What a reader should know of it.")


class Templates(NamedTuple):
    """What a style is made of."""

    query: Literal["T1", "T2"]
    answer: Literal["A1", "A2"]
    background: bool = False  # whether the model may draw on what it knows
    turns: bool = False  # whether examples are turns of the conversation, not text in one


STYLES: Mapping[int, Templates] = {
    1: Templates("T1", "A1"),
    2: Templates("T2", "A1"),
    3: Templates("T2", "A2"),
}


@dataclass(frozen=True, kw_only=True)
class TypedBackend(RoleSet):
    """The roles of phase B."""

    # gives the exact answer of a question that has one
    exact: Runnable[TypedAnswerTask, ExactAnswered]
    ideal: Runnable[TypedAnswerTask, IdealAnswered]  # gives the answer in sentences
    hints: bool = True  # whether the ideal answer is told the exact one, and so comes after it
    # what an answer of these roles is called: ``answered``, or ``extracted`` if it was put together
    # from the snippets by rules
    status: Literal["answered", "extracted"] = "answered"
    # what stands in the prompts; none of these may be asked
    examples: Sequence[BioasqQuestion] = ()


def typed_backend(
    # a LangChain chat model, or its name, ``provider:model``; or the backend that `llm_backend`
    # made of one
    model: Backend | BaseChatModel | str,
    *,
    # 1, 2 or 3; see `STYLES`. From 2 on the ideal answer is told the exact one, 3 asks for the
    # snippets' own words.
    style: int = 2,
    # ``"paper"`` asks as the system of BioASQ 13b did: background knowledge may supplement the
    # snippets, and examples are turns of the conversation
    preset: Preset | None = None,
    # answered questions for the prompts, by type; see `choose_examples`
    examples: Examples | None = None,
    # `base_url`, `api_key_env`, `retry` and `limits`, as for `llm_backend`
    **how_to_ask: Unpack[LlmKwargs],
) -> TypedBackend:
    """Have a chat model give exact and ideal answers."""
    if preset not in (None, *get_args(Preset)):
        raise SettingsError(f"preset must be paper, got {preset!r}")
    if style not in STYLES:
        raise SettingsError(f"style must be one of {', '.join(map(str, STYLES))}, got {style!r}")
    needed = (
        "typed answers need a chat model, and backend {name} has none; "
        "`extractive_backend` needs none"
    )
    opened = open_roles_model(model, needed=needed, **how_to_ask)
    shown = {kind: tuple(found) for kind, found in (examples or {}).items()}
    chat, paper = opened.chat, preset == "paper"
    templates = STYLES[style]._replace(background=paper, turns=paper)
    flat = [one for found in shown.values() for one in found]
    about = {
        "model": chat.name,
        "style": style,
        "preset": preset,
        "prompts": hash_prompts(),
        "schemas": schemas_hash((YesNoReply, NamesReply, IdealReply)),
        "shots": {kind: len(found) for kind, found in shown.items()},
        "examples": hash_examples(flat),
    }
    return TypedBackend(
        name="llm",
        exact=LlmExact(chat, templates, shown),
        ideal=LlmIdeal(chat, templates, shown),
        hints=templates.query == "T2",
        about=about,
        spec=opened.spec,
        examples=flat,
    )


class _TypedRole(LlmRole[TypedAnswerTask, Any]):
    """A role that knows the style and the examples of its prompts."""

    def __init__(self, model: ChatModel, templates: Templates, examples: Examples) -> None:
        super().__init__(model)
        self._templates, self._examples = templates, examples


class LlmExact(_TypedRole):
    """Gives the exact answer."""

    async def _play(self, task: TypedAnswerTask, config: RunnableConfig | None) -> ExactAnswered:
        shots = self._examples.get(task["type"], ())
        messages = exact_messages(task, self._templates, shots)
        if task["type"] == "yesno":
            said, notes = await request_reply(self.model, messages, YesNoReply, config)
            return ExactAnswered(names=[said.answer], **notes)
        named, notes = await request_reply(self.model, messages, NamesReply, config)
        return ExactAnswered(names=named.names, **notes)


class LlmIdeal(_TypedRole):
    """Gives the answer in sentences."""

    async def _play(self, task: TypedAnswerTask, config: RunnableConfig | None) -> IdealAnswered:
        shots = self._examples.get(task["type"], ())
        messages = ideal_messages(task, self._templates, shots)
        reply, notes = await request_reply(self.model, messages, IdealReply, config)
        return IdealAnswered(text=reply.text, **notes)


def exact_messages(
    task: TypedAnswerTask, templates: Templates, examples: Sequence[BioasqQuestion] = ()
) -> list[BaseMessage]:
    """Return the prompt for an exact answer; the task has none yet."""
    shots = [_exact_shot(one, whole=templates.query == "T2") for one in examples]
    return _messages(task, task["type"], templates, shots, hint="")


def ideal_messages(
    task: TypedAnswerTask, templates: Templates, examples: Sequence[BioasqQuestion] = ()
) -> list[BaseMessage]:
    """Return the prompt for an ideal answer; with T2 it is told the exact one."""
    with_hint = templates.query == "T2"
    shots = [_ideal_shot(one, with_hint=with_hint) for one in examples]
    known = "; ".join(map(sanitize_line, task["exact"] or ()))
    hint = _hint(known) if with_hint and known else ""
    return _messages(task, "ideal", templates, shots, hint)


class _Shot(NamedTuple):
    """An example: what is asked, what is told with it, and the answer as text and as a reply."""

    example: BioasqQuestion
    hint: str
    answer: str
    reply: Mapping[str, Any]


def _exact_shot(example: BioasqQuestion, *, whole: bool) -> _Shot:
    names = _names_of(example, whole=whole)
    is_yes_no = example.type == "yesno"
    reply: dict[str, Any] = {"answer": names[0]} if is_yes_no else {"names": names}
    return _Shot(example, "", "; ".join(names), reply)


def _ideal_shot(example: BioasqQuestion, *, with_hint: bool) -> _Shot:
    exact = "; ".join(_names_of(example, whole=True))
    text = sanitize_line(example.ideal_answers[0])
    return _Shot(example, _hint(exact) if with_hint and exact else "", text, {"text": text})


def _rules(kind: str, templates: Templates) -> str:
    """Return the answer template of one kind; A2 is A1 and what it adds."""
    names = [f"a1.{kind}"]
    if templates.answer == "A2" and kind != "yesno":
        names.append(f"a2.{kind}")
    return "\n\n".join(text_of(PACKAGE, one) for one in names)


def _hint(exact: str) -> str:
    return f"Exact answer, which yours must agree with: {exact}\n"


def _messages(
    task: TypedAnswerTask, kind: str, templates: Templates, shots: Sequence[_Shot], hint: str
) -> list[BaseMessage]:
    system = "system.paper" if templates.background else "system"
    rules = SystemMessage(text_of(PACKAGE, system, rules=_rules(kind, templates)))
    if not templates.turns:
        texts = [_as_text(number, one) for number, one in enumerate(shots, start=1)]
        return [rules, HumanMessage(_query(task, hint, texts))]
    turns = [message for one in shots for message in _as_turns(one)]
    return [rules, *turns, HumanMessage(_query(task, hint))]


def _query(task: TypedAnswerTask, hint: str, shots: Sequence[str] = ()) -> str:
    question, block = show.one_line(task["question"]), _numbered(task["snippets"])
    values = {
        "shots": "".join(f"{one}\n\n" for one in shots),
        "type": TYPE_NAMES[task["type"]],
        "question": question,
        "hint": hint,
        "marker": show.marker(block, question, hint, *shots),
        "snippets": block,
    }
    return text_of(PACKAGE, "query.user", **values)


def _as_turns(shot: _Shot) -> list[BaseMessage]:
    """Show an example as it would be asked, and its answer as a reply to that."""
    one = shot.example
    task: TypedAnswerTask = {
        "type": one.type,
        "question": one.body,
        "snippets": example_texts(one),
        "exact": None,
    }
    reply = json.dumps(shot.reply, ensure_ascii=False)
    return [HumanMessage(_query(task, shot.hint)), AIMessage(reply)]


def _as_text(number: int, shot: _Shot) -> str:
    return text_of(
        PACKAGE,
        "shot.user",
        number=str(number),
        type=TYPE_NAMES[shot.example.type],
        question=show.one_line(shot.example.body),
        hint=shot.hint,
        snippets=_numbered(example_texts(shot.example)),
        answer=shot.answer,
    )


def _numbered(texts: Sequence[str]) -> str:
    """Write each snippet on a line of its own, which begins with its number: none can begin one."""
    return "\n".join(f"[{number}] {sanitize_line(one)}" for number, one in enumerate(texts, 1))


def _names_of(example: BioasqQuestion, *, whole: bool) -> list[str]:
    """Return the golden answer of an example as names; unless *whole*, the first item of a list."""
    exact = example.exact_answer
    if exact is None or isinstance(exact, str):
        return [sanitize_line(exact)] if exact else []
    names = [sanitize_line(one[0]) for one in exact if one]
    return names if whole or example.type != "list" else names[:1]


def hash_prompts() -> str:
    """Return 12 hex digits that change with any template, or with the way they are put together."""
    digest = sha256()
    asked = [
        (n, one._replace(background=known)) for n, one in STYLES.items() for known in (False, True)
    ]
    for number, templates in asked:
        for kind in TYPE_NAMES:
            task: TypedAnswerTask = {
                "type": kind,
                "question": "?",
                "snippets": ["."],
                "exact": ["yes"],
            }
            made = ideal_messages(task, templates)
            if kind != "summary":
                made = [*exact_messages(task, templates), *made]
            for message in made:
                digest.update(f"{number}\0{kind}\0{message.text}\0".encode())
    return digest.hexdigest()[:12]
