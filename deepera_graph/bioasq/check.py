"""What is wrong with a submission, before it is sent or measured; `check.toml` lists the rules.

Source: http://participants-area.bioasq.org/general_information/Task13b for the rules, and
`deepera_graph.bioasq.official` for what the evaluator does.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from deepera_graph.bioasq.measures import PHASES, Phase
from deepera_graph.bioasq.questions import (
    SNIPPET_KEYS,
    TYPES,
    BioasqQuestion,
    document_url,
    read_pmid,
    read_raw,
)
from deepera_graph.bioasq.settings import (
    MAX_CANDIDATES,
    MAX_DOCUMENTS,
    MAX_ENTITIES,
    MAX_IDEAL_WORDS,
    MAX_NAME_CHARS,
    MAX_SNIPPETS,
)
from deepera_graph.settings.ranges import check_choice
from deepera_graph.text.plain import read_lists

Level = Literal["error", "warning"]
SECTIONS = ("title", "abstract")
_FIELDS: Mapping[Phase, tuple[str, ...]] = {
    "a": ("documents", "snippets"),
    "b": ("exact_answer", "ideal_answer"),
}
OFFSETS = ("offsetInBeginSection", "offsetInEndSection")
ENDS = "at which the official evaluator ends"
_EXACT = "exact_answer"
_RULES: Mapping[str, tuple[Level, str]] = read_lists(__file__)
_Found = Iterator[tuple[str, Level, str, str]]  # name, level, field, message


class SubmissionProblem(NamedTuple):
    """Something wrong with a submission."""

    name: str  # what kind it is, e.g. ``unknown-key``
    level: Level  # ``error`` or ``warning``
    question: str  # id of the question, or its number where it has none; empty for the whole file
    field: str  # the field that is wrong, e.g. ``exact_answer`` or ``snippet 3``
    message: str  # what is wrong, with the value, and what comes of it


def check_submission(
    path: Path, questions: Iterable[BioasqQuestion] | None = None, *, phase: Phase | None = None
) -> list[SubmissionProblem]:
    """Return what is wrong with a submission, in the order of the file.

    Args:
        path: The submission.
        questions: The test set that it answers, or golden questions; types and ids are theirs.
        phase: What has to be there: ``a`` for documents and snippets, ``b`` for answers; None for
            what any question of the file has.

    Raises:
        InputError: The file is no JSON, or has no questions.
        OSError: It cannot be read.
        SettingsError: There is no such phase.
    """
    if phase is not None:
        check_choice("phase", phase, PHASES)
    entries = read_raw(path)
    asked = None if questions is None else {one.id: one for one in questions}
    wanted = _wanted(entries, phase)
    problems = [
        SubmissionProblem(name, level, _name_of(fields, number), field, message)
        for number, fields in enumerate(entries, start=1)
        for name, level, field, message in _check_question(fields, asked, wanted)
    ]
    of_ids = _check_ids(entries, asked, wanted)
    return [
        *problems,
        *(SubmissionProblem(rule, level, name, *rest) for name, (rule, level, *rest) in of_ids),
    ]


def _name_of(fields: Any, number: int) -> str:
    name = fields.get("id") if isinstance(fields, Mapping) else None
    return name if isinstance(name, str) and name else f"number {number}"


def _wanted(entries: Sequence[Any], phase: Phase | None) -> tuple[str, ...]:
    if phase is not None:
        return _FIELDS[phase]
    objects = [one for one in entries if isinstance(one, Mapping)]
    keys = {key for one in objects for key, value in one.items() if value}
    return tuple(name for names in _FIELDS.values() for name in names if name in keys)


def _say(rule: str, field: str, **values: Any) -> tuple[str, Level, str, str]:
    """Return what `check.toml` has for a rule, with values filled in."""
    level, text = _RULES[rule]
    return rule.partition("/")[0], level, field, text.format(**values)


def _check_ids(
    entries: Sequence[Any], asked: Mapping[str, BioasqQuestion] | None, wanted: Sequence[str]
) -> Iterator[tuple[str, tuple[str, Level, str, str]]]:
    """Yield the ids that are wrong, and what is wrong with each."""
    given = Counter(
        one["id"] for one in entries if isinstance(one, Mapping) and isinstance(one.get("id"), str)
    )
    for name, n in given.items():
        if n > 1:
            yield name, _say("repeated-id", "id", n=n)
        if asked is not None and name not in asked:
            yield name, _say("unknown-id", "id")
    for name, one in (asked or {}).items():
        if name not in given:
            ends = "exact_answer" in wanted and one.type != "summary"
            yield name, _say("unanswered/phase-b" if ends else "unanswered", "id")


def _check_question(
    fields: Any, asked: Mapping[str, BioasqQuestion] | None, wanted: Sequence[str]
) -> _Found:
    crashes = [*find_crashes(fields)]
    yield from (_say("crash", one.field, why=one.message) for one in crashes)
    if not isinstance(fields, Mapping):
        return
    wrong = {one.field for one in crashes}
    yield from _check_type(fields, asked, wrong)
    known = asked.get(fields["id"]) if asked and isinstance(fields.get("id"), str) else None
    kind = known.type if known else fields.get("type")
    for name in wanted:
        needless = name in wrong or (name == "exact_answer" and kind == "summary")
        if not fields.get(name) and not needless:
            yield _say("empty", name)
    if "documents" not in wrong:
        yield from _check_documents(fields.get("documents", ()))
    if "snippets" not in wrong:
        yield from _check_snippets(fields.get("snippets", ()))
    if "exact_answer" in fields and "exact_answer" not in wrong:
        yield from _check_exact(fields["exact_answer"], kind)
    yield from _check_ideal(fields.get("ideal_answer"))


def _check_type(
    fields: Mapping[str, Any], asked: Mapping[str, BioasqQuestion] | None, wrong: Iterable[str]
) -> _Found:
    name, kind = fields.get("id"), fields.get("type")
    if not isinstance(name, str) and "id" not in wrong:
        yield _say("no-id", "id", name=name)
    if kind is not None and kind not in TYPES and "type" not in wrong:
        yield _say("type", "type", types=", ".join(TYPES), kind=kind)
    known = asked.get(name) if asked and isinstance(name, str) else None
    if known and kind in TYPES and kind != known.type:
        yield _say("type/other", "type", kind=kind, known=known.type)


def _check_documents(documents: Sequence[Any]) -> _Found:
    if len(documents) > MAX_DOCUMENTS:
        yield _say("too-many-documents", "documents", most=MAX_DOCUMENTS, n=len(documents))
    for document in documents:
        yield from _check_id(document, "documents")
    spellings = Counter(read_pmid(one) for one in {*map(str, documents)})
    for pmid, n in Counter(read_pmid(str(one)) for one in documents).items():
        if spellings[pmid] > 1:
            rule = "repeated-document/spellings"
            yield _say(rule, "documents", pmid=pmid, n=spellings[pmid])
        elif n > 1:
            yield _say("repeated-document", "documents", pmid=pmid, n=n)


def _check_id(document: Any, field: str) -> _Found:
    """Check the spelling of a PubMed article, which the evaluator compares as text."""
    text = str(document)
    pmid = read_pmid(text)
    is_pubmed = pmid.isdecimal() and ("://" in text or text.strip() == pmid)
    if is_pubmed and text != document_url(pmid):
        yield _say("spelling", field, text=text, url=document_url(pmid))


def _check_snippets(snippets: Sequence[Any]) -> _Found:
    if len(snippets) > MAX_SNIPPETS:
        yield _say("too-many-snippets", "snippets", most=MAX_SNIPPETS, n=len(snippets))
    seen = set()
    for number, one in enumerate(snippets, start=1):
        if isinstance(one, Mapping):  # else told as a crash
            yield from _check_snippet(one, f"snippet {number}")
            place = repr([one.get(key) for key in SNIPPET_KEYS if key != "text"])
            if place in seen:
                yield _say("repeated-snippet", f"snippet {number}")
            seen.add(place)


def _check_snippet(one: Mapping[str, Any], field: str) -> _Found:
    missing = [key for key in SNIPPET_KEYS if key not in one]
    if missing:
        yield _say("missing-key", field, missing=", ".join(missing))
        return
    yield from _check_id(one["document"], field)
    first, last = one["beginSection"], one["endSection"]
    for name in dict.fromkeys((first, last)):
        if name not in SECTIONS:
            yield _say("section", field, name=name)
    if first != last:
        yield _say("two-sections", field)
    else:
        yield from _check_offsets(one, field)


def _check_offsets(one: Mapping[str, Any], field: str) -> _Found:
    begin, end, text = one["offsetInBeginSection"], one["offsetInEndSection"], one["text"]
    if not isinstance(begin, int) or not isinstance(end, int) or not isinstance(text, str):
        return
    if begin < 0 or end <= begin:
        yield _say("offsets/order", field, begin=begin, end=end)
    elif len(text) != end - begin:
        yield _say("offsets", field, n=len(text), begin=begin, end=end)


def _check_exact(exact: Any, kind: Any) -> _Found:
    if kind == "summary":
        yield _say("needless-answer", _EXACT)
    elif kind == "yesno":
        yield from _check_yes_no(exact)
    elif isinstance(exact, str) and kind in ("factoid", "list"):
        yield _say("not-a-list", _EXACT, exact=exact)
    elif isinstance(exact, list) and kind == "factoid":
        yield from _check_names(exact, MAX_CANDIDATES)
    elif isinstance(exact, list) and kind == "list":
        yield from _check_names(exact, MAX_ENTITIES)


def _check_yes_no(exact: Any) -> _Found:
    if not isinstance(exact, str):
        yield _say("crash", _EXACT, why=f"must be 'yes' or 'no', got {exact!r:.80}, {ENDS}")
    elif exact not in ("yes", "no"):
        word = read_word(exact)
        case = "" if word == "none" else "/read" if word == exact.lower() else "/misread"
        yield _say(f"not-yes-or-no{case}", _EXACT, exact=exact, word=word)


def _check_names(exact: Sequence[Any], most: int) -> _Found:
    if len(exact) > most:
        yield _say("too-many-names", _EXACT, most=most, n=len(exact))
    if not all(exact):
        yield _say("empty-name/list", _EXACT)
    for names in exact:
        if len(names) > 1:
            yield _say("synonyms", _EXACT, names=names)
    firsts = [str(names[0]) for names in exact if names]
    yield from (found for name in firsts for found in _check_name(name))
    counts = Counter(one.strip().lower() for one in firsts)
    for name in (name for name, n in counts.items() if n > 1):
        yield _say("repeated-name", _EXACT, name=name, n=counts[name])


def _check_name(name: str) -> _Found:
    if not name.strip():
        yield _say("empty-name", _EXACT)
    elif " ".join(name.split()) != name:
        yield _say("blanks", _EXACT, name=name)
    elif name.endswith("."):
        yield _say("full-stop", _EXACT, name=name)
    if len(name) > MAX_NAME_CHARS:
        yield _say("long-name", _EXACT, most=MAX_NAME_CHARS, n=len(name), name=name)


def _check_ideal(ideal: Any) -> _Found:
    if ideal is not None and not isinstance(ideal, str):
        yield _say("ideal", "ideal_answer", ideal=ideal)
    elif ideal is not None and (n := len(ideal.split())) > MAX_IDEAL_WORDS:
        yield _say("long-ideal", "ideal_answer", most=MAX_IDEAL_WORDS, n=n)


class Crash(NamedTuple):
    """A field at which the evaluator ends with an exception, and why."""

    field: str
    message: str


def find_crashes(fields: Any) -> Iterator[Crash]:
    """Yield what in a question ends the evaluator while it reads the file."""
    if not isinstance(fields, Mapping):
        yield Crash("question", f"expected an object, got {fields!r:.80}, {ENDS}")
        return
    for name, value in fields.items():
        yield from _crashes_of_field(name, value)


def _crashes_of_field(name: str, value: Any) -> Iterator[Crash]:
    if name in ("id", "type", "body") and not _is_text(value):
        yield Crash(name, f"must be text, got {value!r:.80}, {ENDS}")
    elif name in ("documents", "snippets", "concepts", "triples") and not isinstance(value, list):
        yield Crash(name, f"must be a list, got {value!r:.80}, {ENDS}")
    elif name == "documents":
        wrong = [one for one in value if not _is_text(one)]
        yield from (Crash(name, f"must hold texts, got {one!r:.80}, {ENDS}") for one in wrong)
    elif name == "snippets":
        for number, one in enumerate(value, start=1):
            yield from _crashes_of_snippet(f"snippet {number}", one)
    elif name == "exact_answer":
        yield from _crashes_of_exact(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _is_offset(value: Any) -> bool:
    if not _is_text(value):
        return False
    try:
        return float(value) == int(float(value)) and abs(float(value)) < 2**31
    except (ValueError, OverflowError):
        return False


def _crashes_of_snippet(where: str, fields: Any) -> Iterator[Crash]:
    if not isinstance(fields, Mapping):
        yield Crash(where, f"expected an object, got {fields!r:.80}, {ENDS}")
        return
    for name, value in fields.items():
        if name not in SNIPPET_KEYS:
            known = ", ".join(SNIPPET_KEYS)
            yield Crash(where, f"the key {name!r} is none of {known}, {ENDS}")
        elif name in OFFSETS and not _is_offset(value):
            yield Crash(where, f"{name} must be a whole number, got {value!r:.80}, {ENDS}")
        elif not _is_text(value):
            yield Crash(where, f"{name} must be text, got {value!r:.80}, {ENDS}")


def _crashes_of_exact(exact: Any) -> Iterator[Crash]:
    if isinstance(exact, str):
        return
    if not isinstance(exact, list):
        wanted = 'text, or a list of lists such as [["iron"]]'
        yield Crash("exact_answer", f"must be {wanted}, got {json.dumps(exact)[:80]}, {ENDS}")
        return
    for names in exact:
        if not isinstance(names, list):
            got = json.dumps(names, ensure_ascii=False)[:80]
            message = f"must be a list of lists, [[...]], got {got} in the outer one, {ENDS}"
            yield Crash("exact_answer", message)
        elif not all(map(_is_text, names)):
            wrong = next(one for one in names if not _is_text(one))
            message = f"an inner list must hold texts alone, got {json.dumps(wrong)[:80]}, {ENDS}"
            yield Crash("exact_answer", message)


def read_word(answer: str) -> str:
    """Return how the evaluator reads a text: ``yes`` anywhere wins, then ``no``, else ``none``."""
    plain = answer.lower()
    return next((word for word in ("yes", "no") if word in plain), "none")
