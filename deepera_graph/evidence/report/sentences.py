"""Sentences of a report on their way: quoted, written, checked, and put into paragraphs."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from typing_extensions import TypedDict

from deepera_graph.agents.role import Update
from deepera_graph.errors import RoleError
from deepera_graph.evidence.check.library import CitedWork
from deepera_graph.evidence.check.verdict import Verified
from deepera_graph.evidence.gaps import find_gaps
from deepera_graph.evidence.report.report import (
    ReportParagraph,
    ReportSentence,
    ReportStudy,
    describe_sides,
    group_by_side,
    mark,
    name_group,
)
from deepera_graph.evidence.report.roles import Paragraph, ParagraphTask, ReviseTask
from deepera_graph.schema import EVIDENCE, POSSIBLE
from deepera_graph.text.words import drop_label, split_sentences
from deepera_graph.usage import Usage

_MARKS = re.compile(r"\s*\[\d+(?:\s*[,;–-]\s*\d+)*\]")
MOST_SENTENCES = 6  # of a paragraph
_AFTER = 1000  # place of the first paragraph of possible evidence, below all others


class SentenceRecord(TypedDict):
    """A sentence on its way: ``new``, ``failed``, and in the end ``shown`` or ``dropped``."""

    place: list[int]
    text: str
    studies: list[int]
    by: str
    state: str
    is_rewritten: bool
    reasons: list[str]


class GroupRecord(TypedDict):
    """Studies that make one paragraph."""

    place: int
    point: str
    studies: list[int]
    band: str


class GroupBranch(TypedDict):
    """A group to write the paragraph of."""

    group: GroupRecord
    task: ParagraphTask
    quotes: dict[str, SentenceRecord]


class SentenceBranch(TypedDict):
    """A sentence to check, or to write anew, with the studies of its group."""

    sentence: SentenceRecord
    works: list[dict[str, Any]]
    task: ReviseTask


def group_studies(studies: Sequence[ReportStudy], band: str) -> list[GroupRecord]:
    """Return the studies of a band grouped by what they say to the question."""
    sides = group_by_side(one for one in studies if one.band == band)
    return [
        GroupRecord(place=place, point="", studies=numbers, band=band)
        for place, numbers in enumerate(sides.values(), start=0 if band == EVIDENCE else _AFTER)
    ]


def quote_group(group: GroupRecord, studies: Sequence[ReportStudy]) -> dict[str, SentenceRecord]:
    """Return the deciding sentences of the studies of a group."""
    named = {one.number: one for one in studies}
    quotes = [(number, named[number].quote) for number in group["studies"] if named[number].quote]
    said = [(number, drop_label(" ".join(quote.split()))) for number, quote in quotes]
    records = [
        _record([group["place"], place], f"“{quote}”", [number], "quote", "shown")
        for place, (number, quote) in enumerate(said)
    ]
    return {key_of(one): one for one in records}


def _record(
    place: list[int], text: str, studies: list[int], by: str, state: str, *reasons: str
) -> SentenceRecord:
    return SentenceRecord(
        place=place,
        text=text,
        studies=studies,
        by=by,
        state=state,
        is_rewritten=False,
        reasons=list(reasons),
    )


def key_of(sentence: SentenceRecord) -> str:
    """Return the name of a sentence, which stays when it is written anew."""
    return ".".join(map(str, sentence["place"]))


def split_draft(text: str) -> list[str]:
    """Return the sentences of a text without its citation marks; each is checked by itself."""
    return [one.text for one in split_sentences(" ".join(_MARKS.sub("", text).split()))]


def begin_sentence(
    place: list[int], text: str, studies: Sequence[int], known: Sequence[int]
) -> SentenceRecord:
    """Return a sentence that is to be checked, or one that cites nothing that there is."""
    cited = list(dict.fromkeys(studies))
    strange = [one for one in cited if one not in known]
    if not cited:
        return _record(place, text, [], "model", "failed", "it cites no study")
    if strange:
        reason = f"it cites {mark(strange)}, and the studies are {mark(known)}"
        return _record(place, text, cited, "model", "failed", reason)
    return _record(place, text, cited, "model", "new")


def record_paragraph(branch: GroupBranch, paragraph: Paragraph) -> Update:
    """Take every sentence that was written by itself, also of those that stand in one text."""
    group, drafts = branch["group"], []
    for one in paragraph.sentences:
        drafts += [(text, one.studies) for text in split_draft(one.text)]
    records = [
        begin_sentence([group["place"], place], text, studies, group["studies"])
        for place, (text, studies) in enumerate(drafts[:MOST_SENTENCES])
    ]
    if not records:
        return quote_instead(branch, RoleError("nothing was written"))
    return {"sentences": {key_of(one): one for one in records}}


def quote_instead(branch: GroupBranch, error: RoleError) -> Update:
    """Show the quotes of a group that could not be written about."""
    numbers = mark(branch["group"]["studies"])
    return {"sentences": branch["quotes"], "problems": [f"paragraph on {numbers}: {error}"]}


def list_works(branch: SentenceBranch) -> list[CitedWork]:
    """Return what a sentence is checked against."""
    return [CitedWork.from_dict(one) for one in branch["works"]]


def find_missing(branch: SentenceBranch, works: Sequence[CitedWork]) -> list[str]:
    """Say which numbers and populations of a sentence a study lacks; nobody need be asked then."""
    text = branch["sentence"]["text"]
    return [f"[{one.study}]: {gap}" for one in works for gap in find_gaps(text, one.text)]


def end_check(
    branch: SentenceBranch, reasons: Sequence[str], verified: Sequence[Verified]
) -> Update:
    """Show a sentence that every study says; else have it written anew, or drop it."""
    sentence = branch["sentence"]
    found = [*reasons]
    for number, one in zip(sentence["studies"], verified, strict=False):
        verdict = one.decision.verdict
        if verdict != "supported":
            notes = "".join(f", {note}" for note in one.decision.notes)
            found.append(f"[{number}]: {verdict.replace('_', ' ')}{notes}")
    failed = "dropped" if sentence["is_rewritten"] else "failed"
    checked: SentenceRecord = {
        **sentence,
        "state": failed if found else "shown",
        "reasons": found,
    }
    cost = sum((one.usage for one in verified), Usage())
    return {"sentences": {key_of(sentence): checked}, "usage": {"check": cost.record()}}


def record_revised(branch: SentenceBranch, revised: Paragraph) -> Update:
    """Have a sentence that was written anew checked, or drop what cannot be."""
    old = branch["sentence"]
    known = [one["number"] for one in branch["task"]["studies"]]
    parts = [(text, one.studies) for one in revised.sentences for text in split_draft(one.text)]
    if len(parts) != 1:
        return {"sentences": {key_of(old): {**old, "state": "dropped"}}}
    new = begin_sentence(old["place"], *parts[0], known)
    if new["state"] == "failed":
        new = {**new, "state": "dropped", "reasons": [*old["reasons"], *new["reasons"]]}
    return {"sentences": {key_of(old): {**new, "is_rewritten": True}}}


def drop_sentence(branch: SentenceBranch, error: RoleError) -> Update:
    """Leave out a sentence that could not be written anew."""
    old = branch["sentence"]
    dropped: SentenceRecord = {**old, "state": "dropped"}
    return {"sentences": {key_of(old): dropped}, "problems": [f"rewriting a sentence: {error}"]}


def make_paragraphs(
    groups: Sequence[GroupRecord],
    shown: Sequence[SentenceRecord],
    studies: Sequence[ReportStudy],
) -> Iterable[ReportParagraph]:
    """Yield the paragraphs that have a sentence, each headed by what its studies say."""
    for group in groups:
        records = [one for one in shown if one["place"][0] == group["place"]]
        if not records:
            continue
        cited = {number for one in records for number in one["studies"]}
        here = [one for one in studies if one.number in cited]
        heading = name_group(here)
        lead = describe_sides(here) if len({one.says for one in here}) > 1 else ""
        if group["band"] == POSSIBLE:
            heading = f"Possible evidence, not counted. {heading.removesuffix(' agree')}"
        sentences = tuple(
            ReportSentence(text=one["text"], studies=tuple(one["studies"]), by=one["by"])
            for one in records
        )
        yield ReportParagraph(heading=heading, lead=f"{lead}." if lead else "", sentences=sentences)
