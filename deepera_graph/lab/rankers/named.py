"""Rankers by name, for the command line; `deepera-lab bench table --help` lists them.

Those that ask a chat model take ``:MODEL`` behind their name, ``provider:model`` or
``model@http://server/v1``, as ``deepera:fused:MODEL`` does; without it they take the one of
`Models`, as ``deepera:llm`` does. The NAME of other models is a folder, a name on the Hugging Face
hub, or, for ``dense``, a package that brings a model.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from langchain_core.documents import BaseDocumentCompressor
from langchain_core.embeddings import Embeddings

from deepera_graph.calibration.instance import UnavailableError
from deepera_graph.chat.sending import RateLimits, RetryPolicy
from deepera_graph.errors import SettingsError
from deepera_graph.judges import NAMED, load_backend, parse_name
from deepera_graph.judges.llm.backend import Mode, llm_backend
from deepera_graph.lab.asking import MAX_CONCURRENCY, Chat
from deepera_graph.lab.rankers.base import FirstStage, Random, Ranker
from deepera_graph.lab.rankers.deepera import DeepEra
from deepera_graph.lab.rankers.external import (
    Compressor,
    cohere,
    cross_encoder,
    flashrank,
    langchain_listwise,
    rerankers,
    splade,
)
from deepera_graph.lab.rankers.llm import ListwiseLlm, llm_pointwise, paperqa
from deepera_graph.lab.rankers.retrieval import BM25, Dense, Nar, dense_openai, dense_sentences
from deepera_graph.packages import call_foreign
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.schema import Backend
from deepera_graph.settings.budget import Budget, Limiter, Meter
from deepera_graph.stores.judgements import JudgementCache

_SERVER = re.compile(r"@(?=https?://)")
_PLAIN: Mapping[str, Callable[[], Ranker]] = {
    "first-stage": FirstStage,
    "bm25": BM25,
    "flashrank": flashrank,
    "cohere": cohere,
}
_MODES: Mapping[str, Mode] = {"fused": "fused", "grouped": "grouped"}
_NAR = "nar"
_DEEPERA: Mapping[str, bool] = {"deepera": False, "deepera-kept": True}
_ASKING: Mapping[str, Callable[[Chat], Ranker]] = {
    "llm-pointwise": llm_pointwise,
    "llm-listwise": lambda chat: ListwiseLlm(chat, size=None),
    "rankgpt": ListwiseLlm,
    "paperqa": paperqa,
    "langchain-listwise": langchain_listwise,
}


@dataclass(frozen=True, kw_only=True)
class Models:
    """Makes the chat models that rankers name; all share one cache, one limit and one budget."""

    model: str = ""  # ``provider:model`` for rankers that name none; a bare name with *base_url*
    base_url: str | None = None  # a server of OpenAI's chat protocol, for rankers that name none
    api_key_env: str | None = None  # variable that holds the key; the provider's own if None
    retry: Mapping[str, Any] = field(default_factory=dict)  # see `RetryPolicy`
    limits: Mapping[str, Any] = field(default_factory=dict)  # see `RateLimits`
    cache: JudgementCache | None = None  # where answers are kept; None keeps none
    max_concurrency: int = MAX_CONCURRENCY  # most calls in flight, >= 1
    budget: Budget | None = None  # what all of them together may cost; None is no limit
    limiter: Limiter = field(init=False, repr=False, compare=False)
    meter: Meter = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.max_concurrency < 1:
            raise SettingsError(f"max_concurrency must be >= 1, got {self.max_concurrency}")
        RetryPolicy(**self.retry)
        RateLimits(**self.limits)
        object.__setattr__(self, "limiter", Limiter(self.max_concurrency))
        object.__setattr__(self, "meter", Meter(self.budget))

    def chat(self, named: str = "", *, mode: Mode = "separate") -> Chat:
        """Return the model that a ranker names, or the one for all."""
        model, base_url = self._parse_model(named)
        try:
            backend = llm_backend(
                model,
                base_url=base_url,
                api_key_env=self.api_key_env,
                retry=self.retry,
                limits=self.limits,
                mode=mode,
            )
        except SettingsError as error:
            raise UnavailableError(str(error)) from error
        return Chat(backend, cache=self.cache, limiter=self.limiter, meter=self.meter)

    def _parse_model(self, named: str) -> tuple[str, str | None]:
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


def make_ranker(name: str, *, seed: int = 0, models: Models | None = None) -> Ranker:
    """Return the ranker that a name stands for.

    Args:
        name: As the table of rankers in ``docs/benchmark.md`` has it.
        seed: Of the random order.
        models: The chat model of rankers that name none, its cache and its limits.

    Raises:
        SettingsError: No ranker has this name, or its factory cannot be used.
        UnavailableError: A package, weights or a key that it needs is missing.
    """
    head, colon, tail = name.partition(":")
    if name == "random":
        return Random(seed)
    if head in _ASKING and (tail or not colon):
        return _ASKING[head]((models or Models()).chat(tail))
    if head in _DEEPERA and tail:
        return _make_deepera(tail, models or Models(), kept_only=_DEEPERA[head])
    if head == _NAR and tail:
        return _make_nar(tail, models or Models())
    if head in _PLAIN and not colon:
        return _PLAIN[head]()
    if head in _WITH_PART and tail:
        return _WITH_PART[head](tail)
    with_part = [f"{one}:..." for one in (*_DEEPERA, _NAR, *_WITH_PART) if one not in _PLAIN]
    known = [*_PLAIN, "random", *_ASKING, *with_part]
    close = get_close_matches(name.partition(":")[0], [one.removesuffix(":...") for one in known])
    close = [f"deepera:{name}"] if name in NAMED else close
    hint = f"; did you mean {close[0]!r}?" if close and close[0] != name else ""
    raise SettingsError(f"ranker must be one of {', '.join(known)}, got {name!r}{hint}")


def asks_a_model(name: str) -> bool:
    """Whether the ranker of this name asks a chat model."""
    head, _, tail = name.partition(":")
    return head in _ASKING or (head in (*_DEEPERA, _NAR) and _is_chat_model(tail))


def _make_deepera(backend: str, models: Models, *, kept_only: bool) -> Ranker:
    if not _is_chat_model(backend):
        reranker = EvidenceReranker(_load_judge(backend), content="passage")
        return DeepEra(reranker, kept_only=kept_only)
    mode, _, model = backend.partition(":")
    if mode in _MODES:  # a fused judge writes summaries at once
        reranker, name = _ask(models, model, mode=_MODES[mode], content="summary")
        name = f"{name}, {mode}"
    else:
        reranker, name = _ask(models, backend, content="passage")
    name = f"DeepEra {name}{', kept' if kept_only else ''}"
    return DeepEra(reranker, kept_only=kept_only, name=name, meter=models.meter)


def _make_nar(backend: str, models: Models) -> Ranker:
    if not _is_chat_model(backend):
        return Nar(EvidenceReranker(_load_judge(backend)))
    reranker, name = _ask(models, backend)
    return Nar(reranker, name=f"NAR {name}", meter=models.meter)


def _ask(
    models: Models, named: str, *, mode: Mode = "separate", **settings: Any
) -> tuple[EvidenceReranker, str]:
    chat = models.chat("" if named == "llm" else named, mode=mode)
    reranker = EvidenceReranker(
        chat.backend, cache=models.cache, max_concurrency=models.max_concurrency, **settings
    )
    return reranker, chat.name


def _is_chat_model(backend: str) -> bool:
    """Tell ``llm``, a mode, ``provider:model`` and ``model@http://...`` from other judges."""
    mode = backend.partition(":")[0]
    if mode in _MODES or "@http" in backend:
        return True
    return parse_name(backend).kind == "llm" and not _is_factory(backend)


def _is_factory(name: str) -> bool:
    """Tell ``module:factory``, of a module that is here, from ``provider:model``."""
    module, _, attribute = name.partition(":")
    if not (module.isidentifier() and attribute.isidentifier()) or find_spec(f"langchain_{module}"):
        return False
    try:
        return callable(getattr(import_module(module), attribute, None))
    except ModuleNotFoundError as error:
        return error.name != module
    except Exception:  # noqa: BLE001 - a module of the user's: what is wrong is said when it loads
        return True


def _load_judge(name: str) -> Backend:
    """Make a judge that is no chat model; what its factory raises costs its own row alone."""
    made_by = parse_name(name).kind in ("factory", "llm")  # the latter is a module without a dot
    spec = {"kind": "factory", "path": name} if made_by else name
    work = partial(load_backend, spec)
    return call_foreign(f"judge {name} cannot be built", work, error=UnavailableError)


def _make_dense(path: str) -> Ranker:
    head, colon, tail = path.partition(":")
    if not colon:
        return dense_sentences(path)
    if head == "openai":
        return dense_openai(tail)
    made = _call_factory(path)
    if not isinstance(made, Embeddings):
        raise SettingsError(f"{path} must return LangChain embeddings, got {made!r:.80}")
    return Dense(made, name=f"dense {path}")


def _make_compressor(path: str) -> Ranker:
    made = _call_factory(path)
    if not isinstance(made, BaseDocumentCompressor):
        raise SettingsError(f"{path} must return a LangChain compressor, got {made!r:.80}")
    return Compressor(made, name=f"compressor {path}")


def _call_factory(path: str) -> object:
    module, _, attribute = path.partition(":")
    try:
        factory: Callable[[], Any] = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise SettingsError(f"factory {path!r} cannot be imported: {error}") from error
    try:
        return factory()
    except Exception as error:  # the user's code: a table has its other rows all the same
        told = f"factory {path!r} failed: {type(error).__name__}: {error}"
        raise UnavailableError(told) from error


_WITH_PART: Mapping[str, Callable[[str], Ranker]] = {
    "dense": _make_dense,
    "cross-encoder": cross_encoder,
    "splade": splade,
    "rerankers": rerankers,
    "flashrank": flashrank,
    "cohere": cohere,
    "compressor": _make_compressor,
}
