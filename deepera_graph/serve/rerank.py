"""Rerank requests in the forms of Cohere, Jina and LiteLLM, and of text-embeddings-inference.

Sources:
    https://docs.cohere.com/v1/reference/rerank and https://docs.cohere.com/reference/rerank,
    https://api.jina.ai/redoc, https://docs.litellm.ai/docs/rerank and
    https://huggingface.github.io/text-embeddings-inference/ (paths ``/rerank`` and ``/info``).
"""

import asyncio
from collections.abc import Sequence
from difflib import get_close_matches
from math import log
from typing import Annotated, Any, Literal
from uuid import uuid4

from fastapi import APIRouter
from langchain_core.documents import Document
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag
from starlette.requests import Request
from starlette.responses import Response

from deepera_graph import __version__
from deepera_graph.errors import InputError
from deepera_graph.passages import TEXT_FIELDS, describe_no_text, find_text_field, take_field
from deepera_graph.pipeline.shown import describe_failures
from deepera_graph.result import RankedPassage, RerankResult
from deepera_graph.serve.backing.judging import ServerJudges
from deepera_graph.serve.config import RequestLimits
from deepera_graph.serve.reading import PlainRoute, check_size, unless_gone
from deepera_graph.serve.replies import RequestRefusedError, reply
from deepera_graph.serve.traffic import note_of

# What a ranking needs of a reranker: scores of all passages, the best first, and no summaries.
RANKING = {"content": "passage", "answer": False, "order": "score", "on_error": "keep_last"}
_LEAST = 1e-6  # of a probability whose log odds are told


class RerankRequest(BaseModel):
    """A request as clients of Cohere, Jina and LiteLLM send it; fields of theirs alone are ignored.

    A passage is read whole, whatever `max_tokens_per_doc` or `max_chunks_per_doc` say.
    """

    model_config = ConfigDict(extra="allow")  # clients have fields of their own services

    query: str = Field(description="What is asked.")
    documents: list[str | dict[str, Any]] = Field(
        description="Passages: texts, or objects with `text` and, if known, `title`."
    )
    model: str | None = Field(
        None, description="A judge of /v1/judges; any other name is the configured judge."
    )
    top_n: int | None = Field(None, ge=1, description="Most results; all if left out.")
    return_documents: bool | None = Field(
        None, description="Whether results hold their documents; by default not below /v2."
    )
    rank_fields: list[str] | None = Field(
        None, description="Fields of documents that are read, one below the other."
    )
    max_chunks_per_doc: int | None = Field(None, description="Taken and not needed.")
    max_tokens_per_doc: int | None = Field(None, description="Taken and not needed.")
    raw_scores: bool | None = Field(None, description="Whether scores are log odds.")


class InferenceRequest(BaseModel):
    """A request as clients of text-embeddings-inference send it."""

    model_config = ConfigDict(extra="ignore")

    query: str = Field(description="What is asked.")
    texts: list[str] = Field(description="Passages.")
    return_text: bool = Field(False, description="Whether results hold their texts.")
    raw_scores: bool = Field(False, description="Whether scores are log odds.")
    truncate: bool | None = Field(None, description="Taken and not needed.")


class RankedDocument(BaseModel):
    """A document's place in a ranking."""

    index: int = Field(description="Its place among the documents, from 0.")
    relevance_score: float
    document: dict[str, Any] | None = Field(None, description="If asked for.")


class RerankReply(BaseModel):
    """A ranking as Cohere and Jina give it."""

    id: str
    object: Literal["list"]
    model: str
    results: list[RankedDocument] = Field(description="Best first.")
    usage: dict[str, int]
    meta: dict[str, Any] = Field(description="With warnings, if there are any.")


class RankedText(BaseModel):
    """A text's place in a ranking."""

    index: int
    score: float
    text: str | None = Field(None, description="If asked for.")


class InfoReply(BaseModel):
    """What is served, as text-embeddings-inference says it."""

    model_id: str
    model_sha: str | None
    model_dtype: str
    model_type: dict[str, Any]
    max_concurrent_requests: int
    max_client_batch_size: int
    auto_truncate: bool
    version: str


def _name_form(given: Any) -> str:
    is_texts = isinstance(given, InferenceRequest) or (
        isinstance(given, dict) and "texts" in given and "documents" not in given
    )
    return "texts form" if is_texts else "documents form"


EitherRequest = Annotated[
    Annotated[RerankRequest, Tag("documents form")]
    | Annotated[InferenceRequest, Tag("texts form")],
    Discriminator(_name_form),
]


def rerank_router(judging: ServerJudges, limits: RequestLimits) -> APIRouter:
    """Return the paths that rerank clients ask on."""
    router, rankings = APIRouter(route_class=PlainRoute), Rankings(judging, limits)
    about = "Passages by how good they are as evidence, as Cohere and Jina are asked."

    @router.post("/v1/rerank", response_model=RerankReply, summary=about)
    @router.post("/v2/rerank", response_model=RerankReply, summary=about)
    async def rerank(asked: RerankRequest, request: Request) -> Response:
        return await rankings.rank(asked, request)

    @router.post(
        "/rerank",
        response_model=RerankReply | list[RankedText],
        summary="The same; or with `texts`, as text-embeddings-inference is asked.",
    )
    async def rerank_either(asked: EitherRequest, request: Request) -> Response:
        if isinstance(asked, InferenceRequest):
            return await rankings.infer(asked, request)
        return await rankings.rank(asked, request)

    @router.get(
        "/info",
        response_model=InfoReply,
        summary="What is served, as text-embeddings-inference says it.",
    )
    async def info() -> Response:
        return reply(
            {
                "model_id": judging.default,
                "model_sha": None,
                "model_dtype": "float32",
                "model_type": {
                    "reranker": {"id2label": {"0": "evidence"}, "label2id": {"evidence": 0}}
                },
                "max_concurrent_requests": limits.at_once + limits.queue,
                "max_client_batch_size": limits.documents,
                "auto_truncate": True,
                "version": __version__,
            }
        )

    return router


class Rankings:
    """Answers rerank requests."""

    def __init__(self, judging: ServerJudges, limits: RequestLimits) -> None:
        self._judging, self._limits = judging, limits

    async def rank(self, asked: RerankRequest, request: Request) -> Response:
        """Answer in the form of Cohere and Jina."""
        judge, warnings = self._find_judge(asked.model)
        texts = [_read_text(one, place, asked) for place, one in enumerate(asked.documents)]
        result = await self._judge(request, judge, asked.query, texts, _list_titles(asked))
        warnings += [
            *_name_near_misses(asked),
            *result.warnings,
            *filter(None, [describe_failures(result)]),
        ]
        shows = asked.return_documents
        if shows is None:
            shows = not request.url.path.startswith("/v2/")
        results = [
            {
                "index": (place := int(one.id)),
                "relevance_score": _told_score(one, asked),
                **({"document": _as_document(asked.documents[place])} if shows else {}),
            }
            for one in _best(result, asked.top_n)
        ]
        used = result.total_usage
        meta: dict[str, Any] = {
            "api_version": {"version": "2" if request.url.path.startswith("/v2/") else "1"},
            "billed_units": {"search_units": 0},
            "tokens": {"input_tokens": used.input_tokens, "output_tokens": used.output_tokens},
        }
        if warnings:
            meta["warnings"] = warnings
        usage = {"prompt_tokens": used.input_tokens, "total_tokens": used.tokens}
        about = {"id": str(uuid4()), "object": "list", "model": judge}
        return reply({**about, "results": results, "usage": usage, "meta": meta})

    async def infer(self, asked: InferenceRequest, request: Request) -> Response:
        """Answer with a list that has no place for a passage that failed: all of them, or none."""
        result = await self._judge(request, self._judging.default, asked.query, asked.texts, [])
        if unjudged := describe_failures(result):
            raise RequestRefusedError(502, "backend", unjudged)
        return reply(
            [
                {
                    "index": (place := int(one.id)),
                    "score": _told_score(one, asked),
                    **({"text": asked.texts[place]} if asked.return_text else {}),
                }
                for one in _best(result, None)
            ]
        )

    def _find_judge(self, model: str | None) -> tuple[str, list[str]]:
        """Return who judges; clients must name models, and often ones of their own service."""
        if model is None or self._judging.knows(model):
            return self._judging.find(model), []
        name = self._judging.default
        return name, [f"unknown judge {model!r:.80}; {name!r} was used instead"]

    async def _judge(
        self,
        request: Request,
        judge: str,
        question: str,
        texts: Sequence[str],
        titles: Sequence[str],
    ) -> RerankResult:
        check_size(question, texts, self._limits)
        note = note_of(request)
        note.judge, note.n_passages, note.question = judge, len(texts), question
        documents = [
            Document(
                id=str(place),
                page_content=text,
                metadata={"title": titles[place]} if titles and titles[place] else {},
            )
            for place, text in enumerate(texts)
        ]
        reranker = await asyncio.to_thread(self._judging.reranker, judge, **RANKING)
        result = await unless_gone(request, self._judging.rerank(note, reranker, documents))
        if texts and all(one.score is None for one in result.all_passages):
            blank = not any(text.strip() for text in texts)
            status, kind = (422, "input") if blank else (502, "backend")
            raise RequestRefusedError(status, kind, describe_failures(result))
        return result


def _name_near_misses(asked: RerankRequest) -> list[str]:
    """Return a warning for each field that is passed over and has nearly the name of one."""
    known = list(RerankRequest.model_fields)
    near = [
        (one, get_close_matches(one, known, n=1, cutoff=0.8)) for one in asked.model_extra or ()
    ]
    return [f"unknown field {one!r:.80}; did you mean {found[0]}?" for one, found in near if found]


def _best(result: RerankResult, n: int | None) -> list[RankedPassage]:
    """Return the passages that have a score, the highest first."""
    scored = (one for one in result.passages if one.score is not None)
    return sorted(scored, key=lambda one: (-(one.score or 0.0), one.rank))[:n]


def _told_score(passage: RankedPassage, asked: RerankRequest | InferenceRequest) -> float | None:
    if not asked.raw_scores:
        return passage.score
    chance = min(max(passage.score or 0.0, _LEAST), 1 - _LEAST)
    return log(chance / (1 - chance))


def _read_text(document: str | dict[str, Any], place: int, asked: RerankRequest) -> str:
    if isinstance(document, str):
        return document
    if asked.rank_fields:
        found = [document[name] for name in asked.rank_fields if name in document]
        if not found:
            names = ", ".join(asked.rank_fields)
            raise InputError(f"documents.{place} has none of the rank_fields {names:.120}")
        return "\n".join(map(str, found))
    text = take_field(dict(document), TEXT_FIELDS)
    if text is None and find_text_field(document):
        return ""  # costs itself alone, as a text that is empty does
    if not isinstance(text, str):
        raise InputError(f"documents.{place} {describe_no_text(document)}")
    return text


def _list_titles(asked: RerankRequest) -> list[str]:
    """Return what documents are called; those whose fields are chosen have their title there."""
    if asked.rank_fields:
        return []
    return [str(one.get("title") or "") if isinstance(one, dict) else "" for one in asked.documents]


def _as_document(document: str | dict[str, Any]) -> dict[str, Any]:
    return {"text": document} if isinstance(document, str) else document
