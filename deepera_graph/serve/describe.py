"""The page at ``/docs``: how the server is asked, with nothing from other hosts and no script."""

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;"
    "color-scheme:light dark}table{border-collapse:collapse;width:100%}"
    "th,td{text-align:left;vertical-align:top;padding:.2rem .8rem .2rem 0}"
    "pre{overflow-x:auto;padding:.8rem;border:1px solid}h2{margin-top:2rem}"
)
_EXAMPLES: Mapping[str, Any] = {
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


def describe_paths(schema: Mapping[str, Any]) -> str:
    """Return a page of HTML for what OpenAPI says."""
    parts = [part for path, how in schema["paths"].items() for part in _describe(path, how)]
    title = f"{schema['info']['title']} {schema['info']['version']}"
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width'>"
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{escape(title)}</h1><p>For programs: <a href='openapi.json'>openapi.json</a>. "
        "With keys, a request needs the header <code>Authorization: Bearer KEY</code>. With "
        "<code>Accept: text/event-stream</code>, <code>/v1/evidence</code> answers event by event. "
        "An error is <code>{&quot;error&quot;: {&quot;kind&quot;, &quot;message&quot;}}</code>.</p>"
        f"{''.join(parts)}</body></html>\n"
    )


def _describe(path: str, how: Mapping[str, Any]) -> Iterator[str]:
    for method, one in how.items():
        about = escape(one["summary"])
        yield f"<h2><code>{method.upper()} {escape(path)}</code></h2><p>{about}</p>"
        body = one.get("requestBody", {}).get("content", {}).get("application/json", {})
        if fields := body.get("schema", {}).get("properties"):
            rows = "".join(_row(name, field) for name, field in fields.items())
            head = "<tr><th>field</th><th>default</th><th>what</th></tr>"
            yield f"<table>{head}{rows}</table>"
        if path in _EXAMPLES:
            given = json.dumps(_EXAMPLES[path], indent=1, ensure_ascii=False)
            yield f"<pre>curl localhost:8000{escape(path)} -d '{escape(given)}'</pre>"


def _row(name: str, field: Mapping[str, Any]) -> str:
    default = json.dumps(field["default"]) if field.get("default") is not None else ""
    about = escape(field.get("description", ""))
    return (
        f"<tr><td><code>{escape(name)}</code></td><td>{escape(default)}</td><td>{about}</td></tr>"
    )
