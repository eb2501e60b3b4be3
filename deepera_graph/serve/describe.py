"""What the page at ``/docs`` says of this server beside its paths."""

from collections.abc import Mapping
from typing import Any

ABOUT = (
    "With keys, a request needs the header <code>Authorization: Bearer KEY</code>. With "
    "<code>Accept: text/event-stream</code>, <code>/v1/evidence</code> answers event by event. "
)
EXAMPLES: Mapping[str, Any] = {
    "/v1/evidence": {
        "question": "Does wax coating keep apples firm?",
        "passages": [
            "Wax-coated apples lost 6% of their firmness, uncoated ones 31% (p < 0.001).",
            "Whether wax keeps apples firm has been debated for decades.",
        ],
    },
    "/v1/rerank": {
        "query": "Does wax coating keep apples firm?",
        "documents": ["Wax-coated apples stayed firm (p < 0.001).", "Apples were waxed."],
        "top_n": 1,
    },
    "/rerank": {
        "query": "Does wax coating keep apples firm?",
        "texts": ["Wax-coated apples stayed firm (p < 0.001).", "Apples were waxed."],
    },
}
