"""Checks of a model's server: its key, its ways to answer, one judgement."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Literal

from deepera_graph import prompts
from deepera_graph.chat import sending
from deepera_graph.chat.client import UNSUPPORTED, ChatModel
from deepera_graph.chat.errors import NO_KEY
from deepera_graph.chat.models import OutputMode, find_key_variable
from deepera_graph.chat.parsing import ReplyModel, parse_reply
from deepera_graph.chat.sending import RetryPolicy
from deepera_graph.doctor.address import REFUSED, ServerAddress, check_address
from deepera_graph.doctor.checks import SAMPLE, Finding, judge_sample
from deepera_graph.errors import AnswerError, CallError, SettingsError
from deepera_graph.judges.llm import prompt as show
from deepera_graph.judges.llm.backend import llm_backend
from deepera_graph.judges.llm.judging import LlmJudge
from deepera_graph.judges.llm.prompt import JudgementReply
from deepera_graph.text.words import split_sentences

_ANSWERS, _STRUCTURED = "model answers", "structured answers"
_JUDGEMENT = "judgement of the model"
_OPENAI = "openai:"
_OPENAI_URL = "https://api.openai.com/v1"


def check_server(
    model: str | None, base_url: str | None, key_variable: str | None, timeout: float
) -> Iterator[Finding]:
    """Yield what is found from the key to a judgement; ends early where nothing more can work."""
    is_openai = base_url is not None or (model or "").startswith(_OPENAI)
    variable = find_key_variable(base_url, key_variable) if is_openai else key_variable
    if variable is not None or is_openai:
        key = _check_key(variable) if variable is not None else _NO_KEY_IS_SENT
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


def _check_name(wanted: str | None, address: "ServerAddress") -> tuple[Finding, str | None]:
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


_KEY = "key"
_PLAIN_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,39}")


_NO_KEY_IS_SENT = Finding(
    _KEY,
    "ok",
    "none is sent, as many local servers need none; --api-key-env names one",
)


def _check_key(variable: str) -> Finding:
    """Return whether the variable is set, and to something that can be sent."""
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
    """Return how each way of asking goes: the simplest first, then best first.

    Nothing follows where the simplest failed for a reason that holds for all: no connection, no
    time, wrong key, unknown model, too many requests.
    """
    simplest = await _try(chat, _SIMPLEST)
    if simplest.error is not None and simplest.error.status not in _OF_ONE_MODE:
        return [simplest]
    others = [mode for mode in chat.output_modes.all if mode != _SIMPLEST]
    return [simplest, *[await _try(chat, mode) for mode in others]]


async def _try(chat: ChatModel, mode: OutputMode) -> _Trial:
    sentences = split_sentences(SAMPLE["text"])
    values = show.passage_values(SAMPLE, show.numbered(sentences))
    try:
        reply = await chat.call(mode, prompts.messages("score", **values), JudgementReply, None)
    except CallError as error:
        return _Trial(mode, "no_answer", str(error), error)
    if reply.refusal:
        return _Trial(mode, "no_json", f"the model refused: {reply.refusal}")
    return _read_reply(mode, reply.text)


def _read_reply(mode: OutputMode, text: str) -> _Trial:
    try:
        parse_reply(text, JudgementReply)
    except AnswerError as error:
        try:
            parse_reply(text, _AnyObject)
        except AnswerError:
            return _Trial(mode, "no_json", f"an answer without what was asked for: {error}")
        return _Trial(mode, "unusable", f"a JSON object, but {error}")
    return _Trial(mode, "usable", "a usable answer")


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
