"""OpenAlex works as documents, asked of the service; needs the extra `openalex`.

The key (``pyalex.config.api_key``; OpenAlex asks for one since 2026), retries and the address of
the service are those of `pyalex.config`, which is the caller's.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import pyalex  # type: ignore[import-untyped]  # has no stubs
import requests
from pydantic import ValidationError

from deepera_graph.bench.build.document import Document
from deepera_graph.bench.errors import DatasetError
from deepera_graph.bench.jsonl import first_problem
from deepera_graph.bench.readers.openalex import Work
from deepera_graph.errors import BackendError, SettingsError

PAGE = 100
_PUBLIC = "https://api.openalex.org"
_SECONDS = 60
_FIELDS = [name for name in Work.model_fields if name not in ("title", "concepts")]  # old names


def find_works(
    query: str = "", *, n: int, filters: Mapping[str, Any] | None = None
) -> Iterator[Document]:
    """Yield the best works for a query, page by page, in the order of the service.

    Args:
        query: Words to search titles, abstracts and full texts for; blank for all works.
        n: Most works, >= 1.
        filters: As OpenAlex names them, e.g. ``{"publication_year": 2020}``; works without an
            abstract are left out unless ``has_abstract`` says otherwise.

    Raises:
        SettingsError: *n* is below 1, or the service does not know a filter.
        BackendError: The service cannot be reached, or refuses.
        DatasetError: It answers with something that is no work.

    Source:
        https://developers.openalex.org/guides/page-through-results; 100 works a page are the most.
    """
    if n < 1:
        raise SettingsError(f"n must be >= 1, got {n}")
    works = Works().filter(**{"has_abstract": True, **(filters or {})}).select(_FIELDS)
    if query.strip():
        works = works.search(query)
    pages = works.paginate(per_page=min(n, PAGE), n_max=n)
    yield from islice((_document(record) for page in _asked(pages) for record in page), n)


class Works(pyalex.Works):  # type: ignore[misc]  # a class without types; its name is the path
    """Works of the service in `pyalex.config.openalex_url`, asked with a time limit.

    pyalex 0.21 asks the public one whatever is configured, and waits for ever.
    """

    @property
    def url(self) -> str:
        """The address of the next page."""
        address: str = super().url
        return address.replace(_PUBLIC, pyalex.config.openalex_url, 1)

    def _get_from_url(self, url: str, session: Any = None) -> Any:
        return super()._get_from_url(url, _Limited(session or requests.Session()))


class _Limited:
    """A session whose requests end after a minute without an answer."""

    def __init__(self, session: requests.Session) -> None:
        self._session = session

    def get(self, url: str, **options: Any) -> Any:
        return self._session.get(url, timeout=_SECONDS, **options)


def _asked(pages: Iterator[list[Any]]) -> Iterator[list[Any]]:
    try:
        yield from pages
    except pyalex.api.QueryError as error:
        raise SettingsError(f"OpenAlex does not understand the query: {error}") from error
    except requests.RequestException as error:
        raise BackendError(f"OpenAlex does not answer: {error}") from error


def _document(record: dict[str, Any]) -> Document:
    try:
        return Work.model_validate(record).document()
    except ValidationError as error:
        raise DatasetError(
            f"OpenAlex, work {record.get('id')!r}: {first_problem(error)}"
        ) from error
