"""Groups of signals: what ablations remove, and what claims are ranked by."""

from collections.abc import Mapping

from deepera_graph.judge.measures import Measures
from deepera_graph.judge.surroundings import SURROUNDINGS

# A claim may be about anything, a method or an aim too: no results role, and nothing that tells an
# abstract from a paragraph. More of any of these may only help.
FOR_CLAIMS = frozenset(
    (
        *("cosine", "match", "match_least", "match_least3", "found", "sentence_cosine"),
        *("sentence_match", "strength", "names", "words_here", "words"),
        *("lead", "lead_second", "words_lead"),
    )
)
SIGNALS: Mapping[str, tuple[str, ...]] = {
    "cosine of passage": ("cosine", "near_cosine", "lead", "lead_second"),
    "cosines of sentences": (
        *("sentence_cosine", "sentence_cosine_mean", "first_cosine", "last_cosine"),
        "result_cosine",
    ),
    "late interaction": (
        *("match", "match_least", "match_least3", "found", "sentence_match"),
        *("sentence_match_mean", "result_match"),
    ),
    "results role": (
        *(name for name in Measures._fields if name.startswith("role")),
        *("result_cosine", "result_match", "pool_role", "by_aims_cosine", "by_aims_words"),
    ),
    "rules": (
        *("grounding", "grounding_spread", "strength", "grounded_coverage", "grounded_strength"),
        *("opening", "closing", "peak", "names"),
    ),
    "words": tuple(name for name in (*SURROUNDINGS, "words_here") if "words" in name),
    "studies": (
        *("topic", "support", "support_any", "link", "linked_topic", "topic_lead"),
        *("supported_lead", "link_two", "support_aims", "pool_topic"),
    ),
    "surroundings": SURROUNDINGS,
}
