"""The local backend: rules and word counts, no model, no download, no key."""

from deepera_graph.backends.local.roles import (
    ExtractiveSummarizer,
    QuotingAnswerer,
    RulesIntent,
    RulesJudge,
)
from deepera_graph.roles import Backend

JUDGE_VERSION = "1"
_ABOUT = {
    "judge": "rules",
    "judge_version": JUDGE_VERSION,
    "note": (
        "hand-written rules over words and numbers; it does not understand text, and its score is "
        "a rough probability"
    ),
}


def local_backend() -> Backend:
    """Return a backend that judges by rules, on this machine alone."""
    return Backend(
        name="local",
        intent=RulesIntent(),
        judge=RulesJudge(),
        summarizer=ExtractiveSummarizer(),
        answerer=QuotingAnswerer(),
        about=dict(_ABOUT),
        spec={"kind": "local"},
    )
