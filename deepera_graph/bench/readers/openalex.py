"""OpenAlex works as documents, from records on disk; see `openalex_live` for the service."""

from pydantic import BaseModel, ConfigDict, Field

from deepera_graph.bench.build.document import Document


class _Named(BaseModel):
    model_config = ConfigDict(extra="ignore")

    display_name: str | None = None


class _Topic(_Named):
    field: _Named | None = None


class Work(BaseModel):
    """A record as OpenAlex serves it; what a document needs of it.

    Source:
        https://docs.openalex.org/api-entities/works/work-object
    """

    model_config = ConfigDict(extra="ignore")

    id: str = Field(min_length=1)
    display_name: str | None = None
    title: str | None = None
    abstract_inverted_index: dict[str, list[int]] | None = None
    primary_topic: _Topic | None = None
    concepts: list[_Named] = []
    doi: str | None = None
    publication_year: int | None = None
    language: str | None = None
    is_retracted: bool | None = None
    cited_by_count: int | None = None

    def document(self) -> Document:
        """Return the work as a document; without an abstract its text is blank."""
        facts = {
            "doi": self.doi,
            "year": self.publication_year,
            "language": self.language,
            "is_retracted": self.is_retracted,
            "cited_by": self.cited_by_count,
        }
        return Document(
            id=self.id.rpartition("/")[2] or self.id,
            title=self.display_name or self.title or "",
            text=abstract(self.abstract_inverted_index or {}),
            subject=self._subject(),
            metadata={name: value for name, value in facts.items() if value is not None},
        )

    def _subject(self) -> str:
        """The field of the topic; in records of before 2024 the first concept."""
        field = self.primary_topic and self.primary_topic.field
        named = field or next(iter(self.concepts), None)
        return (named and named.display_name) or ""


def abstract(index: dict[str, list[int]]) -> str:
    """Return the text of an inverted index: word to its places, from 0; gaps are closed."""
    placed = sorted((place, word) for word, places in index.items() for place in places)
    return " ".join(word for _, word in placed)
