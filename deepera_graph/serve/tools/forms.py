"""What the tools of the MCP server are given and give: pydantic models, and their JSON schemas."""

import json
import logging
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from deepera_graph.errors import InputError
from deepera_graph.serve.replies import name_problems, rename_fields

_logger = logging.getLogger(__name__)
MOST_QUESTION, MOST_PASSAGES, MOST_CHARACTERS = 2_000, 200, 1_000_000
MOST_CANDIDATES, MOST_KEPT, MOST_TEXT, MOST_MANUSCRIPT = 200, 50, 4_000, 200_000


def _read_json(value: Any) -> Any:
    """Read a list or an object that came as a text of JSON, as some hosts send them."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


class GivenPassage(BaseModel):
    """A passage that the caller has found."""

    model_config = ConfigDict(extra="forbid")

    text: str = Field(description="The passage itself.")
    id: str | None = Field(None, description="Names it in what comes back; its place if left out.")
    title: str | None = Field(None, description="Title of the work it is from.")
    metadata: dict[str, Any] | None = Field(
        None, description="Source as far as known: authors, journal, year, doi, url, section."
    )


class PlaceArguments(BaseModel):
    """Where passages are: in a library, or here."""

    model_config = ConfigDict(extra="forbid")

    library: str | None = Field(
        None,
        description="Which library to search, as list_libraries names it; may be left out where "
        "there is but one, or with passages.",
    )
    passages: Annotated[list[str | GivenPassage] | None, BeforeValidator(_read_json)] = Field(
        None,
        description="Passages to judge instead of a library: texts, or objects with text and, "
        "if known, id, title and metadata.",
        min_length=1,
        max_length=MOST_PASSAGES,
    )

    @model_validator(mode="after")
    def _check_place(self) -> Self:
        if self.passages is None:
            return self
        for name in ("library", "where"):
            if getattr(self, name, None) is not None:
                raise ValueError(f"give passages or {name}, not both")
        texts = (one if isinstance(one, str) else one.text for one in self.passages)
        n = sum(map(len, texts))
        if n > MOST_CHARACTERS:
            raise ValueError(
                f"all passages together may have {MOST_CHARACTERS} characters, not {n}"
            )
        return self


class AskedArguments(PlaceArguments):
    """Which question is asked, and of what."""

    question: str = Field(
        description="One complete scientific question that names its entities and the relation.",
        min_length=1,
        max_length=MOST_QUESTION,
    )
    where: Annotated[dict[str, Any] | str | list[str] | None, BeforeValidator(_read_json)] = Field(
        None,
        description='Only passages of the library with this metadata: "year>=2015", a list of '
        'such, or an object: {"year": {"gte": 2015}}.',
    )
    k: int = Field(30, description="Candidates taken from the library.", ge=1, le=MOST_CANDIDATES)
    n: int | None = Field(
        None,
        description="Most pieces of evidence kept; 10 unless the server was told otherwise.",
        ge=1,
        le=MOST_KEPT,
    )
    threshold: float | None = Field(
        None,
        description="Lowest score kept, 0 to 1; the judge's own if left out. Lower keeps more.",
        ge=0,
        le=1,
    )


class QuestionArguments(AskedArguments):
    """Which question is asked, of what, and what is returned."""

    with_text: bool = Field(
        False, description="Whether to return the passages themselves, not only what they say."
    )
    with_dropped: bool = Field(
        False, description="Whether to list what was judged and dropped, and why."
    )


class TableArguments(AskedArguments):
    """Which studies are tabulated, and what of them."""

    columns: Annotated[list[str], BeforeValidator(_read_json)] = Field(
        ["n", "design", "effect", "interval", "p", "direction"],
        description="Of n, design, effect, unit, measure, interval, p and direction; where a chat "
        "model judges also any phrase, such as population.",
    )
    with_map: bool = Field(
        False, description="Whether to return a drawing of the studies, for people, as SVG."
    )


class CheckArguments(PlaceArguments):
    """A text whose citations are checked, and the works that it cites."""

    manuscript: str = Field(
        description="Markdown with citations, [1] or [@key], and the references under a heading.",
        min_length=1,
        max_length=MOST_MANUSCRIPT,
    )


class NoArguments(BaseModel):
    """Nothing."""

    model_config = ConfigDict(extra="forbid")


class SourceForm(BaseModel):
    """Where a passage is from, as far as that is known."""

    text: str = Field(description="In one line, to be cited.")
    title: str = ""
    authors: list[str] = []
    year: str = ""
    venue: str = ""
    doi: str = ""
    pmid: str = ""
    url: str = ""
    page: str = Field("", description="On which the quote stands.")
    version: str = Field(
        "", description="What it is if no article: a preprint or notice, of which."
    )


class PieceOfEvidence(BaseModel):
    """A passage that was kept."""

    number: int = Field(description="As cited: [1].")
    id: str
    score: float = Field(description="How far it is direct evidence, in [0, 1].")
    band: Literal["evidence", "possible"] | None = Field(
        description="How sure the judge is: evidence, or possible evidence, which is to be called "
        "so; null for what is below the threshold."
    )
    direction: str | None = Field(
        description="What it says to a yes/no question or a claim: supports, contradicts, "
        "no_difference, mixed, unclear; null where that is not known."
    )
    summary: str
    quote: str = Field(description="The sentence that says it best, in the passage's words.")
    reason: str
    source: SourceForm
    text: str | None = Field(None, description="The passage, if asked for.")
    is_cut: bool = Field(False, description=f"Whether its text is longer than {MOST_TEXT}.")


class NotKept(BaseModel):
    """A passage that was dropped, or could not be judged, and why."""

    id: str
    score: float | None
    reason: str
    source: str


class EvidenceResult(BaseModel):
    """What was found, what was not, and how it went."""

    question: str
    outcome: str = Field(
        description="ok; no_evidence: nothing passed; nothing_retrieved; degraded: too many "
        "passages could not be judged; budget_stop."
    )
    threshold: float
    evidence: list[PieceOfEvidence]
    is_weak: bool = Field(description="Whether the evidence is below the threshold.")
    direction_counts: dict[str, int] = Field(description="Of what is evidence, not possible.")
    n_passages: int
    n_dropped: int
    dropped: list[NotKept] = Field([], description="If asked for.")
    failed: list[NotKept] = Field(description="What could not be judged: evidence may be missed.")
    warnings: list[str]


class UncitedPiece(BaseModel):
    """Evidence that is not in an answer."""

    number: int = Field(description="Of the first passage of its study.")
    direction: str | None
    cause: str = Field(description="Why; empty if that is not known.")


class WrittenAnswer(BaseModel):
    """An answer made of the evidence, or why there is none."""

    text: str = Field(description="With [1] where it cites evidence number 1.")
    status: Literal["answered", "insufficient_evidence", "failed"]
    cause: str
    cites: list[int] = Field(description="Numbers of the evidence it cites.")
    uncited: list[UncitedPiece] = Field([], description="Studies that are evidence, and not cited.")


class AnswerResult(EvidenceResult):
    """The answer, and the evidence it was made of."""

    answer: WrittenAnswer


class TableResult(BaseModel):
    """The studies that were kept."""

    question: str
    columns: list[str]
    rows: list[dict[str, Any]] = Field(
        description="A study each, best first: source, link, year, status, band, score, says (to a "
        "yes/no question), quote, and cells by column with value, words, page, by and note."
    )
    notes: list[str]
    map: str | None = Field(None, description="SVG, if asked for and if studies say yes or no.")


class CheckResult(BaseModel):
    """A verdict on every pair of a sentence and a reference that it cites."""

    counts: dict[str, int] = Field(description="Of the pairs, by verdict.")
    pairs: list[dict[str, Any]] = Field(
        description="Each with claim, key, reference, source, link, read, verdict, score, quote, "
        "page, notes and other, the best other study where nothing supports the claim."
    )
    notes: list[str]


class LibraryInfo(BaseModel):
    """A library."""

    name: str
    n_passages: int | None = Field(description="How many it holds; null if that is not known.")
    has_passages: bool = Field(description="Whether find_evidence can search it.")
    has_papers: bool = Field(description="Whether search_papers can search it.")


class Held(BaseModel):
    """What can be searched."""

    libraries: list[LibraryInfo]


def describe_type(kind: Any) -> dict[str, Any]:
    """Return the JSON schema of a model or a dataclass, in few words, as models read it."""
    schema = TypeAdapter(kind).json_schema(mode="serialization")
    plain: dict[str, Any] = _shorten(schema)
    return plain


def _shorten(schema: Any) -> Any:
    """Return a schema without titles, and of every description the first paragraph."""
    if isinstance(schema, list):
        return [_shorten(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {
        name: one for name, one in schema.items() if name != "title" or not isinstance(one, str)
    }
    if isinstance(kept.get("description"), str):
        kept["description"] = kept["description"].partition("\n\n")[0]
    return {
        name: {one: _shorten(each) for one, each in value.items()}
        if name in ("properties", "$defs")
        else _shorten(value)
        for name, value in kept.items()
    }


def describe_model(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of arguments; what may be left out is not said to be null."""
    schema = _shorten(model.model_json_schema())
    for one in _properties(schema):
        chosen = [each for each in one.get("anyOf", ()) if each != {"type": "null"}]
        if len(chosen) == 1:
            del one["anyOf"]
            one.update(chosen[0])
        if one.get("default", 0) is None:
            del one["default"]
    plain: dict[str, Any] = schema
    return plain


def _properties(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    parts = [schema, *schema.get("$defs", {}).values()]
    return [one for part in parts for one in part.get("properties", {}).values()]


def read_arguments(tool: str, model: type[BaseModel], given: Mapping[str, Any]) -> Any:
    """Read the arguments of a tool."""
    plain, note = rename_fields(dict(given), model.model_fields)
    if note:
        _logger.warning("%s: %s", tool, note)
    try:
        return model.model_validate(plain)
    except ValidationError as error:
        said = "; ".join(name_problems(error.errors(), model.model_fields, "argument"))
        raise InputError(f"{tool}: {said}") from error
