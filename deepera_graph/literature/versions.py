"""Which record of a study a sentence stands in: the article, its preprint, or a notice on it.

They are one study and count once, and their numbers may differ: a sentence is cited with its own.
A PDF that says nothing of itself, and records of one DOI, are one version; they know the same.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Literal, NamedTuple

from deepera_graph.literature.citation import Citation
from deepera_graph.literature.paper_keys import title_key
from deepera_graph.literature.same_study import list_ids, settle_notices

VersionKind = Literal["article", "preprint", "notice"]  # the one that is preferred first
# Of a score, by which a sentence of the article may be below one of its preprint: a sentence with
# other numbers in each scored 0.84 and 0.72.
NEARLY = 0.2
_KINDS: tuple[VersionKind, ...] = ("article", "preprint", "notice")
_ABOUT = attrgetter(
    "title", "authors", "year", "venue", "doi", "pmid", "url", "arxiv", "is_notice", "is_preprint"
)
_DRAFT = re.compile(
    r"(?i)(?:10\.(?:1101|64898)/[\d.]+|arxiv(?:\.org/(?:abs|pdf)/|[.:])[\w./-]*?\d)v(\d+)"
)


class Version(NamedTuple):
    """A version of a study: its number among them, from 0, and what it is."""

    number: int
    kind: VersionKind


def tell_versions(sources: Sequence[Citation]) -> list[Version]:
    """Return the version of each source of one study."""
    # What has no id, no journal and no year of its own goes with what was published in its year,
    # else with the article, else with the preprint. The pages of one PDF are looked at once.
    alike: dict[tuple[object, ...], Citation] = {}
    told = [_ABOUT(one) for one in sources]
    for one, about in zip(sources, told, strict=True):
        alike.setdefault(about, one)
    found = dict(zip(alike, _tell_distinct(list(alike.values())), strict=True))
    return [found[about] for about in told]


def _tell_distinct(sources: Sequence[Citation]) -> list[Version]:
    """Return the versions of sources that differ in what they say of themselves."""
    if len(sources) == 1:
        return [Version(0, _find_kind(sources[0]) or "article")]
    settled = settle_notices(sources)
    kinds = [_find_kind(one) for one in settled]
    parts: list[tuple[VersionKind, list[int]]] = []
    for kind in _KINDS:
        places = [place for place, one in enumerate(kinds) if one == kind]
        parts += [(kind, part) for part in _part(settled, places)]
    bare = [place for place, one in enumerate(kinds) if one is None]
    if bare and not any(kind != "notice" for kind, _ in parts):
        parts.append(("article", []))
    for place in bare:
        _, part = min(parts, key=lambda one: _rank_fit(settled, place, *one))
        part.append(place)
    found = {
        place: Version(number, kind) for number, (kind, part) in enumerate(parts) for place in part
    }
    return [found[place] for place in range(len(sources))]


def cite_as(own: Citation, others: Iterable[Citation]) -> Citation:
    """Return how a passage is cited beside *others* of its study: as the record it stands in."""
    # Of a preprint and of a notice the article is named, if it is among them.
    known = [own, *{_ABOUT(one): one for one in others}.values()]
    mine, *rest = tell_versions(known)
    cited = own.borrow(one for one, version in zip(known[1:], rest, strict=True) if version == mine)
    if mine.kind == "article":
        return cited
    is_preprint = mine.kind == "preprint"
    articles = [
        one for one, version in zip(known[1:], rest, strict=True) if version.kind == "article"
    ]
    return replace(
        cited,
        status=cited.status or ("preprint" if is_preprint else None),
        is_preprint=is_preprint,
        is_notice=not is_preprint,
        version_of=max(articles, key=_count_known).place if articles else "",
    )


def choose_version(wanted: Citation, sources: Sequence[Citation]) -> list[int]:
    """Return the places of the sources of one study that are of the version that is *wanted*."""
    # Where that is not among them, of the article, else the preprint, else a notice.
    versions = tell_versions(sources)
    ids, kind = {*list_ids(wanted)}, _find_kind(wanted) or "article"

    def fits(version: Version) -> tuple[bool, bool, int]:
        ones = [one for one, other in zip(sources, versions, strict=True) if other == version]
        is_named = any(not ids.isdisjoint(list_ids(one)) for one in ones)
        return not is_named, version.kind != kind, _KINDS.index(version.kind)

    best = min({*versions}, key=lambda version: (*fits(version), version.number))
    return [place for place, version in enumerate(versions) if version == best]


def order_passages(
    scores: Sequence[tuple[float, str | None]], sources: Sequence[Citation]
) -> list[int]:
    """Return the places of the passages of one study, the best first, by score and band."""
    # A passage of the article goes before a better one of its preprint, or of a notice, that is of
    # the same band and only a little better.
    places = sorted(range(len(scores)), key=lambda place: -scores[place][0])
    if len(places) < 2:
        return places
    kinds = [one.kind for one in tell_versions(sources)]
    score, band = scores[places[0]]
    near = (
        place
        for place in places
        if kinds[place] == "article"
        and scores[place][1] == band
        and scores[place][0] >= score - NEARLY
    )
    first = next(near, places[0])
    return [first, *(place for place in places if place != first)]


def _find_kind(one: Citation) -> VersionKind | None:
    """Return what a source is, as it says by itself; None if it says too little."""
    if one.is_notice:
        return "notice"
    if one.is_preprint:
        return "preprint"
    is_told = list_ids(one) or one.venue or (one.authors and one.year)
    return "article" if is_told else None


def _part(sources: Sequence[Citation], places: Sequence[int]) -> list[list[int]]:
    """Part sources of one kind into versions; what knows most is taken first."""
    parts: list[list[int]] = []
    for place in sorted(places, key=lambda place: -_count_known(sources[place])):
        one = sources[place]
        same = (part for part in parts if not any(_differ(one, sources[n]) for n in part))
        if (part := next(same, None)) is None:
            parts.append([place])
        else:
            part.append(place)
    return parts


def _differ(one: Citation, other: Citation) -> bool:
    """Tell whether two sources of one study and kind are two versions of it."""
    mine, theirs = dict(list_ids(one)), dict(list_ids(other))
    shared = mine.keys() & theirs.keys()
    if any(mine[kind] == theirs[kind] for kind in shared):
        drafts = _find_draft(one), _find_draft(other)
        return all(drafts) and drafts[0] != drafts[1]
    venues = title_key(one.venue), title_key(other.venue)
    is_elsewhere = one.is_preprint and all(venues) and venues[0] != venues[1]
    is_later = bool(one.year and other.year and one.year != other.year)
    return bool(shared) or is_elsewhere or is_later


def _find_draft(one: Citation) -> str:
    found = _DRAFT.search(one.doi) or _DRAFT.search(one.url)
    return found[1] if found else ""


def _count_known(one: Citation) -> int:
    return sum(map(bool, (one.authors, one.year, one.venue, one.doi, one.pmid)))


def _rank_fit(
    sources: Sequence[Citation], place: int, kind: VersionKind, part: Sequence[int]
) -> tuple[bool, bool, int, int]:
    """Return by what a version is chosen for a source that says little; the least is the best."""
    year = sources[place].year
    is_of_year = bool(year) and any(sources[n].year == year for n in part)
    known = max((_count_known(sources[n]) for n in part), default=0)
    return kind == "notice", not is_of_year, _KINDS.index(kind), -known
