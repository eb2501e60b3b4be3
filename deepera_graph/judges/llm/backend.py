"""The LLM backend, and how it is written down without its key."""

import os
import re
import warnings
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Literal, NamedTuple, TypedDict, Unpack, get_args

from langchain_core.language_models import BaseChatModel
from langchain_core.load import dumpd, load
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import Field, SecretStr

from deepera_graph.agents.role import LlmRole, fill_messages
from deepera_graph.chat.client import ChatModel, request_reply
from deepera_graph.chat.errors import NO_KEY, has_password
from deepera_graph.chat.models import find_key_variable, find_model, has_fixed_temperature
from deepera_graph.chat.parsing import ReplyModel, sanitize_line, schemas_hash
from deepera_graph.chat.sending import RateLimits, RetryPolicy
from deepera_graph.errors import SettingsError
from deepera_graph.judges.llm import prompt as show
from deepera_graph.judges.llm.judging import (
    FusedJudge,
    GroupedJudge,
    LlmAnswerer,
    LlmIntent,
    LlmJudge,
    LlmSummarizer,
)
from deepera_graph.judges.llm.prompt import (
    AnswerReply,
    FusedGroupReply,
    FusedReply,
    GroupReply,
    IntentReply,
    JudgementReply,
    SummaryReply,
    VerdictReply,
)
from deepera_graph.prompts import Domain, load_domain, prompts_hash
from deepera_graph.schema import Backend, RewriteTask, Rewritten
from deepera_graph.settings import read_fields
from deepera_graph.settings.ranges import check_at_least, suggest_value

_SHOWN = 600  # characters of a passage


class QueryReply(ReplyModel):
    """Another query."""

    thought: str = Field(description="What the passages lack, in at most 25 words.")
    query: str = Field(description="The next query; empty if no other would help.")


def llm_rewriter(model: Backend | BaseChatModel | str) -> Runnable[RewriteTask, Rewritten]:
    """Have a chat model rewrite queries.

    Raises:
        SettingsError: The model cannot be made, or a backend has no chat model.
    """
    needed = "rewriting needs a chat model, and backend {name} has none; 'rules' needs none"
    return LlmRewriter(open_roles_model(model, needed=needed).chat)


class LlmRewriter(LlmRole[RewriteTask, Rewritten]):
    """Writes the next query, for the same question."""

    async def _play(self, task: RewriteTask, config: RunnableConfig | None) -> Rewritten:
        question = show.one_line(task["question"])
        tried = "\n".join(f"- {show.one_line(one)}" for one in task["tried"])
        texts = (show.one_line(one)[:_SHOWN] for one in task["nearest"])
        nearest = "\n".join(f"[{place}] {one}" for place, one in enumerate(texts, start=1))
        values: dict[str, Any] = {"question": question, "tried": tried, "nearest": nearest}
        values["marker"] = show.marker(nearest, question, tried)
        messages = fill_messages(self.domain, "rewrite", **values)
        reply, notes = await request_reply(self.model, messages, QueryReply, config)
        return Rewritten(text=sanitize_line(reply.query), **notes)


Mode = Literal["separate", "fused", "grouped"]
GROUP_SIZE = 2  # the fastest where many calls may run at once: docs/cost.md
_FILLED = (IntentReply, JudgementReply, SummaryReply, AnswerReply)
_FILLED_IN: dict[Mode, tuple[type[ReplyModel], ...]] = {
    "separate": (),
    "fused": (VerdictReply, FusedReply),
    "grouped": (VerdictReply, FusedReply, GroupReply, FusedGroupReply),
}
_PROMPTS_OF: dict[Mode, tuple[str, ...]] = {
    "separate": (),
    "fused": ("fused",),
    "grouped": ("fused", "grouped"),
}
_PLAIN_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,39}")  # a key looks otherwise
_SECRET_OPTIONS = ("api_key", "_token", "_secret", "password")
_MAY_HOLD_SECRETS = frozenset({"default_headers", "default_query", "openai_proxy"})


class LlmKwargs(TypedDict, total=False):
    """The options of `llm_backend`, but for those of the model, as keyword arguments."""

    base_url: str | None
    api_key_env: str | None
    retry: RetryPolicy | Mapping[str, Any] | None
    limits: RateLimits | Mapping[str, Any] | None
    domain: Domain | Mapping[str, Any] | str | None
    mode: Mode
    group_size: int | None


def llm_backend(
    model: BaseChatModel | str,
    *,
    base_url: str | None = None,
    api_key_env: str | None = None,
    retry: RetryPolicy | Mapping[str, Any] | None = None,
    limits: RateLimits | Mapping[str, Any] | None = None,
    domain: Domain | Mapping[str, Any] | str | None = None,
    mode: Mode = "separate",
    group_size: int | None = None,
    **options: Any,
) -> Backend:
    """Have a chat model recognise intents, judge, summarize and answer.

    Args:
        model: A LangChain chat model, or its name, ``provider:model``; with *base_url* a name
            without a colon will do.
        base_url: Any server that speaks OpenAI's chat protocol. It is sent no key but one that
            *api_key_env* names; OpenAI's own key goes to OpenAI's servers alone.
        api_key_env: Environment variable that holds the key; the provider's own if None.
        retry: How long to wait and what to try again, a `RetryPolicy`; its fields by name, or the
            defaults.
        limits: What the server allows, `RateLimits` (calls at once, requests and tokens a minute),
            for all rerankers on this model together; its fields by name, or no limits.
        domain: Field whose rules are added to the prompts: ``"law"``, ``"medicine"``,
            ``"finance"``, a TOML file, or a `deepera_graph.prompts.Domain`; none for science in
            general.
        mode: What one call does. ``"separate"``: a score, or a summary. ``"fused"``: the score of a
            passage and, where it is high enough to be kept, its summary. ``"grouped"``: the same
            for several passages of a question.
        group_size: Most passages a call of ``"grouped"``, >= 2; 2 if None. Large groups
            share one prompt, small ones are answered sooner.
        options: Passed to a model given by name. The default is temperature 0, where the model
            takes one.

    Raises:
        SettingsError: The model cannot be made: unknown provider, missing key or package; or the
            mode is unknown, or the size of a group out of range or given to another mode.
    """
    size = _group_size(mode, group_size)
    spec: dict[str, Any] | None
    if isinstance(model, str):
        _refuse_secrets(options, base_url)
        model = f"openai:{model}" if base_url and model and ":" not in model else model
        spec = {"model": model, **options}
        if base_url:
            spec["base_url"] = base_url
        if api_key_env:
            spec["api_key_env"] = api_key_env
        made = _make(model, base_url, api_key_env, options)
    else:
        if base_url or api_key_env or options:
            raise SettingsError("base_url, api_key_env and options go with a model's name only")
        made, spec = model, _dumped(model)
    policy = read_fields("retry", RetryPolicy, retry or {})
    bounds = read_fields("limits", RateLimits, limits or {})
    chat = ChatModel(made, policy, bounds)
    field = None if domain is None else load_domain(domain)
    written: dict[str, Any] = {"domain": field.to_dict()} if field else {}
    if mode != "separate":
        written["mode"] = mode
    if size is not None:
        written["group_size"] = size
    return Backend(
        name="llm",
        intent=LlmIntent(chat, field),
        judge=_judge(mode, chat, field, size),
        summarizer=LlmSummarizer(chat, field),
        answerer=LlmAnswerer(chat, field),
        about={
            "model": chat.name,
            "prompts": "+".join([prompts_hash(), *map(prompts_hash, _PROMPTS_OF[mode])]),
            "schemas": schemas_hash((*_FILLED, *_FILLED_IN[mode])),
            **written,
        },
        names_evidence=True,
        spec={"kind": "llm", **spec, **written, **_changed(retry=policy, limits=bounds)}
        if spec and not spec.keys() & _MAY_HOLD_SECRETS
        else None,
    )


class RolesModel(NamedTuple):
    """What roles that a chat model plays are made from; see `llm_backend`."""

    chat: ChatModel
    domain: Domain | None
    spec: Mapping[str, Any] | None


def open_roles_model(
    model: Backend | BaseChatModel | str, *, needed: str, **how_to_ask: Unpack[LlmKwargs]
) -> RolesModel:
    """Open the chat model that is to play roles beside those of a backend.

    Args:
        model: A LangChain chat model, or its name, ``provider:model``; or the backend that
            `llm_backend` made of one.
        needed: What to say of a backend without a chat model, with its name at ``{name}``.
        how_to_ask: As for `llm_backend`; only beside a model.

    Raises:
        SettingsError: The model cannot be made, options stand beside a backend, or the backend has
            no chat model.
    """
    if isinstance(model, Backend) and how_to_ask:
        raise SettingsError(f"{', '.join(how_to_ask)} go with a model, not with a backend of one")
    backend = model if isinstance(model, Backend) else llm_backend(model, **how_to_ask)
    if not isinstance(backend.intent, LlmRole):
        raise SettingsError(needed.format(name=repr(backend.name)))
    return RolesModel(backend.intent.model, backend.intent.domain, backend.spec)


def llm_backend_from_spec(spec: Mapping[str, Any]) -> Backend:
    """Build the backend that a spec describes; keys come from the environment."""
    options = dict(spec)
    if "dump" in options:
        model = _loaded(options["dump"])
        return llm_backend(
            model,
            retry=options.get("retry"),
            limits=options.get("limits"),
            domain=options.get("domain"),
            mode=options.get("mode", "separate"),
            group_size=options.get("group_size"),
        )
    return llm_backend(options.pop("model"), **options)


def _group_size(mode: str, size: int | None) -> int | None:
    """Return the size of a group, None for a mode without."""
    if mode not in get_args(Mode):
        known, hint = ", ".join(get_args(Mode)), suggest_value(mode, get_args(Mode))
        raise SettingsError(f"mode must be one of {known}, got {mode!r}{hint}")
    if mode != "grouped":
        if size is not None:
            raise SettingsError(f"group_size goes with mode 'grouped', not with {mode!r}")
        return None
    found = GROUP_SIZE if size is None else size
    check_at_least("group_size", found, 2)
    return found


def _judge(mode: Mode, chat: ChatModel, domain: Domain | None, size: int | None) -> LlmJudge:
    if size is not None:
        return GroupedJudge(chat, domain, size)
    return FusedJudge(chat, domain) if mode == "fused" else LlmJudge(chat, domain)


def _changed(**parts: RetryPolicy | RateLimits) -> dict[str, Any]:
    """Write down what is not as by default."""
    return {name: asdict(part) for name, part in parts.items() if part != type(part)()}


def _make(
    name: str, base_url: str | None, api_key_env: str | None, options: Mapping[str, Any]
) -> BaseChatModel:
    provider, _, model = name.partition(":")
    chosen: dict[str, Any] = dict(options)
    if not has_fixed_temperature(model):
        chosen.setdefault("temperature", 0)
    if base_url:
        chosen["base_url"] = base_url
    of_openai = provider == "openai"
    variable = find_key_variable(base_url, api_key_env) if of_openai else api_key_env
    if variable:
        chosen["api_key"] = _key(variable)
    elif of_openai:
        chosen["api_key"] = SecretStr(NO_KEY)
    return find_model(name, **chosen)


def _refuse_secrets(options: Mapping[str, Any], base_url: str | None) -> None:
    if base_url and has_password(base_url):
        raise SettingsError(
            "base_url must not hold a password or a key: they come from the environment alone; "
            "name the variable that holds it with api_key_env"
        )
    for option in options:
        if option.endswith(_SECRET_OPTIONS):
            raise SettingsError(
                f"{option} is not taken: keys come from the environment alone; name the variable "
                "that holds it with api_key_env"
            )


def _key(variable: str) -> SecretStr:
    key = os.environ.get(variable, "").strip()  # a line break at its end would end up in an error
    if not key and not _PLAIN_VARIABLE.fullmatch(variable):  # so it is not repeated
        raise SettingsError(
            "api_key_env must be the name of an environment variable that is set, "
            "not the key itself"
        )
    if not key:
        raise SettingsError(
            f"no API key: set the environment variable {variable}, or give base_url for a server "
            "that needs none"
        )
    return SecretStr(key)


def _loaded(dump: Mapping[str, Any]) -> BaseChatModel:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `load` is marked beta since 2023
        try:
            model: BaseChatModel = load(dump, allowed_objects="all", secrets_from_env=True)
        except Exception as error:  # every provider raises its own
            raise SettingsError(f"the model cannot be built again: {error}") from error
    return model


def _dumped(model: BaseChatModel) -> dict[str, Any] | None:
    """Write a model down without its secrets; None if LangChain cannot, or headers may hold one."""
    if not isinstance(model, BaseChatModel):
        raise SettingsError(
            f"model must be a LangChain chat model or its name, 'provider:model', got {model!r:.80}"
        )
    if not model.is_lc_serializable():
        return None
    dump = dumpd(model)
    if dump.get("type") != "constructor" or dump["kwargs"].keys() & _MAY_HOLD_SECRETS:
        return None
    if any(isinstance(one, str) and has_password(one) for one in dump["kwargs"].values()):
        return None
    return {"dump": dump}
