"""Every way a call goes wrong: what the server does, and what the caller must be told.

Every fault comes once as one that lasts (every try) and, where trying again can help, as one that
passes (the first tries only).
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace

from support.openai_server import Reply, Request

SLOW_SECONDS = 0.3
ATTEMPTS = 4
A_DAY = "86400"


@dataclass(frozen=True, slots=True)
class Good:
    """The right answer to one request."""

    request: Request
    text: str

    def say(self, text: str, finish_reason: str = "stop") -> Reply:
        """Answer with a text: as a call of the tool that is offered, else as content."""
        tools = self.request.body.get("tools")
        if not tools:
            return Reply(content=text, finish_reason=finish_reason)
        function = {"name": tools[0]["function"]["name"], "arguments": text}
        called = {"id": "call-1", "type": "function", "function": function}
        return Reply(tool_calls=[called], finish_reason=finish_reason)

    def with_score(self, score: object) -> str:
        return json.dumps({**json.loads(self.text), "score": score})


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault, as long as it lasts.

    Attributes:
        reply: What the server does instead.
        tries: How many tries about one passage it hits; None for all.
        status: What the passage must be told to be; None if its result must be as without it.
        cause: Pattern that the reason must match, for a passage that failed.
        cost: Calls answered, calls failed and calls asked again, for one role call.
        only_scores: Whether it makes sense for a judgement alone.
        poison: Whether it is the passage that is at fault, not the server.
    """

    reply: Callable[[Good], Reply]
    tries: int | None = None
    status: str | None = None
    cause: str = ""
    cost: tuple[int, int, int] = (1, 0, 0)
    only_scores: bool = False
    poison: bool = False

    @property
    def fails(self) -> bool:
        """Whether no answer is to be had."""
        return self.status == "failed"


Script = Callable[[Good], Reply]
_PROSE = "These results are hard to compare; some of them may well be of help."


def _content(script: Script, cause: str, *, only_scores: bool = False) -> dict[str, Fault]:
    """Replies that are asked again once."""
    lasting = Fault(
        reply=script, status="failed", cause=cause, cost=(2, 0, 1), only_scores=only_scores
    )
    return {"lasting": lasting, "once": replace(lasting, tries=1, status="repaired", cause="")}


def _transport(script: Script, cause: str) -> dict[str, Fault]:
    """Failures that are tried again."""
    lasting = Fault(reply=script, status="failed", cause=cause, cost=(0, ATTEMPTS, 0))
    return {
        "lasting": lasting,
        "once": replace(lasting, tries=1, status=None, cause="", cost=(1, 1, 0)),
        "thrice": replace(lasting, tries=3, status=None, cause="", cost=(1, 3, 0)),
    }


def _final(script: Script, cause: str, cost: tuple[int, int, int]) -> dict[str, Fault]:
    """Failures that nothing helps against; trying again would."""
    lasting = Fault(reply=script, status="failed", cause=cause, cost=cost)
    return {"lasting": lasting, "once": replace(lasting, tries=1)}


def _harmless(script: Script, **changes: bool) -> dict[str, Fault]:
    return {"lasting": Fault(reply=script, **changes)}


def _error(status: int, **headers: str) -> Script:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda good: Reply(status=status, headers=named)


def _thinking(good: Good) -> Reply:
    wrong = json.dumps({"reason": "x", "evidence": [1], "score": 0.0, "text": "x"})
    return good.say(f"<think>Is it {wrong}? No.</think>\n{good.text}")


def _with_evidence(good: Good, evidence: list[int], **changes: object) -> Reply:
    return good.say(json.dumps({**json.loads(good.text), "evidence": evidence, **changes}))


FAULTS: dict[str, dict[str, Fault]] = {
    "prose": _content(lambda good: good.say(_PROSE), "JSON object"),
    "truncated": _content(
        lambda good: good.say(good.text[: len(good.text) // 2], "length"),
        "JSON object|cut off|limit of",
    ),
    "score 70": _content(lambda good: good.say(good.with_score(70)), "score.*70", only_scores=True),
    "score -1": _content(lambda good: good.say(good.with_score(-1)), "score.*-1", only_scores=True),
    "score 8/10": _content(
        lambda good: good.say(good.with_score("8/10")), "score.*8/10", only_scores=True
    ),
    "score null": _content(
        lambda good: good.say(good.with_score(None)), "score.*None", only_scores=True
    ),
    "empty": _content(lambda good: Reply(content=""), "empty"),
    "empty object": _content(lambda good: good.say("{}"), "empty object"),
    "two verdicts": _content(
        lambda good: good.say(good.text + "\n" + good.with_score(0.01)),
        "differ",
        only_scores=True,
    ),
    "field twice": _content(
        lambda good: good.say(good.text[:-1] + ', "score": 0.01}'), "twice", only_scores=True
    ),
    "refusal": _final(lambda good: Reply(refusal="I cannot help with that."), "refused", (1, 0, 0)),
    "429": _transport(_error(429), "HTTP 429"),
    "429 Retry-After": _transport(_error(429, retry_after="0.1"), "HTTP 429"),
    "429 in a day": _final(_error(429, retry_after=A_DAY), "HTTP 429", (0, 1, 0)),
    "401": _final(_error(401), r"refused the API key \(HTTP 401\)", (0, 1, 0)),
    "500": _transport(_error(500), "HTTP 500"),
    "hang": _transport(lambda good: Reply(fault="hang"), "no answer within"),
    "reset": _transport(lambda good: Reply(fault="reset"), "Error"),
    "half a body": _transport(lambda good: replace(good.say(good.text), fault="half"), "Error"),
    "not JSON at all": _transport(
        lambda good: Reply(status=502, raw=b"<html>bad gateway</html>"), "HTTP 502"
    ),
    "slow": _harmless(lambda good: replace(good.say(good.text), latency=SLOW_SECONDS)),
    "think block": _harmless(_thinking),
    "duplicate ids": _harmless(lambda good: _with_evidence(good, [2, 2, 2]), only_scores=True),
    "poisoned passage": _harmless(lambda good: good.say(good.text), only_scores=True, poison=True),
    "invented quote": {
        "lasting": Fault(
            reply=lambda good: _with_evidence(good, [99], score=1.0),
            status="unproven",
            only_scores=True,
        ),
    },
}
EVERY: dict[str, Fault] = {
    f"{name}, {length}": fault for name, kinds in FAULTS.items() for length, fault in kinds.items()
}
