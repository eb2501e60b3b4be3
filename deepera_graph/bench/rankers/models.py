"""The chat models of one benchmark: named in a ranker's name, or once for all of them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from deepera_graph.backends.llm import Mode, llm_backend
from deepera_graph.backends.llm.pace import Limits
from deepera_graph.bench.chat import MAX_CONCURRENCY, Chat
from deepera_graph.bench.errors import UnavailableError
from deepera_graph.budget import Budget, Meter
from deepera_graph.cache.store import JudgementCache
from deepera_graph.errors import SettingsError
from deepera_graph.limiter import Limiter

_SERVER = re.compile(r"@(?=https?://)")


@dataclass(frozen=True, kw_only=True)
class Models:
    """Makes the chat models that rankers name; all share one cache, one limit and one budget.

    Attributes:
        model: ``provider:model`` for rankers that name none; with *base_url* the bare name will do.
        base_url: A server that speaks OpenAI's chat protocol, for rankers that name none.
        api_key_env: Environment variable that holds the key; the provider's own if None.
        limits: What the servers allow, see `deepera_graph.backends.llm.pace.Limits`.
        cache: Where answers are kept; None keeps none.
        max_concurrency: Most calls in flight, >= 1.
        budget: What all of them together may cost; None is no limit.

    Raises:
        SettingsError: A number is out of range.
    """

    model: str = ""
    base_url: str | None = None
    api_key_env: str | None = None
    limits: Mapping[str, Any] = field(default_factory=dict)
    cache: JudgementCache | None = None
    max_concurrency: int = MAX_CONCURRENCY
    budget: Budget | None = None
    limiter: Limiter = field(init=False, repr=False, compare=False)
    meter: Meter = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.max_concurrency < 1:
            raise SettingsError(f"max_concurrency must be >= 1, got {self.max_concurrency}")
        Limits(**self.limits)
        object.__setattr__(self, "limiter", Limiter(self.max_concurrency))
        object.__setattr__(self, "meter", Meter(self.budget))

    def chat(self, named: str = "", *, mode: Mode = "separate") -> Chat:
        """Return the model that a ranker names, or the one for all.

        Args:
            named: ``provider:model`` or ``model@http://...``; empty for the one for all.
            mode: Of its backend, see `llm_backend`.

        Raises:
            SettingsError: No model is named, or not in this form.
            UnavailableError: The model cannot be made: no key, no package.
        """
        model, base_url = self._parsed(named)
        try:
            backend = llm_backend(
                model,
                base_url=base_url,
                api_key_env=self.api_key_env,
                limits=self.limits,
                mode=mode,
            )
        except SettingsError as error:
            raise UnavailableError(str(error)) from error
        return Chat(backend, cache=self.cache, limiter=self.limiter, meter=self.meter)

    def _parsed(self, named: str) -> tuple[str, str | None]:
        model, *server = _SERVER.split(named or self.model, maxsplit=1)
        base_url = server[0] if server else self.base_url
        if not model:
            raise SettingsError("a ranker that asks a chat model needs one, e.g. --model NAME")
        if base_url is not None:
            return "openai:" + model.removeprefix("openai:"), base_url
        if ":" not in model:
            raise SettingsError(
                f"model must be 'provider:model', e.g. openai:{model}, or 'model@http://server', "
                f"got {model!r}"
            )
        return model, None
