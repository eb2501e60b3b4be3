"""What compressor, retriever and tool share: settings as fields, one rerank, its kept documents."""

import asyncio
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig, ensure_config
from langchain_core.runnables.config import set_config_context
from pydantic import BaseModel, ConfigDict, Field, SkipValidation, field_serializer

from deepera_graph import (
    Backend,
    BackendError,
    Budget,
    Calibrated,
    EvidenceReranker,
    Gap,
    PerIntent,
    Quantile,
    RerankResult,
    Settings,
    SettingsError,
    cascade_backend,
    llm_backend,
    load_backend,
    preset,
)
from deepera_graph.judges.llm.backend import LlmKwargs
from deepera_graph.settings import SettingsKwargs

SETTINGS = tuple(one.name for one in fields(Settings))
LLM_OPTIONS = tuple(LlmKwargs.__annotations__)
_logger = logging.getLogger(__name__)


def _setting(name: str) -> Any:
    """Return the field of a setting: its default, and what it is, as nobody types it."""
    [one] = (each for each in fields(Settings) if each.name == name)
    about = re.sub(r"\[/?b\]|--", "", one.metadata["text"])
    return Field(default=one.default, description=about)


class LlmRerankerKwargs(SettingsKwargs, LlmKwargs, total=False):
    """What `from_llm` takes by name: settings, and options of `llm_backend`."""


class RerankerFields(BaseModel):
    """Who judges, and with which settings, as fields.

    Fields may be changed later: the next call goes by what they say then, and a value that cannot
    be used is refused at once. They serialise by `model_dump`, from which the constructor builds
    the same again; clients are made anew.

    Attributes:
        backend: Who judges, as for `EvidenceReranker`: a `Backend`, its name, or its plain form.
            Afterwards the plain form; None where it was made from live objects.
        preset: Settings to begin with: ``"fast"``, ``"careful"`` or ``"cheap"``.
        reranker: A reranker that was made before, instead of a backend. Settings that are given
            beside it count more than its own.

    The other fields are those of `deepera_graph.Settings`.

    Raises:
        SettingsError: A setting is out of range, the backend cannot be built, or both a backend
            and a reranker are given.
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    backend: SkipValidation[Backend | str | Mapping[str, Any] | None] = "local"
    preset: str | None = None
    reranker: EvidenceReranker = Field(
        default=None,  # type: ignore[assignment]  # made of the other fields if not given
        exclude=True,
        repr=False,
    )
    threshold: SkipValidation[
        float | Quantile | Gap | PerIntent | Calibrated | Mapping[str, Any] | None
    ] = _setting("threshold")
    top_n: SkipValidation[int] = _setting("top_n")
    order: SkipValidation[Literal["score", "retrieval"]] = _setting("order")
    content: SkipValidation[Literal["both", "summary", "passage"]] = _setting("content")
    on_empty: SkipValidation[Literal["empty", "top1", "topn", "original"]] = _setting("on_empty")
    on_error: SkipValidation[Literal["keep_last", "drop", "raise"]] = _setting("on_error")
    max_concurrency: SkipValidation[int] = _setting("max_concurrency")
    max_failed_share: SkipValidation[float] = _setting("max_failed_share")
    max_passage_chars: SkipValidation[int] = _setting("max_passage_chars")
    answer: SkipValidation[bool] = _setting("answer")
    budget: SkipValidation[Budget | Mapping[str, Any] | None] = _setting("budget")
    require_evidence: SkipValidation[bool | None] = _setting("require_evidence")
    stop_after: SkipValidation[int | None] = _setting("stop_after")
    stop_margin: SkipValidation[float] = _setting("stop_margin")
    round_size: SkipValidation[int | None] = _setting("round_size")

    if not TYPE_CHECKING:  # a type checker makes the signature from the fields

        def __new__(cls, *misplaced: Any, **values: Any) -> Self:
            """Refuse what is not given by name."""
            if misplaced:
                raise SettingsError(
                    f"{cls.__name__} takes its fields by name, {cls._example}; "
                    f"got {misplaced[0]!r:.80}"
                )
            return super().__new__(cls)

        def __init__(self, **values: Any) -> None:
            self._check_names(values)
            super().__init__(**values)
            self._build()  # here, as an error of ours in a validator would become one of pydantic

        def __setattr__(self, name: str, value: Any) -> None:
            self._check_change(name, value)
            if name == "backend":
                made = self._current().with_backend(load_backend(value or "local"))
                self.__dict__.update(reranker=made, backend=made.backend.spec)
                return
            if name == "reranker":
                self._take(value)
                return
            if name == "preset":
                self.__dict__.update(preset(value).settings if value else {})
                return
            super().__setattr__(name, value)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy; what is updated is checked and counts, as if it were assigned."""
        copied = super().model_copy(deep=deep)
        for name, value in (update or {}).items():
            setattr(copied, name, value)
        return copied

    _example: ClassVar[str] = ""

    @classmethod
    def _check_names(cls, names: Iterable[str], *, also: Iterable[str] = ()) -> None:
        """Raise `SettingsError` for a name that is neither a field nor one of *also*."""
        own = [name for name in cls.model_fields if name not in SETTINGS]
        Settings.check_names(names, also=(*own, *also))

    def _build(self) -> None:
        explicit = {name: getattr(self, name) for name in SETTINGS if name in self.model_fields_set}
        given: EvidenceReranker | None = self.reranker
        if given is None:
            made = EvidenceReranker(self.backend or "local", preset=self.preset, **explicit)
        elif "backend" in self.model_fields_set and self.backend != given.backend.spec:
            raise SettingsError("give a backend or a reranker, not both")
        else:
            changes = {**(preset(self.preset).settings if self.preset else {}), **explicit}
            made = given.with_settings(**changes) if changes else given
        self._take(made)

    def _take(self, made: EvidenceReranker) -> None:
        """Have a reranker, and in the fields what it says."""
        if not isinstance(made, EvidenceReranker):
            raise SettingsError(f"reranker must be an EvidenceReranker, got {made!r:.80}")
        now = {name: getattr(made.settings, name) for name in SETTINGS}
        self.__dict__.update(now, reranker=made, backend=made.backend.spec, preset=None)

    def _settings(self, **changes: Any) -> dict[str, Any]:
        """Return the settings that the fields say now."""
        return {**{name: getattr(self, name) for name in SETTINGS}, **changes}

    def _check_change(self, name: str, value: Any) -> None:
        """Raise `SettingsError` if there is no such field, or it cannot have this value."""
        if name in SETTINGS:
            Settings.of(self._settings(**{name: value}))
        elif not name.startswith("_"):
            self._check_names([name])

    def _current(self, **changes: Any) -> EvidenceReranker:
        """Return the reranker with the settings that the fields say now."""
        settings = Settings.of(self._settings(**changes))
        if settings == self.reranker.settings:
            return self.reranker
        return self.reranker.with_settings(**settings.to_dict())

    @field_serializer("backend")
    def _backend_to_plain(self, _: object) -> Any:
        return self.reranker.to_dict()["backend"]

    @field_serializer("threshold", "budget")
    def _setting_to_plain(self, value: object, info: Any) -> Any:
        return Settings.of({info.field_name: value}).to_dict()[info.field_name]


def build_llm_reranker(
    model: BaseChatModel | str,
    *,
    preset_name: str | None,
    model_options: Mapping[str, Any] | None,
    options: Mapping[str, Any],
) -> EvidenceReranker:
    """Build a reranker on a chat model; *options* are those of `llm_backend`, and settings."""
    start = None if preset_name is None else preset(preset_name)
    own = {name: value for name, value in options.items() if name in LLM_OPTIONS}
    settings = {name: value for name, value in options.items() if name not in LLM_OPTIONS}
    backend = llm_backend(
        model, **{**(start.backend if start else {}), **own, **(model_options or {})}
    )
    if start and start.cascade:
        backend = cascade_backend(load_backend("local"), backend, keep=start.cascade)
    return EvidenceReranker(backend, preset=preset_name, **settings)


def rerank(
    reranker: EvidenceReranker,
    question: str,
    documents: Sequence[Document],
    config: RunnableConfig | None,
) -> RerankResult:
    """Rerank; the config counts for more than the run around this call, but takes its limits.

    LangGraph does it the other way round: inside a chain its runs would nest under the chain, and
    not under the retriever whose callbacks it is given. So the config becomes what is around it.
    """
    given = ensure_config(config)
    with set_config_context(given) as context:
        return context.run(reranker.rerank, question, documents, config=given)


async def arerank(
    reranker: EvidenceReranker,
    question: str,
    documents: Sequence[Document],
    config: RunnableConfig | None,
) -> RerankResult:
    """Do what `rerank` does, in the running loop."""
    given = ensure_config(config)
    with set_config_context(given) as context:
        work = reranker.arerank(question, documents, config=given)
        return await asyncio.create_task(work, context=context)


def kept_documents(result: RerankResult) -> list[Document]:
    """Return the kept passages as new documents, best first; warn if some could not be judged.

    Or if the judge says that its scores mean little for this question.
    """
    check_judged(result)
    for warning in result.warnings:
        _logger.warning("%s", warning)
    if result.failed:
        _logger.warning(
            "%d of %d passages could not be judged, e.g. %r: %s",
            len(result.failed),
            len(result.all_passages),
            result.failed[0].id,
            result.failed[0].reason,
        )
    return result.to_documents()


def check_judged(result: RerankResult) -> None:
    """Raise `BackendError` if no passage could be judged: nothing would look like no evidence."""
    readable = [one for one in result.all_passages if one.text.strip()]
    if readable and all(one.score is None for one in readable):
        raise BackendError(f"no passage could be judged: {readable[0].reason}")
