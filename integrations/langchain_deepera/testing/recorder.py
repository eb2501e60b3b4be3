"""A callback handler that notes what ran under what."""

from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler


class RunRecorder(BaseCallbackHandler):
    """Notes every run, its parent and what it was given; and how many were calls of a model."""

    def __init__(self) -> None:
        self.names: dict[UUID, str] = {}
        self.parents: dict[UUID, UUID | None] = {}
        self.inputs: list[str] = []
        self.n_model_calls = 0

    def on_chain_start(self, serialized: Any, inputs: Any, **about: Any) -> None:
        """Note a chain."""
        self._note(serialized, inputs, about)

    def on_retriever_start(self, serialized: Any, query: str, **about: Any) -> None:
        """Note a retriever."""
        self._note(serialized, query, about)

    def on_tool_start(self, serialized: Any, input_str: str, **about: Any) -> None:
        """Note a tool."""
        self._note(serialized, input_str, about)

    def on_llm_start(self, serialized: Any, prompts: list[str], **about: Any) -> None:
        """Note a call of a completion model."""
        self.n_model_calls += 1
        self._note(serialized, prompts, about)

    def on_chat_model_start(self, serialized: Any, messages: Any, **about: Any) -> None:
        """Note a call of a chat model."""
        self.n_model_calls += 1
        texts = [str(message.content) for batch in messages for message in batch]
        self._note(serialized, "\n".join(texts), about)

    def runs_named(self, name: str) -> list[UUID]:
        """Return the runs of a name."""
        return [run for run, its_name in self.names.items() if its_name == name]

    def path(self, run: UUID) -> list[str]:
        """Return the names from a run up to its root; an orphan's path ends with ``?``."""
        path = [self.names.get(run, "?")]
        parent = self.parents.get(run)
        return path if parent is None else path + self.path(parent)

    def _note(self, serialized: Any, given: Any, about: dict[str, Any]) -> None:
        run = about["run_id"]
        self.names[run] = about.get("name") or (serialized or {}).get("name") or "unnamed"
        self.parents[run] = about.get("parent_run_id")
        self.inputs.append(str(given))
