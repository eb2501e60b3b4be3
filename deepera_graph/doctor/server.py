"""A model's server: its key, its address, its ways to answer, one judgement."""

import os
from collections.abc import Iterator, Sequence

from deepera_graph.chat import io_loop
from deepera_graph.chat.client import ChatModel
from deepera_graph.chat.retry import RetryPolicy
from deepera_graph.doctor.address import Address, look_at_address
from deepera_graph.doctor.finding import Finding
from deepera_graph.doctor.key import DEFAULT_VARIABLE, look_at_key
from deepera_graph.doctor.methods import IN_WORDS, SIMPLEST, Trial, try_methods
from deepera_graph.doctor.sample import judge_sample
from deepera_graph.errors import CallError, SettingsError
from deepera_graph.judges.llm.backend import llm_backend
from deepera_graph.judges.llm.roles import LlmJudge
from deepera_graph.schema import Backend

_ANSWERS, _STRUCTURED = "model answers", "structured answers"
_JUDGEMENT = "judgement of the model"
_OPENAI = "openai:"
_OPENAI_URL = "https://api.openai.com/v1"
_NO_KEY = "not-needed"
_REFUSED = frozenset({401, 403})


def look(
    model: str | None, base_url: str | None, key_variable: str | None, timeout: float
) -> Iterator[Finding]:
    """Yield what is found from the key to a judgement; ends early where nothing more can work."""
    is_openai = base_url is not None or (model or "").startswith(_OPENAI)
    variable = key_variable or (DEFAULT_VARIABLE if is_openai else None)
    if variable is not None:
        key = look_at_key(variable, needed=base_url is None or key_variable is not None)
        yield key
        if key.status == "fail":
            yield from _skipped("no call is made without the key", "address", _ANSWERS)
            return
    name = model
    if is_openai:
        address = _address(base_url, variable, timeout)
        yield address.finding
        if address.finding.status == "fail":
            yield from _skipped("the address has to be right first", _ANSWERS, _JUDGEMENT)
            return
        named, name = _model(model, address)
        yield named
    if name is not None:
        yield from _ask(name, base_url, key_variable, timeout)


def _address(base_url: str | None, variable: str | None, timeout: float) -> Address:
    own = os.environ.get("OPENAI_API_BASE") or os.environ.get("OPENAI_BASE_URL") or _OPENAI_URL
    key = os.environ.get(variable or "", "").strip() or _NO_KEY
    return look_at_address(base_url or own, key, seconds=timeout)


def _model(wanted: str | None, address: Address) -> tuple[Finding, str | None]:
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


def _ask(
    name: str, base_url: str | None, key_variable: str | None, timeout: float
) -> Iterator[Finding]:
    retry = RetryPolicy(attempts=1, timeout=timeout)
    try:
        backend = llm_backend(name, base_url=base_url, api_key_env=key_variable, retry=retry)
    except SettingsError as error:
        yield Finding("model", "fail", str(error), "correct --model, or install its package")
        return
    chat = _chat_of(backend)
    trials = io_loop.run(_collect(chat))
    refused = trials[0].error
    if refused is not None and all(trial.error for trial in trials):
        yield _refusal(refused)
        yield from _skipped("the model gave no answer", _STRUCTURED, _JUDGEMENT)
        return
    yield Finding(_ANSWERS, "ok", "the server took the call" + _key_words(key_variable))
    yield from (trial.finding for trial in trials)
    best = _best(trials, chat)
    if best is None:
        advice = "use another model or another server: no answer of this one can be read"
        yield Finding(_STRUCTURED, "fail", "no method gives an answer in JSON", advice)
        return
    yield _choice(best)
    chat.output_modes.note_success(best.method)
    yield judge_sample(_JUDGEMENT, backend)


def _best(trials: Sequence[Trial], chat: ChatModel) -> Trial | None:
    """Return the best way with a usable answer, or else with any JSON; None if there is none."""
    for outcome in ("usable", "unusable"):
        found = {trial.method: trial for trial in trials if trial.outcome == outcome}
        for method in chat.output_modes.all:
            if method in found:
                return found[method]
    return None


def _choice(best: Trial) -> Finding:
    found = f"{IN_WORDS[best.method]} will be used"
    if best.outcome == "unusable":
        advice = "expect failed passages: use a larger model"
        return Finding(_STRUCTURED, "warn", f"{found}; its answer breaks the form", advice)
    if best.method == SIMPLEST:
        advice = "it works; a server that knows JSON schema or tool calls needs fewer calls"
        return Finding(_STRUCTURED, "warn", found, advice)
    return Finding(_STRUCTURED, "ok", found)


async def _collect(chat: ChatModel) -> list[Trial]:
    return [trial async for trial in try_methods(chat)]


def _chat_of(backend: Backend) -> ChatModel:
    assert isinstance(backend.judge, LlmJudge)
    return backend.judge.model


def _refusal(error: CallError) -> Finding:
    if error.status in _REFUSED:
        advice = "see whether the key is right, not expired, and allowed to use this model"
    elif error.status == 404:
        advice = "correct --model; or the address lacks its /v1"
    elif error.status == 429:
        advice = "too many requests or no credit left: wait, or look at your account"
    elif error.status is None:
        advice = "look into the log of the server; if it still loads its model, give --timeout"
    else:
        advice = "look into the log of the server"
    return Finding(_ANSWERS, "fail", str(error), advice)


def _key_words(key_variable: str | None) -> str:
    if os.environ.get(key_variable or DEFAULT_VARIABLE, "").strip():
        return " and the key"
    return " without a key"


def _skipped(why: str, *names: str) -> Iterator[Finding]:
    for name in names:
        yield Finding(name, "skipped", why)
