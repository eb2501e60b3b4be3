"""Systems behind an address, as searches for papers that are compared: asked over HTTP.

A service answers GET with a query string in the form of ``/v1/search`` of ``deepera papers serve``:
``query``, ``k`` and the limits of a scope. It returns a JSON object with ``hits``, ``papers`` or
``results``, best first: ids, or objects with an id, a title, or both, perhaps under ``paper``.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import httpx

from deepera_graph.errors import SettingsError, StoreError
from deepera_graph.lab.studies.papers.runs import Call, Limits, PaperQuery, QueryRun, System
from deepera_graph.literature.paper_keys import normalize_id
from deepera_graph.papers.base import PaperBase

DEPTH = 300  # papers that a service is asked for, as ScholarQuest asks external searches
TIMEOUT = 60.0
_LISTS = ("hits", "papers", "results")
_IDS = ("id", "arxiv_id", "arxiv", "paper_id", "doi")


def search_by_service(
    url: str,
    *,
    base: PaperBase | None = None,
    depth: int = DEPTH,
    limits: Limits = "years",
    timeout: float = TIMEOUT,
) -> System:
    """Return the system that a service is: one request a query.

    Args:
        url: What is asked, e.g. ``http://localhost:8080/v1/search``.
        base: Matches what comes back: by any id, else by title. None: ids as they come.
        depth: Papers asked for, >= 1.
        limits: Those of the query that the service is given; hidden papers are taken out anyhow.
        timeout: Seconds to wait for an answer.

    Raises:
        SettingsError: It is no address.
    """
    address = httpx.URL(url)
    if address.scheme not in ("http", "https") or not address.host:
        raise SettingsError(f"{url!r} is no address such as http://localhost:8080/v1/search")

    def system(query: PaperQuery) -> QueryRun:
        scope = query.scope(limits).to_dict()
        asked = {name: _plain(one) for name, one in scope.items()}
        plain = _ask(address, {"query": query.text, "k": str(depth), **asked}, timeout)
        ids = [id for one in _listed(plain, url)[:depth] if (id := _match(one, base))]
        found = tuple(id for id in dict.fromkeys(ids) if id not in query.hidden)
        call = Call(id="S1", tool="search", asked=query.text, found=found)
        return QueryRun(ranked=found, calls=(call,), rounds=1)

    return system


def _plain(value: Any) -> str:
    return ",".join(value) if isinstance(value, list) else str(value)


def _ask(url: httpx.URL, asked: Mapping[str, str], timeout: float) -> Any:
    try:
        reply = httpx.get(url.copy_merge_params(dict(asked)), timeout=timeout)
    except httpx.HTTPError as error:
        raise StoreError(f"{url} gave no answer: {error}") from error
    if reply.status_code != httpx.codes.OK:
        raise StoreError(f"{url} answered HTTP {reply.status_code}: {reply.text[:200]!r}")
    try:
        return json.loads(reply.content)
    except ValueError as error:
        raise StoreError(f"{url} answered no JSON: {reply.text[:80]!r}") from error


def _listed(plain: Any, url: str) -> list[Any]:
    for name in _LISTS:
        if isinstance(plain, dict) and isinstance(plain.get(name), list):
            found: list[Any] = plain[name]
            return found
    raise StoreError(f"{url} answered without a list under {', '.join(_LISTS)}: {plain!r:.80}")


def _match(given: Any, base: PaperBase | None) -> str:
    """Return the id that a paper goes by in the base, else its own; empty if it has none."""
    one = given.get("paper", given) if isinstance(given, dict) else {"id": given}
    ids = [*_ids_of(one)] if isinstance(one, dict) else [normalize_id(str(one))]
    if base is not None:
        known = next((paper for id in ids if (paper := base.get(id))), None)
        title = one.get("title") if isinstance(one, dict) else None
        if known is None and isinstance(title, str) and title.strip():
            known = base.title(title).paper
        if known is not None:
            return normalize_id(known.id)
    return ids[0] if ids else ""


def _ids_of(one: Mapping[str, Any]) -> Iterator[str]:
    for name in _IDS:
        if isinstance(one.get(name), str | int) and str(one[name]).strip():
            yield normalize_id(str(one[name]))
