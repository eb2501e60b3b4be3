"""A corpus of several subjects from OpenAlex; needs the extra `openalex`."""

from collections.abc import Iterator, Mapping
from typing import Any

from deepera_graph.bench.build.document import Document
from deepera_graph.bench.readers.openalex_live import find_works

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
    concepts of level 0, https://docs.openalex.org/api-entities/concepts
"""


def find_by_subject(
    *,
    n_each: int,
    subjects: Mapping[str, str] = SUBJECTS,
    filters: Mapping[str, Any] | None = None,
) -> Iterator[Document]:
    """Yield works of each subject in turn, under its name; a work of two counts for the first.

    Args:
        n_each: Most works of a subject, >= 1; fewer where some came with an earlier subject.
        subjects: Name to the id of a concept, e.g. ``{"biology": "C86803240"}``.
        filters: As for `find_works`.

    Raises:
        SettingsError: *n_each* is below 1, or the service does not know a filter.
        BackendError: The service cannot be reached, or refuses.
        DatasetError: It answers with something that is no work.
    """
    seen: set[str] = set()
    for subject, concept in subjects.items():
        of_subject = {**(filters or {}), "concepts": {"id": concept}}
        for document in find_works(n=n_each, filters=of_subject):
            if document.id not in seen:
                seen.add(document.id)
                yield document.model_copy(update={"subject": subject})
