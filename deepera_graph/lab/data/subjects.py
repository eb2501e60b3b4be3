"""A corpus of several subjects from OpenAlex, as documents of a benchmark."""

from collections.abc import Collection, Iterator, Mapping

from deepera_graph.errors import BackendError, SettingsError
from deepera_graph.lab.build.corpus import Document
from deepera_graph.papers.paper import PaperRecord
from deepera_graph.papers.results import Scope
from deepera_graph.papers.sources.services.openalex import OpenAlex
from deepera_graph.settings import check_at_least, suggest_value

SUBJECTS: Mapping[str, str] = {
    "biology": "C86803240",
    "chemistry": "C185592680",
    "computer science": "C41008148",
    "geography": "C205649164",
    "geology": "C127313418",
    "materials science": "C192562407",
    "mathematics": "C33923547",
    "medicine": "C71924100",
    "physics": "C121332964",
    "psychology": "C15744967",
}
"""Subject to the id of its concept at OpenAlex.

Source:
    DeepEra, section 6.1, has ten subjects and does not name them. These are ten of OpenAlex's
    concepts of level 0; biology, chemistry, geography, mathematics and physics are those of
    SciRerankBench.
"""


def pick_subjects(names: Collection[str]) -> dict[str, str]:
    """Return the subjects of these names; all of them if there are no names.

    Raises:
        SettingsError: A name is none of `SUBJECTS`.
    """
    for name in names:
        if name not in SUBJECTS:
            raise SettingsError(
                f"a subject must be one of {', '.join(SUBJECTS)}, got {name!r}"
                f"{suggest_value(name, SUBJECTS)}"
            )
    return {name: SUBJECTS[name] for name in names or SUBJECTS}


def find_by_subject(
    n_each: int,
    *,
    subjects: Mapping[str, str] = SUBJECTS,
    source: OpenAlex | None = None,
    scope: Scope | None = None,
    seed: int = 0,
) -> Iterator[Document]:
    """Yield works of each subject in turn, under its name; a work of two counts for the first.

    Args:
        n_each: Most works of a subject, >= 1; fewer where some came with an earlier subject.
        subjects: Name to the id of a concept, e.g. ``{"biology": "C86803240"}``.
        source: The service; OpenAlex with the key in ``OPENALEX_API_KEY`` if None.
        scope: Years and dates that works must be of.
        seed: Another one draws other works.

    Raises:
        SettingsError: *n_each* is below 1.
        BackendError: The service did not give what was asked for; the message says why.
    """
    check_at_least("n_each", n_each, 1)
    service, seen = source or OpenAlex(), set[str]()
    for subject, concept in subjects.items():
        answer = service.sample(concept, n_each, scope, seed=seed)
        if not answer.is_complete:
            raise BackendError(f"no works on {subject}: {answer}")
        for record in answer.records:
            if record.paper.id not in seen:
                seen.add(record.paper.id)
                yield _to_document(record, subject)


def _to_document(record: PaperRecord, subject: str) -> Document:
    paper = record.paper
    facts = {"doi": paper.doi, "year": paper.year, "venue": paper.venue, "url": paper.url}
    return Document(
        id=paper.id,
        title=paper.title,
        text=paper.abstract,
        subject=subject,
        metadata={name: value for name, value in facts.items() if value},
    )
