"""Topics from a file: a list, a table, JSON lines, or the ACM Computing Classification System.

Source:
    ACM publishes its classification (CCS, 2012) as SKOS in XML: https://dl.acm.org/ccs. A concept
    has `prefLabel`, and `broader` or `narrower` concepts. In its own notation a concept is written
    with those above it, ``Information systems~Information retrieval~Query representation``.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from deepera_graph.errors import InputError
from deepera_graph.lab.quest.records import Topic
from deepera_graph.text.jsonl import open_records, suffix_of
from deepera_graph.text.records import LINES, TABLES, read_records

SUFFIXES = (".txt", ".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".xml", ".rdf", ".skos")
_LISTED = (*LINES, *TABLES, ".json")
_XML = (".xml", ".rdf", ".skos")
_NAMES = ("topic", "name", "label", "title", "preflabel", "concept", "concept_desc")
_IDS = ("id", "concept_id", "notation")
_ABOUT = ("description", "about", "definition", "scopenote", "note")
_PARENTS = ("parents", "path", "parent", "broader")
_LEVEL = re.compile(r"level[ _]?\d+", re.IGNORECASE)
_STEPS = re.compile(r"\s*(?:~|→|\s>\s)\s*")
SHIPPED = "arxiv-cs"  # the classes of computer science on arXiv, forty
LONGEST = 1000  # characters of a topic with those above it; more is no topic but a text


class TopicList(NamedTuple):
    """The topics of a file, and what tells it from others."""

    topics: tuple[Topic, ...]
    sha256: str


def read_topics(path: Path, *, whole: bool = False) -> TopicList:
    """Read topics, each name once below the same parents.

    A ``.txt`` file has a topic a line, perhaps below broader ones (``A > B > C`` or ``A~B~C``).
    ``arxiv-cs``, if there is no such file, is the list of arXiv's classes of computer science.
    Tables and JSON have `topic` (or `name`, `label`), and perhaps `id`, `description` and `parent`;
    a table may have a column for each level instead. ``.xml`` is SKOS.

    Args:
        path: The file; it may be compressed by gzip.
        whole: Whether topics that have narrower ones count, too; of SKOS and of tables with
            parents, the narrowest alone are taken otherwise.

    Raises:
        InputError: It cannot be read, is no such file, or has no topic; the message says what is
            wrong.
    """
    if is_shipped(path):
        with as_file(files(__package__) / f"{SHIPPED}.csv") as shipped:
            return read_topics(shipped)
    kind = suffix_of(path)
    if kind not in SUFFIXES:
        raise InputError(f"topics are in a file of {', '.join(SUFFIXES)}, got {str(path)!r}")
    with open_records(path) as (stream, _):
        data = stream.read()
    if kind in _XML:
        found = _read_skos(data, path)
    elif kind in _LISTED:
        with open_records(path) as (stream, _):
            found = [*_read_rows(stream, kind, path)]
    else:
        try:
            lines = data.decode("utf-8-sig").split("\n")
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: not UTF-8 at byte {error.start + 1}") from error
        found = [
            _topic(str(number), line)
            for number, line in enumerate(lines, start=1)
            if line.strip() and not line.lstrip().startswith("#")
        ]
    topics = _choose(found, whole=whole)
    try:
        check_topics(topics)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    return TopicList(tuple(topics), sha256(data).hexdigest())


def is_shipped(path: Path) -> bool:
    """Whether a path names the list that comes with the package, and is no file."""
    return str(path) == SHIPPED and not path.exists()


def read_classes(names: Sequence[str]) -> tuple[str, ...]:
    """Return classes that topics are mapped to, with those of arXiv in place of ``arxiv-cs``."""
    found = [
        each
        for one in names
        for each in ([row.id for row in read_topics(Path(one)).topics] if one == SHIPPED else [one])
    ]
    return tuple(dict.fromkeys(found))


def check_topics(topics: Sequence[Topic]) -> None:
    """Raise `InputError` if there is none, one has no name or is too long, or two have one id."""
    if not topics:
        raise InputError("no topics were given")
    known: dict[str, Topic] = {}
    for one in topics:
        if not one.name.strip():
            raise InputError(f"the topic with the id {one.id!r:.80} has no name")
        if len(one.path) > LONGEST:
            raise InputError(
                f"a topic has at most {LONGEST} characters, got {len(one.path)}: {one.path!r:.80}"
            )
        other = known.setdefault(one.id, one)
        if other is not one:
            raise InputError(
                f"two topics have the id {one.id!r:.80}: {other.path!r:.80} and {one.path!r:.80}"
            )


def _topic(id: str, written: str, *, about: str = "") -> Topic:
    *parents, name = [one for one in _STEPS.split(" ".join(written.split())) if one] or [""]
    return Topic(id=id, name=name, parents=tuple(parents), about=about)


def _read_rows(stream: Any, kind: str, path: Path) -> Iterator[Topic]:
    for record in read_records(stream, kind):
        if record.error:
            raise InputError(f"{path}, record {record.number}: {record.error}")
        fields = {str(name).strip().casefold(): one for name, one in record.fields.items()}
        written = _first(fields, _NAMES) or _join_levels(fields)
        if not written:
            known = ", ".join(fields) or "none"
            raise InputError(
                f"{path}, record {record.number}: a topic needs a field 'topic', 'name' or "
                f"'label', got {known}"
            )
        above = _first(fields, _PARENTS)
        whole = f"{above} > {written}" if above else written
        id = _first(fields, _IDS) or str(record.number)
        yield _topic(id, whole, about=_first(fields, _ABOUT))


def _first(fields: Mapping[str, Any], names: Iterable[str]) -> str:
    for name in names:
        value = fields.get(name)
        if isinstance(value, list | tuple):
            value = " > ".join(map(str, value))
        if value is not None and str(value).strip():
            return " ".join(str(value).split())
    return ""


def _join_levels(fields: Mapping[str, Any]) -> str:
    levels = [str(one).strip() for name, one in fields.items() if _LEVEL.fullmatch(name)]
    return " > ".join(filter(None, levels))


def _read_skos(data: bytes, path: Path) -> list[Topic]:
    try:
        root = ElementTree.fromstring(data)
    except ElementTree.ParseError as error:
        raise InputError(f"{path}: not XML: {error}") from error
    concepts = {
        _named(one, "about") or _named(one, "ID"): one
        for one in root.iter()
        if _bare(one.tag) == "Concept"
    }
    names = {id: _label(one) for id, one in concepts.items()}
    above: dict[str, str] = {}
    for id, one in concepts.items():
        for part in one:
            if _bare(part.tag) == "broader":
                above[id] = _named(part, "resource")
            elif _bare(part.tag) == "narrower":
                above.setdefault(_named(part, "resource"), id)
    return [
        Topic(id=id, name=names[id], parents=_parents(id, names, above), about=_note(one))
        for id, one in concepts.items()
        if id and names[id]
    ]


def _label(concept: Any) -> str:
    """Return the name of a concept, that in English if there are several."""
    labels = [one for one in concept if _bare(one.tag) == "prefLabel"]
    labels.sort(key=lambda one: not _named(one, "lang").startswith("en"))
    return _text(labels[0]) if labels else ""


def _note(concept: Any) -> str:
    notes = [one for one in concept if _bare(one.tag) in ("definition", "scopeNote")]
    return _text(notes[0]) if notes else ""


def _text(element: Any) -> str:
    return " ".join("".join(element.itertext()).split())


def _bare(tag: Any) -> str:
    return str(tag).rpartition("}")[2]


def _named(element: Any, name: str) -> str:
    """Return an attribute whatever its namespace, an id without what stands before its ``#``."""
    found = next((value for key, value in element.attrib.items() if _bare(key) == name), "")
    return str(found).rpartition("#")[2]


def _parents(id: str, names: Mapping[str, str], above: Mapping[str, str]) -> tuple[str, ...]:
    found: list[str] = []
    seen = {id}
    while (id := above.get(id, "")) in names and id not in seen:
        seen.add(id)
        found.append(names[id])
    return tuple(reversed(found))


def _choose(found: Iterable[Topic], *, whole: bool) -> list[Topic]:
    """Return each topic once; unless all are wanted, those alone that have no narrower one."""
    by_path: dict[tuple[str, ...], Topic] = {}
    for one in found:
        by_path.setdefault(tuple(step.casefold() for step in (*one.parents, one.name)), one)
    above = {path[:n] for path in by_path for n in range(1, len(path))}
    return [one for path, one in by_path.items() if whole or path not in above]
