"""Checks of a model's server: its key and address, its ways to answer, one judgement."""

import json
import os
import re
import ssl
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, Literal
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from langchain_core.messages import AIMessage
from openai import DefaultHttpxClient

from deepera_graph import prompts
from deepera_graph.chat import sending
from deepera_graph.chat.client import UNSUPPORTED, ChatModel, RefusedError, read_answer
from deepera_graph.chat.errors import NO_KEY
from deepera_graph.chat.models import OutputMode, find_key_variable
from deepera_graph.chat.parsing import ReplyModel
from deepera_graph.chat.sending import RetryPolicy
from deepera_graph.doctor.checks import SAMPLE, Finding, judge_sample
from deepera_graph.errors import AnswerError, CallError, SettingsError
from deepera_graph.judges.llm import prompt as show
from deepera_graph.judges.llm.backend import llm_backend
from deepera_graph.judges.llm.judging import LlmJudge
from deepera_graph.judges.llm.prompt import JudgementReply
from deepera_graph.text.plain import read_lists
from deepera_graph.text.words import split_sentences

REFUSED = frozenset({401, 403})
_ADDRESS = "address"
_MOST_BYTES = 4_000_000
_CHAT = "/chat/completions"
_TROUBLES = read_lists(__file__)["troubles"]
_KEY, _PLAIN_VARIABLE = "key", re.compile(r"[A-Z][A-Z0-9_]{0,39}")
_ANSWERS, _STRUCTURED = "model answers", "structured answers"
_JUDGEMENT = "judgement of the model"
_OPENAI = "openai:"
_OPENAI_URL = "https://api.openai.com/v1"


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """What listing the models of a server gave: their names, and the HTTP status of its answer."""

    finding: Finding
    models: tuple[str, ...] = ()
    status: int | None = None


def check_address(base_url: str, key: str, *, seconds: float) -> ServerAddress:
    """Ask a server for its models; if that fails over HTTP, also where its routes mostly are."""
    seen = _list_models(base_url, key, seconds=seconds)
    better = _guess_address(base_url)
    if seen.status is None or seen.finding.status == "ok" or better == base_url.removesuffix("/"):
        return seen
    if _list_models(better, key, seconds=seconds).models:
        advice = f"use --base-url {_show_url(better)}, which does speak the protocol"
        return replace(seen, finding=replace(seen.finding, status="fail", advice=advice), models=())
    return seen


def _guess_address(base_url: str) -> str:
    """Return the address without the route of the chat, or with ``/v1`` at its end."""
    bare = base_url.rstrip("/")
    if bare.endswith(_CHAT):
        return bare.removesuffix(_CHAT)
    return bare if bare.endswith("/v1") else f"{bare}/v1"


def _list_models(base_url: str, key: str, *, seconds: float) -> ServerAddress:
    try:
        return _read(base_url, *_get(f"{base_url.removesuffix('/')}/models", key, seconds=seconds))
    except Exception as error:  # noqa: BLE001 - the client library in use has types of its own
        return ServerAddress(Finding(_ADDRESS, "fail", *explain(error, base_url, seconds)))


def _get(url: str, key: str, *, seconds: float) -> tuple[Any, bytes]:
    headers = {"Authorization": f"Bearer {key}"}
    deadline = time.monotonic() + seconds
    with (
        # with proxies and certificates as in calls
        DefaultHttpxClient(timeout=seconds, follow_redirects=False) as client,
        client.stream("GET", url, headers=headers) as answer,
    ):
        body = b""
        for piece in answer.iter_bytes():
            body += piece
            if len(body) > _MOST_BYTES:
                break
            if time.monotonic() > deadline:
                raise TimeoutError
    return answer, body


def _read(base_url: str, answer: Any, body: bytes) -> ServerAddress:
    where, status = _show_url(base_url), answer.status_code
    models = _read_names(body) if status == HTTPStatus.OK else None
    if models is not None:
        proxy = proxy_for(base_url)
        through = f" through the proxy {proxy}" if proxy else ""
        found = f"{where} answers{through}, and lists {len(models)} model(s)"
        return ServerAddress(Finding(_ADDRESS, "ok", found), models, status)
    if status in REFUSED:
        found = f"{where} answers, and refuses the key (HTTP {status})"
        return ServerAddress(Finding(_ADDRESS, "ok", found), status=status)
    kind = answer.headers.get("content-type", "").partition(";")[0]
    if kind == "text/html" or body.lstrip()[:1] == b"<":
        found = f"{where} answers with a web page (HTTP {status}), not with OpenAI's protocol"
        advice = "the address of such a server mostly ends in /v1; or this is some other service"
        return ServerAddress(Finding(_ADDRESS, "fail", found, advice), status=status)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.TOO_MANY_REQUESTS:
        found, advice = f"{where} answers HTTP {status}", "look into the log of the server"
    else:
        found = f"{where} answers, but has no list of models (HTTP {status})"
        advice = "if asking the model fails too, correct the address: most end in /v1"
    return ServerAddress(Finding(_ADDRESS, "warn", found, advice), status=status)


def _read_names(body: bytes) -> tuple[str, ...] | None:
    """Return the names in a list of models; None if it is no such list."""
    try:
        return tuple(str(one["id"]) for one in json.loads(body)["data"])
    except (ValueError, KeyError, TypeError):
        return None


def explain(error: BaseException, url: str, timeout: float) -> tuple[str, str]:
    """Return what went wrong with a connection, and what to do."""
    host, proxy = _show_host(url), proxy_for(url)
    found, advice = f"{type(error).__name__}: {error}", "see whether the server runs"
    for cause in _causes(error):
        kinds = {kind.__name__ for kind in type(cause).__mro__}  # those of two client libraries
        known = next((one for one in _TROUBLES if not kinds.isdisjoint(one["errors"])), None)
        if known is not None and not isinstance(cause, ssl.SSLWantReadError):  # that one waited
            values = {"host": host, "near": proxy or host, "timeout": timeout}
            found, advice = known["found"].format(cause=cause, **values), known["advice"]
            break
    if not proxy:
        return found, advice
    parts = urlsplit(url)
    return (
        f"{found} (the proxy of {parts.scheme} is {proxy})",
        f"{advice}; if it needs no proxy, export NO_PROXY={parts.hostname}",
    )


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield what lies deepest first: it says most."""
    if error is None:
        return
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _causes(part)
    yield from _causes(error.__cause__ or error.__context__)
    yield error


def proxy_for(url: str) -> str:
    """Return the host of the proxy that requests to *url* go through; empty if none."""
    parts = urlsplit(url)
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all") or ""
    if not proxy or proxy_bypass(parts.hostname or ""):
        return ""
    return _show_host(proxy if "//" in proxy else f"//{proxy}")


def _show_host(url: str) -> str:
    """Return host and port, without a user name and password."""
    return urlsplit(url).netloc.rpartition("@")[2]


def _show_url(url: str) -> str:
    """Return an address without user name, password and query, all of which may hold a key."""
    return urlsplit(url)._replace(netloc=_show_host(url), query="", fragment="").geturl()


def check_server(
    model: str | None, base_url: str | None, key_variable: str | None, timeout: float
) -> Iterator[Finding]:
    """Yield what is found from the key to a judgement; ends early where nothing more can work."""
    is_openai = base_url is not None or (model or "").startswith(_OPENAI)
    variable = find_key_variable(base_url, key_variable) if is_openai else key_variable
    if variable is not None or is_openai:
        key = _check_key(variable)
        yield key
        if key.status == "fail":
            yield from _skip("no call is made without the key", "address", _ANSWERS)
            return
    name = model
    if is_openai:
        own = os.environ.get("OPENAI_API_BASE") or os.environ.get("OPENAI_BASE_URL") or _OPENAI_URL
        secret = os.environ.get(variable or "", "").strip() or NO_KEY
        address = check_address(base_url or own, secret, seconds=timeout)
        yield address.finding
        if address.finding.status == "fail":
            yield from _skip("the address has to be right first", _ANSWERS, _JUDGEMENT)
            return
        named, name = _check_name(model, address)
        yield named
    if name is not None:
        yield from _check_answers(name, base_url, key_variable, timeout)


def _skip(why: str, *names: str) -> Iterator[Finding]:
    for name in names:
        yield Finding(name, "skipped", why)


def _check_name(wanted: str | None, address: ServerAddress) -> tuple[Finding, str | None]:
    """Return what to tell of the model's name, and the name to use; None if there is none."""
    listed = address.models
    if wanted is None and not listed:
        advice = "name one with --model"
        return Finding("model", "fail", "none is named, and the server lists none", advice), None
    name = listed[0] if wanted is None else wanted.removeprefix(_OPENAI)
    if wanted is None:
        finding = Finding("model", "ok", f"{name}, the first one that the server lists")
    elif listed and name not in listed:
        some = ", ".join(listed[:5]) + (", ..." if len(listed) > 5 else "")
        found = f"{name} is not among the models that the server lists: {some}"
        finding = Finding("model", "warn", found, "correct --model, if asking it fails")
    else:
        finding = Finding("model", "ok", name)
    return finding, _OPENAI + name


def _check_key(variable: str | None) -> Finding:
    """Return whether the variable is set, and to something that can be sent."""
    if variable is None:
        found = "none is sent, as many local servers need none; --api-key-env names one"
        return Finding(_KEY, "ok", found)
    if not _PLAIN_VARIABLE.fullmatch(variable) and variable not in os.environ:
        found = "the variable named is not set, and its name looks like a key itself"
        advice = "give --api-key-env the name of an environment variable, not the key"
        return Finding(_KEY, "fail", found, advice)
    key = os.environ.get(variable, "").strip()
    if not key:
        return Finding(_KEY, "fail", f"{variable} is not set", f"export {variable}=...")
    if not key.isascii() or not key.isprintable():
        found = f"{variable} holds characters that no HTTP header may contain"
        return Finding(_KEY, "fail", found, f"copy the key into {variable} again")
    if key[0] in "\"'":
        found = f"{variable} begins with a quotation mark"
        return Finding(_KEY, "warn", found, "set it without quotation marks")
    return Finding(_KEY, "ok", f"{variable} is set")


_NAMES: dict[OutputMode, str] = {
    "json_schema": "JSON schema",
    "tools": "tool call",
    "json_object": "JSON mode",
    "text": "plain text",
}
_SIMPLEST: OutputMode = "text"
_OF_ONE_MODE = UNSUPPORTED - {404}
_Outcome = Literal["usable", "unusable", "no_json", "no_answer"]


class _AnyObject(ReplyModel):
    """Any JSON object that is not empty."""


@dataclass(frozen=True, slots=True)
class _Trial:
    """How one way of asking for a structured answer went.

    ``unusable`` is a JSON object that breaks the schema, so that the server supports the mode and
    the model does badly; ``no_json`` is words or nothing; ``no_answer`` an error or silence.
    """

    mode: OutputMode
    outcome: _Outcome
    found: str
    error: CallError | None = None

    def finding(self, *, others_work: bool) -> Finding:
        """Return how it went; it is no matter if another way works."""
        name = f"method: {_NAMES[self.mode]}"
        if self.outcome == "usable":
            return Finding(name, "ok", self.found)
        advice = "no action needed: another method works"
        if not others_work:
            advice = "no method gives a usable answer, see structured answers"
        if self.outcome == "unusable":
            advice = "the server supports it; a larger model would answer better"
        return Finding(name, "warn", self.found, advice)


def _check_answers(
    name: str, base_url: str | None, key_variable: str | None, timeout: float
) -> Iterator[Finding]:
    retry = RetryPolicy(attempts=1, timeout=timeout)
    try:
        backend = llm_backend(name, base_url=base_url, api_key_env=key_variable, retry=retry)
    except SettingsError as error:
        yield Finding("model", "fail", str(error), "correct --model, or install its package")
        return
    assert isinstance(backend.judge, LlmJudge)
    chat = backend.judge.model
    trials = sending.run(_try_modes(chat))
    refused = trials[0].error
    if refused is not None and all(trial.error for trial in trials):
        yield _explain_refusal(refused)
        yield from _skip("the model gave no answer", _STRUCTURED, _JUDGEMENT)
        return
    is_openai = base_url is not None or name.startswith(_OPENAI)
    sent = find_key_variable(base_url, key_variable) if is_openai else key_variable
    accepted = " and the key" if os.environ.get(sent or "", "").strip() else " without a key"
    yield Finding(_ANSWERS, "ok", "the server took the call" + accepted)
    best = _find_best(trials, chat)
    one_works = any(trial.outcome == "usable" for trial in trials)
    yield from (trial.finding(others_work=one_works) for trial in trials)
    if best is None:
        advice = "use another model or another server: no answer of this one can be read"
        yield Finding(_STRUCTURED, "fail", "no method gives an answer in JSON", advice)
        return
    yield _describe_best(best)
    chat.output_modes.note_success(best.mode)
    yield judge_sample(_JUDGEMENT, backend)


async def _try_modes(chat: ChatModel) -> list[_Trial]:
    """Return how each way of asking goes: the simplest first, then best first."""
    # Nothing follows where the simplest failed for a reason that holds for all: no connection, no
    # time, wrong key, unknown model, too many requests.
    simplest = await _try(chat, _SIMPLEST)
    if simplest.error is not None and simplest.error.status not in _OF_ONE_MODE:
        return [simplest]
    others = [mode for mode in chat.output_modes.all if mode != _SIMPLEST]
    return [simplest, *[await _try(chat, mode) for mode in others]]


async def _try(chat: ChatModel, mode: OutputMode) -> _Trial:
    sentences = split_sentences(SAMPLE["text"])
    values = show.passage_values(SAMPLE, show.numbered(sentences))
    messages = prompts.messages("score", **values)
    try:
        message, _ = await chat.call(mode, messages, JudgementReply, None)
    except CallError as error:
        return _Trial(mode, "no_answer", str(error), error)
    try:
        read_answer(message, mode, JudgementReply, messages)
    except RefusedError as error:
        return _Trial(mode, "no_json", str(error))
    except AnswerError as error:
        return _explain_unusable(mode, message, error)
    return _Trial(mode, "usable", "a usable answer")


def _explain_unusable(mode: OutputMode, message: AIMessage, error: AnswerError) -> _Trial:
    try:
        read_answer(message, mode, _AnyObject, (), tool=JudgementReply.__name__)
    except AnswerError:
        return _Trial(mode, "no_json", f"an answer without what was asked for: {error}")
    return _Trial(mode, "unusable", f"a JSON object, but {error}")


def _find_best(trials: Sequence[_Trial], chat: ChatModel) -> _Trial | None:
    """Return the best way with a usable answer, or else with any JSON; None if there is none."""
    for outcome in ("usable", "unusable"):
        found = {trial.mode: trial for trial in trials if trial.outcome == outcome}
        for mode in chat.output_modes.all:
            if mode in found:
                return found[mode]
    return None


def _describe_best(best: _Trial) -> Finding:
    found = f"{_NAMES[best.mode]} will be used"
    if best.outcome == "unusable":
        advice = "expect failed passages: use a larger model"
        return Finding(_STRUCTURED, "warn", f"{found}; its answer breaks the form", advice)
    if best.mode == _SIMPLEST:
        advice = "it works; a server that knows JSON schema or tool calls needs fewer calls"
        return Finding(_STRUCTURED, "warn", found, advice)
    return Finding(_STRUCTURED, "ok", found)


def _explain_refusal(error: CallError) -> Finding:
    if error.status in REFUSED:
        advice = "see whether the key is right, not expired, and allowed to use this model"
    elif error.status == HTTPStatus.NOT_FOUND:
        advice = "correct --model; or the address lacks its /v1"
    elif error.status == HTTPStatus.TOO_MANY_REQUESTS:
        advice = "too many requests or no credit left: wait, or look at your account"
    elif error.status is None:
        advice = (
            "look into the log of the server; if it is slow or still loads its model, give "
            "--timeout here, and --call-timeout to the commands that ask it"
        )
    else:
        advice = "look into the log of the server"
    return Finding(_ANSWERS, "fail", str(error), advice)
