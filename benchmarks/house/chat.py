"""A chat model that fills in whatever JSON schema it is given, at once and always alike."""

import json
import re
from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, ToolCall
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable

Json = dict[str, Any]
_QUESTION = re.compile(r"^Question: (.+)$", re.MULTILINE)
_NUMBER_OF_PASSAGE = re.compile(r"^=====(\d+)$", re.MULTILINE)
_SCORE = 0.9


class SchemaChat(BaseChatModel):
    """Answers with JSON, as the schema in the prompt says."""

    @property
    def _llm_type(self) -> str:
        return "schema"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        user = messages[-1].text
        tool = kwargs.get("tool")
        if tool is None:
            message = AIMessage(json.dumps(_fill("", find_schema(messages[0].text), user)))
        else:
            call = ToolCall(name=tool["title"], args=_fill("", tool, user), id="call-0")
            message = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return self._generate(messages, **kwargs)


class ToolChat(SchemaChat):
    """Answers with a call of the tool that it is offered."""

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Offer a tool."""
        return self.bind(tool=tools[0], **kwargs)


def find_schema(text: str) -> Json:
    """Return the JSON schema that a prompt holds.

    Raises:
        ValueError: It holds none.
    """
    decoder = json.JSONDecoder()
    for brace in re.finditer(r"\{", text):
        try:
            value, _ = decoder.raw_decode(text, brace.start())
        except ValueError:
            continue
        if "properties" in value:
            found: Json = value
            return found
    raise ValueError("the prompt holds no JSON schema")


def _fill(name: str, schema: Json, user: str) -> Any:
    """Fill in a field by its type and its name."""
    if "enum" in schema:
        return schema["enum"][0]
    write = {"object": _object, "array": _array, "string": _string}.get(schema["type"], _number)
    return write(name, schema, user)


def _object(name: str, schema: Json, user: str) -> Json:
    return {key: _fill(key, part, user) for key, part in schema["properties"].items()}


def _array(name: str, schema: Json, user: str) -> list[Any]:
    items = schema["items"]
    if items["type"] != "object":
        return [1]
    numbers = map(int, _NUMBER_OF_PASSAGE.findall(user))
    return [{**_fill("", items, user), "id": number} for number in numbers]


def _string(name: str, schema: Json, user: str) -> str:
    if name in {"entities", "entity_type"}:
        asked = _QUESTION.search(user)
        return f"subject: {asked[1] if asked else user}"
    return "nutrition" if name == "topic" else "It lowered glucose."


def _number(name: str, schema: Json, user: str) -> float:
    return _SCORE
