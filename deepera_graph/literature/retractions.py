"""Notices of retractions in a file of one's own, such as the one of Retraction Watch."""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from langchain_core.documents import Document

from deepera_graph.errors import InputError
from deepera_graph.literature.citation import Citation
from deepera_graph.literature.notices import PaperStatus, gravest, read_word
from deepera_graph.literature.same_study import list_ids
from deepera_graph.passages import field_key

# Columns by the names of Retraction Watch, in lower case and without spaces; then plain ones.
_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "doi": ("originalpaperdoi", "doi"),
    "pmid": ("originalpaperpubmedid", "pmid"),
    "nature": ("retractionnature", "nature", "paperstatus", "status"),
}
_REINSTATED = "reinstatement"
_NO_PMID = "0"  # as Retraction Watch writes a missing one


@dataclass(frozen=True, slots=True)
class Retractions:
    """What a file of notices says of papers.

    Attributes:
        statuses: By kind of id, ``doi``, ``pmid`` or ``arxiv``, and the id.
    """

    statuses: Mapping[tuple[str, str], PaperStatus] = field(default_factory=dict)

    def find(self, source: Citation) -> PaperStatus | None:
        """Return what became of a paper; None if no notice names it."""
        return gravest(map(self.statuses.get, list_ids(source)))

    def mark(self, passages: Iterable[Document]) -> list[Document]:
        """Return copies of passages; those that a notice names have it as `paper_status`.

        What their own metadata say of the paper stays where it is graver.
        """
        marked = []
        for one in passages:
            source = Citation.of(one.metadata, one.id or "")
            status = gravest((self.find(source), source.status))
            more = {"paper_status": status} if status else {}
            marked.append(one.model_copy(update={"metadata": {**one.metadata, **more}}))
        return marked


def read_retractions(path: str | Path) -> Retractions:
    """Read a CSV file of notices, a row each, with the columns of Retraction Watch.

    These are `OriginalPaperDOI`, `OriginalPaperPubMedID` (or `doi`, `pmid`) and
    `RetractionNature`, without which a row is a retraction: ``Retraction``, ``Correction``,
    ``Expression of concern``, or ``Reinstatement``, which takes the others back. Rows of any other
    nature are passed over.

    Raises:
        InputError: The file cannot be read, or has no column of DOIs and none of PMIDs.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    rows = csv.DictReader(text.splitlines(keepends=True))
    names = {field_key(name): name for name in rows.fieldnames or ()}
    columns = {
        what: next((names[one] for one in known if one in names), None)
        for what, known in _COLUMNS.items()
    }
    if not columns["doi"] and not columns["pmid"]:
        given = ", ".join(rows.fieldnames or ()) or "nothing"
        raise InputError(
            f"{path}: needs a column OriginalPaperDOI or OriginalPaperPubMedID, has {given:.200}"
        )
    found: dict[tuple[str, str], PaperStatus] = {}
    reinstated: set[tuple[str, str]] = set()
    for row in rows:
        cells = {what: (row.get(name) or "").strip() for what, name in columns.items() if name}
        pmid = "" if cells.get("pmid") == _NO_PMID else cells.get("pmid", "")
        ids = list_ids(Citation.of({"doi": cells.get("doi"), "pmid": pmid}, ""))
        nature = cells.get("nature") or "retraction"
        if nature.lower() == _REINSTATED:
            reinstated.update(ids)
        for id in ids:
            if status := gravest((found.get(id), read_word(nature))):
                found[id] = status
    return Retractions({id: found[id] for id in found if id not in reinstated})
