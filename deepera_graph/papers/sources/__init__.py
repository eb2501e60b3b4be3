"""The world's literature, asked live: services behind one protocol, fused and told apart.

Names are imported when they are first used.
"""

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from deepera_graph.errors import SettingsError
from deepera_graph.settings.ranges import suggest_value

if TYPE_CHECKING:
    from deepera_graph.papers.sources.base import CitationSource as CitationSource
    from deepera_graph.papers.sources.base import PaperSource as PaperSource
    from deepera_graph.papers.sources.base import SourceAnswer as SourceAnswer
    from deepera_graph.papers.sources.base import SourceQuery as SourceQuery
    from deepera_graph.papers.sources.fused import Literature as Literature
    from deepera_graph.papers.sources.fused import LiteratureAnswer as LiteratureAnswer
    from deepera_graph.papers.sources.live import live_base as live_base
    from deepera_graph.stores.judgements import JudgementCache

_SERVICES = {  # names, in the order they are asked, and where they are
    "pubmed": ("searched", "PubMed"),
    "europe_pmc": ("searched", "EuropePMC"),
    "openalex": ("citing", "OpenAlex"),
    "arxiv": ("searched", "ArXiv"),
    "semantic_scholar": ("citing", "SemanticScholar"),
}
NAMES = tuple(_SERVICES)
ALL = "all"
_SHORT = {"s2": "semantic_scholar", "epmc": "europe_pmc", "europepmc": "europe_pmc"}
_HOME = {
    "CitationSource": "base",
    "Literature": "fused",
    "LiteratureAnswer": "fused",
    "PaperSource": "base",
    "SourceAnswer": "base",
    "SourceQuery": "base",
    "live_base": "live",
}


def read_names(names: str | Iterable[str]) -> tuple[str, ...]:
    """Return names of services: ``pubmed,openalex``, a list of them, or ``all``; each once."""
    given = names.split(",") if isinstance(names, str) else list(names)
    found: dict[str, None] = {}
    for one in given:
        plain = str(one).strip().lower().replace("-", "_").replace(" ", "_")
        name = _SHORT.get(plain, plain)
        if name == ALL:
            found |= dict.fromkeys(NAMES)
        elif name in NAMES:
            found[name] = None
        else:
            near = suggest_value(plain, (*NAMES, ALL))
            raise SettingsError(
                f"source must be one of {', '.join(NAMES)} or {ALL}, got {str(one).strip()!r}{near}"
            )
    if not found:
        raise SettingsError(f"name a source: {', '.join(NAMES)} or {ALL}")
    return tuple(found)


def open_source(name: str, **how: Any) -> "PaperSource":
    """Return one service by its name; *how* is of `Service`."""
    [known] = read_names([name])
    module, service = _SERVICES[known]
    source: PaperSource = getattr(import_module(f"{__name__}.{module}"), service)(**how)
    return source


def open_sources(
    names: "str | Iterable[str | PaperSource]" = ALL,
    *,
    seconds: float | None = None,
    contact: str | None = None,
    cache: "JudgementCache | None" = None,
) -> "Literature":
    """Return services as one source that is asked at once.

    Args:
        names: ``pubmed,openalex``, a list of names and of sources of one's own, or ``all``; a
            source of one's own stands for the service of its name.
        seconds: Longest time for a search, with all waits and attempts; 20 if None.
        contact: Address of mail that services may write to; that in ``DEEPERA_CONTACT`` if None.
        cache: Keeps answers for a week; of `open_cache`.

    Raises:
        SettingsError: There is no such service, two sources have one name, or a setting is out of
            range.
    """
    from deepera_graph.papers.sources.fused import Literature  # noqa: PLC0415 - httpx takes a while
    from deepera_graph.papers.sources.service import SECONDS  # noqa: PLC0415

    most = SECONDS if seconds is None else seconds
    how: dict[str, Any] = {"seconds": most, "contact": contact, "cache": cache}
    given = [names] if isinstance(names, str) else list(names)
    taken = {getattr(one, "name", None) for one in given if not isinstance(one, str)}
    sources: list[PaperSource] = []
    for one in given:
        if not isinstance(one, str):
            sources.append(one)
            continue
        wanted = [name for name in read_names(one) if name not in taken]
        sources += [open_source(name, **how) for name in wanted]
        taken |= {*wanted}
    return Literature(sources, seconds=most)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
