"""A page that says how a server is asked, with nothing from other hosts and no script."""

import json
from collections.abc import Iterator, Mapping
from html import escape
from types import MappingProxyType
from typing import Any

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;"
    "color-scheme:light dark}table{border-collapse:collapse;width:100%}"
    "th,td{text-align:left;vertical-align:top;padding:.2rem .8rem .2rem 0}"
    "pre{overflow-x:auto;padding:.8rem;border:1px solid}h2{margin-top:2rem}"
)
_NO_EXAMPLES: Mapping[str, Any] = MappingProxyType({})


def describe_paths(
    schema: Mapping[str, Any], *, about: str = "", examples: Mapping[str, Any] = _NO_EXAMPLES
) -> str:
    """Return a page of HTML for what OpenAPI says.

    Args:
        schema: OpenAPI's, as plain data.
        about: More that is said on top, as HTML.
        examples: Path to a body that it can be sent.
    """
    parts = [
        part for path, how in schema["paths"].items() for part in _describe(path, how, examples)
    ]
    title = f"{schema['info']['title']} {schema['info']['version']}"
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width'>"
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{escape(title)}</h1><p>For programs: <a href='openapi.json'>openapi.json</a>. "
        f"{about}An error is <code>{{&quot;error&quot;: {{&quot;kind&quot;, &quot;message&quot;}}}}"
        f"</code>.</p>{''.join(parts)}</body></html>\n"
    )


def _describe(path: str, how: Mapping[str, Any], examples: Mapping[str, Any]) -> Iterator[str]:
    for method, one in how.items():
        about = escape(one["summary"])
        yield f"<h2><code>{method.upper()} {escape(path)}</code></h2><p>{about}</p>"
        body = one.get("requestBody", {}).get("content", {}).get("application/json", {})
        fields = body.get("schema", {}).get("properties", {})
        rows = [_row(name, field) for name, field in fields.items()]
        rows += [_row(given["name"], _as_field(given)) for given in one.get("parameters", ())]
        if rows:
            head = "<tr><th>field</th><th>default</th><th>what</th></tr>"
            yield f"<table>{head}{''.join(rows)}</table>"
        if path in examples:
            given = json.dumps(examples[path], indent=1, ensure_ascii=False)
            yield f"<pre>curl localhost:8000{escape(path)} -d '{escape(given)}'</pre>"


def _as_field(parameter: Mapping[str, Any]) -> dict[str, Any]:
    """Return a parameter of a path or a query as fields of a body are described."""
    kind = parameter.get("schema", {}).get("type", "")
    said = filter(None, (kind, "required" if parameter.get("required") else ""))
    return {"description": parameter.get("description") or ", ".join(said)}


def _row(name: str, field: Mapping[str, Any]) -> str:
    default = json.dumps(field["default"]) if field.get("default") is not None else ""
    about = escape(field.get("description", ""))
    return (
        f"<tr><td><code>{escape(name)}</code></td><td>{escape(default)}</td><td>{about}</td></tr>"
    )
