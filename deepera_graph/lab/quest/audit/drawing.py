"""The audit of a benchmark: pairs of question and paper, drawn by grade for people to label.

The folder of an audit has ``pairs.jsonl`` (what raters see: no grades), ``key.jsonl`` (what the
judges said of them), ``sheet.csv`` (the pairs, for those who prefer a spreadsheet), ``audit.json``
(how they were drawn) and ``labels/``, with a file a rater, see `bench.quest.audit.labels`.

Source: ScholarQuest, whose audit draws 150 pairs of each grade for three raters.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, TypeAdapter

from deepera_graph.errors import InputError, SettingsError
from deepera_graph.lab.data.readers import Object, Text, Texts, read_line
from deepera_graph.literature.paper_keys import normalize_id
from deepera_graph.papers.importing import ImportProblem
from deepera_graph.papers.importing.forms import from_plain
from deepera_graph.papers.paper import Paper
from deepera_graph.text.jsonl import parse_object, read_places
from deepera_graph.text.plain import write_sheet

FORMAT = 1
GRADES = (0, 1, 2)  # no match, partial, strict
PER_GRADE = 150
AUDIT, PAIRS, KEY, SHEET, LABELS = "audit.json", "pairs.jsonl", "key.jsonl", "sheet.csv", "labels"
SHOWN_COLUMNS = ("pair", "question", "constraints", "title", "abstract")
FILLED_COLUMNS = ("label", "failure", "note")
_NO_PAPER, _NO_QUESTION, _NO_GRADE = "without a paper", "without a question", "without a grade"


def _read_grade(grade: object) -> object:
    if isinstance(grade, bool) or grade not in (None, *GRADES):
        raise ValueError(f"must be 0, 1 or 2, got {grade!r:.80}")
    return grade


@dataclass(frozen=True)
class _Named:
    id: Text


@dataclass(frozen=True)
class _Judgement:
    """A line of ``judgements.jsonl``."""

    query_id: Text
    paper_id: Text
    grade: Annotated[int | None, BeforeValidator(_read_grade)] = None  # None: they came to none
    grades: Object = field(default_factory=dict)
    evidence: Texts = ()
    adjudicated: Any = False


_NAMED, _JUDGED = TypeAdapter(_Named), TypeAdapter(_Judgement)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPair:
    """A question and a paper, as raters see them."""

    id: str  # ``p001``; it says nothing about the grade
    query_id: str
    question: str
    intent: str
    constraints: Mapping[str, Any]  # by name, as the question has them
    paper_id: str
    title: str
    abstract: str
    venue: str  # with the year, or empty
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPair:
    """What the judges said of a pair."""

    grade: int  # 0, 1 or 2
    grades: Mapping[str, Any]  # of each judge, by name
    evidence: tuple[str, ...]  # what was quoted for it
    adjudicated: bool  # whether the judges disagreed, and somebody decided


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """An audit that was drawn."""

    folder: Path  # where it is
    about: Mapping[str, Any]  # how it was drawn, as ``audit.json`` has it
    pairs: Mapping[str, AuditPair]  # in the order in which they are shown, by id
    # what the judges said of them, by id; empty in a copy for raters without ``key.jsonl``
    key: Mapping[str, JudgedPair]

    @property
    def ran(self) -> dict[str, Any]:
        """What labels belong to: those of other pairs are none of this audit."""
        return {"pairs": self.about["pairs_sha256"]}

    @property
    def judged(self) -> tuple[int, ...]:
        """Pairs of each grade that the build has, shape (3,)."""
        return tuple(int(self.about["grades"][str(grade)]["judged"]) for grade in GRADES)

    @property
    def drawn(self) -> tuple[int, ...]:
        """Pairs of each grade that were drawn, shape (3,)."""
        return tuple(int(self.about["grades"][str(grade)]["drawn"]) for grade in GRADES)

    @classmethod
    def open(cls, folder: Path) -> "Audit":
        """Read an audit."""
        if not (folder / AUDIT).is_file():
            raise SettingsError(
                f"{str(folder)!r} has no {AUDIT}; `deepera-lab bench quest audit draw` makes one"
            )
        about = _read_about(folder / AUDIT)
        lines = [one for _, one in read_places(folder / PAIRS)]
        if _digest(folder / PAIRS) != about["pairs_sha256"]:
            raise InputError(f"{folder / PAIRS} was changed after it was drawn")
        pairs = {one["id"]: AuditPair(**one) for one in lines}
        key = _read_key(folder / KEY) if (folder / KEY).is_file() else {}
        if key and key.keys() != pairs.keys():
            raise InputError(f"{folder / KEY} is not of the pairs in {PAIRS}")
        return cls(folder=folder, about=about, pairs=pairs, key=key)

    def check_key(self, otherwise: str) -> None:
        """Raise `SettingsError` if this is a copy without the judge's grades; say what to do."""
        if not self.key:
            raise SettingsError(f"{str(self.folder)!r} has no {KEY}; {otherwise}")


def _read_about(path: Path) -> dict[str, Any]:
    """Return how an audit was drawn; `InputError` if the file is not as it was written."""
    try:
        about = parse_object(path.read_bytes())
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    if about.get("format") != FORMAT:
        raise InputError(f"{path} is not of format {FORMAT}; draw the audit again")
    grades = about.get("grades")
    counts = [grades.get(str(one)) for one in GRADES] if isinstance(grades, dict) else [None]
    are_counted = all(isinstance(one, dict) and {"judged", "drawn"} <= one.keys() for one in counts)
    if not are_counted or not {"pairs_sha256", "per_grade", "left_out"} <= about.keys():
        raise InputError(f"{path} was changed after it was drawn")
    return about


def _read_key(path: Path) -> dict[str, JudgedPair]:
    key: dict[str, JudgedPair] = {}
    for where, line in read_places(path):
        try:
            pair = str(line.pop("pair"))
            key[pair] = JudgedPair(**{**line, "evidence": tuple(line["evidence"])})
        except (KeyError, TypeError) as error:
            raise InputError(f"{where}: was changed after it was drawn: {error}") from error
    return key


def draw_audit(
    build: Path, out: Path, *, per_grade: int = PER_GRADE, seed: int = 0, overwrite: bool = False
) -> Audit:
    """Draw pairs of each grade from a build, and write them into a folder for raters.

    Which are drawn depends on the seed and the ids alone, not on the order of the files; the same
    build and seed give the same bytes. Of a grade that has fewer pairs all are drawn.

    Args:
        build: Folder with ``judgements.jsonl``, ``questions.jsonl`` and ``papers.jsonl``.
        out: Folder of the audit.
        per_grade: Pairs of each grade, >= 1.
        seed: Of the draw.
        overwrite: Replace an audit that has no labels yet.

    Raises:
        SettingsError: The folder has an audit, or labels, or a file of the build is missing.
        InputError: A file of the build cannot be read, or has no pair with question and paper.
    """
    if per_grade < 1:
        raise SettingsError(f"per_grade must be at least 1, got {per_grade}")
    if labels := sorted(one.stem for one in (out / LABELS).glob("*.jsonl")):
        raise SettingsError(
            f"{str(out)!r} has labels of {', '.join(labels)}; draw into another folder"
        )
    if (out / AUDIT).exists() and not overwrite:
        raise SettingsError(f"{str(out / AUDIT)!r} exists; give --overwrite to draw again")
    left_out: Counter[str] = Counter()
    ready = [*_read_build(build, left_out)]
    if not ready:
        raise InputError(f"{build}: no judged pair has a grade, a question and a paper")
    drawn: list[tuple[AuditPair, JudgedPair]] = []
    for grade in GRADES:
        mine = [one for one in ready if one[1].grade == grade]
        drawn += sorted(mine, key=lambda one: _lot(one[0], f"draw {seed}"))[:per_grade]
    drawn.sort(key=lambda one: _lot(one[0], f"order {seed}"))
    width = max(3, len(str(len(drawn))))
    named = [
        ({**asdict(pair), "id": f"p{number:0{width}}"}, judged)
        for number, (pair, judged) in enumerate(drawn, start=1)
    ]
    out.mkdir(parents=True, exist_ok=True)
    _write_lines(out / PAIRS, (pair for pair, _ in named))
    _write_lines(out / KEY, ({"pair": pair["id"], **asdict(judged)} for pair, judged in named))
    (out / SHEET).write_bytes(to_sheet([AuditPair(**pair) for pair, _ in named]))
    about = {
        "format": FORMAT,
        "build": {"name": build.resolve().name, "judgements": _digest(build / "judgements.jsonl")},
        "seed": seed,
        "per_grade": per_grade,
        "grades": {
            str(grade): {
                "judged": sum(one.grade == grade for _, one in ready),
                "drawn": sum(one.grade == grade for _, one in drawn),
            }
            for grade in GRADES
        },
        "left_out": dict(sorted(left_out.items())),
        "pairs_sha256": _digest(out / PAIRS),
    }
    text = json.dumps(about, indent=2, ensure_ascii=False) + "\n"
    (out / AUDIT).write_text(text, encoding="utf-8", newline="\n")
    return Audit.open(out)


def _lot(pair: AuditPair, what: str) -> bytes:
    """Return what a pair drew: to be sorted by, the same wherever the pair stands."""
    return sha256(json.dumps([what, pair.query_id, pair.paper_id]).encode()).digest()


def _digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def _write_lines(path: Path, lines: Iterator[dict[str, Any]]) -> None:
    text = "".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in lines)
    path.write_bytes(text.encode("utf-8", "backslashreplace"))


def _read_build(build: Path, left_out: Counter[str]) -> Iterator[tuple[AuditPair, JudgedPair]]:
    """Yield the judged pairs that can be shown; count the others."""
    for name in ("judgements.jsonl", "questions.jsonl", "papers.jsonl"):
        if not (build / name).is_file():
            raise SettingsError(
                f"{str(build)!r} is no folder of `deepera-lab bench quest build`: it has no {name}"
            )
    questions = {
        read_line(_NAMED, one, where).id: one
        for where, one in read_places(build / "questions.jsonl")
    }
    papers = _read_papers(build / "papers.jsonl")
    seen: set[tuple[str, str]] = set()
    for where, line in read_places(build / "judgements.jsonl"):
        one = read_line(_JUDGED, line, where)
        if (one.query_id, one.paper_id) in seen:
            raise InputError(f"{where}: {one.query_id!r} and {one.paper_id!r} are judged twice")
        seen.add((one.query_id, one.paper_id))
        question, paper = questions.get(one.query_id), papers.get(normalize_id(one.paper_id))
        if one.grade is None or question is None or paper is None:
            lacks = _NO_GRADE if one.grade is None else _NO_PAPER if question else _NO_QUESTION
            left_out[lacks] += 1
            continue
        judged = JudgedPair(
            grade=one.grade,
            grades=one.grades,
            evidence=one.evidence,
            adjudicated=bool(one.adjudicated),
        )
        yield _make_pair(one.query_id, question, one.paper_id, paper), judged


def _read_papers(path: Path) -> dict[str, Paper]:
    papers: dict[str, Paper] = {}
    for place, (where, line) in enumerate(read_places(path), start=1):
        found = from_plain(place, line)
        if isinstance(found, ImportProblem):
            raise InputError(f"{where}: {found.detail}")
        papers |= dict.fromkeys(found.ids, found.paper)
    return papers


def _make_pair(
    query_id: str, question: Mapping[str, Any], paper_id: str, paper: Paper
) -> AuditPair:
    constraints = question.get("constraints")
    return AuditPair(
        id="",
        query_id=query_id,
        question=str(question.get("query") or ""),
        intent=str(question.get("intent") or ""),
        constraints=constraints if isinstance(constraints, dict) else {},
        paper_id=paper_id,
        title=paper.title,
        abstract=paper.abstract,
        venue=", ".join(filter(None, [paper.venue, str(paper.year or "")])),
        url=paper.url,
    )


def describe_value(value: Any) -> str:
    """Return the value of a constraint as one line of text."""
    if isinstance(value, list | tuple):
        return "; ".join(map(describe_value, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def to_sheet(pairs: Sequence[AuditPair]) -> bytes:
    """Return the pairs as CSV with empty columns for label, failure type and note."""
    # It has a byte order mark, by which Excel knows UTF-8.
    rows: list[tuple[str, ...]] = [(*SHOWN_COLUMNS, *FILLED_COLUMNS)]
    for pair in pairs:
        limits = "; ".join(f"{name}: {describe_value(v)}" for name, v in pair.constraints.items())
        shown = (pair.id, pair.question, limits, pair.title, pair.abstract)
        rows.append((*shown, *("" for _ in FILLED_COLUMNS)))
    return write_sheet(rows, end="\r\n").encode("utf-8-sig", "backslashreplace")
