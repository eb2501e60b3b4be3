"""Four ways to ask a model for a structured answer, and which of them its server can do."""

import json
from collections.abc import Sequence
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage

from deepera_graph.backends.llm.answers import Filled, json_schema

Method = Literal["json_schema", "tools", "json_object", "text"]
OPENAI_METHODS: tuple[Method, ...] = ("json_schema", "tools", "json_object", "text")
OTHER_METHODS: tuple[Method, ...] = ("tools", "text")
NOT_SUPPORTED = frozenset({400, 404, 422, 500, 501})
_FILTERED = frozenset({"content_filter", "refusal", "safety"})  # OpenAI, Anthropic, Google
_CUT_OFF = frozenset({"length", "max_tokens"})
_IN_WORDS = "\n\nAnswer with one JSON object and nothing else. It must follow this JSON schema:\n"


class Ladder:
    """The method in use: goes down when the first uses of a method fail, and never up again.

    A method that has given one usable answer is proven: what fails later is not its fault.
    """

    def __init__(self, methods: Sequence[Method]) -> None:
        self._methods = tuple(methods)
        self._place = 0
        self._proven: set[Method] = set()

    @property
    def methods(self) -> tuple[Method, ...]:
        """The methods there are, best first."""
        return self._methods

    @property
    def method(self) -> Method:
        """The method to use now."""
        return self._methods[self._place]

    def below(self, method: Method) -> Method | None:
        """Return what to try instead of an unproven method, if anything is left."""
        place = self._methods.index(method) + 1
        if method in self._proven or place == len(self._methods):
            return None
        return self._methods[place]

    def reached(self, method: Method) -> None:
        """Note words in answer, even unusable ones: what stands above gave none and is given up."""
        self._place = max(self._place, self._methods.index(method))

    def worked(self, method: Method) -> None:
        """Note a usable answer; what stands above an only now proven method is given up."""
        self._proven.add(method)
        self.reached(method)


def body_options(method: Method, kind: type[Filled], *, bounded: bool = True) -> dict[str, Any]:
    """Return what goes into the body of an OpenAI-style request.

    It is sent past the client library, whose own parsing raises and then loses the tokens.

    Args:
        method: How to ask.
        kind: What is to be filled in.
        bounded: Whether the server takes a schema that bounds the length of a text.
    """
    name, schema = kind.__name__, json_schema(kind, bounded=bounded or method != "json_schema")
    if method == "json_schema":
        form = {"name": name, "strict": True, "schema": schema}
        return {"response_format": {"type": "json_schema", "json_schema": form}}
    if method == "json_object":
        return {"response_format": {"type": "json_object"}}
    if method == "tools":
        return {
            "tools": [{"type": "function", "function": {"name": name, "parameters": schema}}],
            "tool_choice": {"type": "function", "function": {"name": name}},
        }
    return {}


def shown_messages(
    method: Method, messages: Sequence[BaseMessage], kind: type[Filled]
) -> list[BaseMessage]:
    """Return the messages; with the schema in words where the method does not carry it."""
    first, *rest = messages
    if method in {"json_schema", "tools"}:
        return [first, *rest]
    return [SystemMessage(f"{first.content}{_IN_WORDS}{json.dumps(json_schema(kind))}"), *rest]


def said(message: AIMessage, method: Method, kind: type[Filled]) -> str:
    """Return what a model answered: its text, or the arguments of its tool calls, all of them.

    Where tools were offered, a call goes before text; elsewhere text goes before a call. A call of
    a tool that was not offered is nothing.
    """
    text = str(message.text)
    if method != "tools" and text.strip():
        return text
    called = [json.dumps(one["args"]) for one in message.tool_calls if one["name"] == kind.__name__]
    broken = [
        str(one.get("args") or "")
        for one in message.invalid_tool_calls
        if one.get("name") == kind.__name__
    ]
    return "\n".join([*called, *broken]) or text


def refusal(message: AIMessage) -> str:
    """Return why a model refused, or its provider's filter; empty if neither did."""
    if _ending(message) in _FILTERED:
        return "stopped by the provider's content filter"
    return str(message.additional_kwargs.get("refusal") or "")


def is_cut_off(message: AIMessage) -> bool:
    """Whether an answer ended at the limit of its tokens."""
    return _ending(message) in _CUT_OFF


def _ending(message: AIMessage) -> str:
    told = message.response_metadata
    return str(told.get("finish_reason") or told.get("stop_reason") or "").lower()
