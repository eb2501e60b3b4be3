"""Labels of raters: kept one by one as the page sends them, or read from a sheet."""

import csv
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from io import StringIO
from pathlib import Path
from threading import Lock
from typing import Any, Self
from unicodedata import normalize

from deepera_graph.agents.journal import Journal
from deepera_graph.errors import InputError, SettingsError
from deepera_graph.lab.quest.audit.drawing import FILLED_COLUMNS, GRADES, LABELS, Audit
from deepera_graph.settings.ranges import suggest_value

# Source: ScholarQuest, table 9, the failure types of its judge.
FAILURES: Mapping[str, str] = {
    "keyword": "keyword over-crediting: words in common, without what is asked",
    "over-strict": "over-strict claim matching: the claim is there in other terms or degree",
    "implicit": "implicit-knowledge overuse: what title and abstract do not say",
    "terminology": "terminology mismatch: a synonym or a related term was not recognized",
    "other": "something else, see the note",
}
LONGEST_NOTE = 2000
_RATER = re.compile(r"\w[\w.-]{0,39}")
# Source: https://learn.microsoft.com/en-us/windows/win32/fileio/naming-a-file
_DEVICES = frozenset(
    {"con", "prn", "aux", "nul", *(f"{one}{n}" for one in ("com", "lpt") for n in range(10))}
)
_COLUMNS = ("pair", "label")
_OPEN_QUOTE = "unexpected end of data"  # as the csv module says it


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """What a rater says of a pair."""

    label: int | None = None  # 0, 1 or 2; None while there is only a note
    failure: str = ""  # why the judge was wrong, one of `FAILURES`, or empty
    note: str = ""  # free text
    # whether the rater has seen the judge's grade; the label was given before, and stands
    shown: bool = False


def read_rater(name: str) -> str:
    """Return the name of a rater in its one form, which also names the file: ``anna-berg``."""
    found = "-".join(normalize("NFC", name.casefold()).split())
    if found.partition(".")[0] in _DEVICES:
        raise SettingsError(f"Windows keeps this name for a device, take another: {name!r}")
    if not _RATER.fullmatch(found):
        raise SettingsError(
            "the name of a rater must be letters, digits, hyphens and dots, at most 40, "
            f"got {name!r:.80}"
        )
    return found


def read_label(given: Mapping[str, Any], before: Label = Label()) -> Label:
    """Return a label from what was sent or written; what is not given stays as *before*."""
    label = given.get("label", before.label)
    if label is not None and (isinstance(label, bool) or label not in GRADES):
        raise InputError(f"label must be 0, 1 or 2, got {label!r:.80}")
    failure, note = given.get("failure", before.failure), given.get("note", before.note)
    if failure != "" and (not isinstance(failure, str) or failure not in FAILURES):
        hint = suggest_value(str(failure), [*FAILURES])
        raise InputError(f"failure must be one of {', '.join(FAILURES)}, got {failure!r:.80}{hint}")
    if not isinstance(note, str) or len(note) > LONGEST_NOTE:
        raise InputError(f"note must be a text of at most {LONGEST_NOTE} characters")
    whole = None if label is None else int(label)
    return Label(label=whole, failure=failure, note=note, shown=before.shown)


class LabelBook:
    """The labels of one rater in the folder of an audit; each is on disk before `put` returns."""

    def __init__(self, audit: Audit, rater: str) -> None:
        self.rater = read_rater(rater)
        self._audit = audit
        self._journal = Journal(audit.folder / LABELS / f"{self.rater}.jsonl", audit.ran)
        self._lock = Lock()
        self._open = ExitStack()

    def __enter__(self) -> Self:
        """Open it for adding."""
        self._journal.path.parent.mkdir(exist_ok=True)
        busy = f"{self.rater!r} labels in another process; take another name or end that one"
        self._open.enter_context(self._journal.open(resume=True, busy=busy))
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self._open.close()

    @property
    def labels(self) -> dict[str, Label]:
        """What was said so far, by pair."""
        return {name: self.of(name) for name in self._journal.entries}

    def of(self, pair: str) -> Label:
        """Return what was said of a pair."""
        entry = self._journal.entries.get(pair, {})
        return Label(**{name: one for name, one in entry.items() if name != "id"})

    def put(self, pair: str, given: Mapping[str, Any]) -> Label:
        """Keep a label, note or failure type, and return all that is kept of the pair."""
        if pair not in self._audit.pairs:
            raise InputError(f"unknown pair {pair!r:.80}")
        with self._lock:
            before = self.of(pair)
            made = read_label(given, before)
            if before.shown and made.label != before.label:
                raise InputError(
                    f"the judge's grade of {pair} was shown, so that the label "
                    f"{before.label} stands"
                )
            return self._keep(pair, made, before)

    def show(self, pair: str) -> Label:
        """Mark that the rater sees the judge's grade of a pair."""
        if pair not in self._audit.pairs:
            raise InputError(f"unknown pair {pair!r:.80}")
        with self._lock:
            before = self.of(pair)
            if before.label is None:
                raise InputError(f"{pair} has no label yet; the judge's grade is shown after it")
            return self._keep(pair, Label(**{**asdict(before), "shown": True}), before)

    def _keep(self, pair: str, made: Label, before: Label) -> Label:
        if made != before:
            self._journal.put(pair, asdict(made))
        return made


def read_labels(audit: Audit, sheets: Mapping[str, Path]) -> dict[str, dict[str, Label]]:
    """Return all labels by rater and pair: those of the page, and those of *sheets* by rater."""
    found: dict[str, dict[str, Label]] = {}
    for path in sorted((audit.folder / LABELS).glob("*.jsonl")):
        journal = Journal(path, audit.ran).read()
        found[path.stem] = {
            one["id"]: _read_entry(audit, one, path) for one in journal.entries.values()
        }
    for name, path in sheets.items():
        rater = read_rater(name)
        if rater in found:
            raise SettingsError(f"there are two sets of labels of {rater!r}, one in {str(path)!r}")
        found[rater] = read_sheet(path, audit)
    given = {rater: labels for rater, labels in sorted(found.items()) if _count(labels)}
    if not given:
        raise InputError(f"{str(audit.folder)!r} has no labels yet")
    return given


def _count(labels: Mapping[str, Label]) -> int:
    return sum(one.label is not None for one in labels.values())


def _read_entry(audit: Audit, entry: Mapping[str, Any], path: Path) -> Label:
    if entry["id"] not in audit.pairs:
        raise InputError(f"{path}: unknown pair {entry['id']!r:.80}")
    try:
        return read_label(entry, Label(shown=bool(entry.get("shown"))))
    except InputError as error:
        raise InputError(f"{path}: {entry['id']}: {error}") from error


def read_sheet(path: Path, audit: Audit) -> dict[str, Label]:
    """Read a filled-in sheet: CSV with commas, semicolons or tabs, as spreadsheets write it."""
    # UTF-8 with or without a byte order mark, UTF-16 with one, and else Windows-1252 are read. Only
    # the columns ``pair``, ``label``, ``failure`` and ``note`` count; a row without a label is not
    # labelled yet.
    found: dict[str, Label] = {}
    rows: dict[str, int] = {}
    for number, row in _read_rows(path):
        where, pair = f"{path}, row {number}", row["pair"]
        if pair not in audit.pairs:
            raise InputError(f"{where}: unknown pair {pair!r:.80} in this audit")
        if pair in rows:
            raise InputError(f"{where}: {pair} comes twice, first in row {rows[pair]}")
        rows[pair] = number
        try:
            made = read_label(_read_cells(row))
        except InputError as error:
            raise InputError(f"{where}: {error} for {pair}") from error
        if made != Label():
            found[pair] = made
    if not _count(found):
        raise InputError(f"{path}: no labels; fill in the column 'label'")
    return found


def _read_cells(row: Mapping[str, str]) -> dict[str, Any]:
    text = row["label"]
    whole = re.fullmatch(r"([012])(?:[.,]0+)?", text)  # a spreadsheet may write 2 as 2.0
    failure = row.get("failure", "").casefold()
    short = next((name for name, about in FAILURES.items() if _is_named(failure, name, about)), "")
    return {
        "label": int(whole[1]) if whole else text or None,
        "failure": short or failure,
        "note": row.get("note", ""),
    }


def _is_named(failure: str, name: str, about: str) -> bool:
    """Whether a cell names a failure type, by its short name or by what it is called."""
    return failure in (name, about, about.partition(":")[0])


def _read_rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows below the first with their numbers, as spreadsheets count, from 2."""
    text = _read_text(path)
    first = text.partition("\n")[0]
    sign = max(",;\t", key=first.count)
    lines = csv.reader(StringIO(text, newline=""), delimiter=sign, strict=True)
    try:
        heads = _check_heads([one.strip().casefold() for one in next(lines, [])], path)
        for number, cells in enumerate(lines, start=2):
            if any(one.strip() for one in cells):
                padded = [*cells, *("" for _ in heads)]
                yield number, {one: text.strip() for one, text in zip(heads, padded, strict=False)}
    except csv.Error as error:
        is_open = _OPEN_QUOTE in str(error)
        why = "a quotation mark is not closed" if is_open else f"line {lines.line_num}: {error}"
        raise InputError(f"{path}: no CSV: {why}") from error


def _check_heads(heads: list[str], path: Path) -> list[str]:
    for name in _COLUMNS:
        if name not in heads:
            got = ", ".join(heads) or "nothing"
            raise InputError(
                f"{path}: column {name!r} is missing; the first row must name the columns, "
                f"got {got:.200}"
            )
    for name in (*_COLUMNS, *FILLED_COLUMNS):
        if heads.count(name) > 1:
            raise InputError(f"{path}: there are two columns {name!r}")
    return heads


def _read_text(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    if data.startswith(b"PK\x03\x04"):
        raise InputError(f"{path}: is a spreadsheet, not CSV; save it as CSV")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")
