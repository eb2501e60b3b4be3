"""What a rerank gives back: every passage in rank order, and how the run went."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Self, cast

from langchain_core.documents import Document

from deepera_graph.literature.citation import Citation, find_pages
from deepera_graph.literature.paper_keys import RETRACTED, PaperStatus
from deepera_graph.literature.same_study import find_studies
from deepera_graph.literature.versions import cite_as, order_passages, tell_versions
from deepera_graph.passages import RETRIEVAL_KEYS
from deepera_graph.pipeline.shown import result_html, write_score
from deepera_graph.pipeline.state import (
    AnswerRecord,
    IntentRecord,
    Outcome,
    PassageStatus,
    RankRecord,
    kept_document,
    read_outcome,
)
from deepera_graph.schema import EVIDENCE, POSSIBLE, Band, Direction
from deepera_graph.text.jsonl import format_json, to_plain
from deepera_graph.text.questions import count_directions, count_positions
from deepera_graph.usage import HasUsage, Usage

FORMAT = 1


@dataclass(frozen=True, kw_only=True)  # no slots, so that a citation is made once
class RankedPassage:
    """One passage and its verdict.

    Attributes:
        id: The caller's id, or the place counted from 1.
        text: The passage as handed in.
        metadata: The caller's metadata, a copy.
        rank: Place in the ranking, from 1 without gaps; 0 for a passage left out of it.
        score: Relevance as evidence, in [0, 1]; None when the passage could not be judged.
        kept: Whether it passed the filter.
        band: Of what passed, ``evidence``, or ``possible`` where its judge is not sure; else None.
        status: ``scored``, ``repaired``, ``failed``, ``skipped_budget`` or ``not_needed`` (there
            was enough without it); `reason` has the cause.
        reason: Why, in a few words.
        direction: What it says to a yes/no question or a claim: ``supports``, ``contradicts``,
            ``no_difference``, ``mixed`` or ``unclear``; None where the judge gave none.
        position: What it says to any other question in a few words, such as "kinesin-3 faster",
            where a chat model judges; else empty.
        quote: The evidence in the passage's words, or empty.
        quote_span: Character offsets of the quote, [start, end); None if it is not in the passage.
        quote_status: ``verbatim``, ``normalised`` (but for white space, hyphenation, ligatures,
            quotation marks), ``not_found``, or empty without a quote; ``not_found`` without one
            where the judge named a sentence that is not there.
        windowed: Whether the passage was too long to be judged in one piece.
        window: Offsets of the window that counted, [start, end), for a windowed passage.
        summary: One or two sentences for a kept passage, or empty.
        summary_status: ``ok``, ``repaired``, ``drifted``, ``failed``, ``none``, ``skipped_budget``,
            or empty when not summarized; `reason` has the cause.
        retrieval_rank: Place in the first stage, >= 1.
        retrieval_score: Score of the first stage on its own scale, if known.
        document_id: The LangChain id of the document handed in, if it had one.
        study: A number that all passages of one study share, from 1 in rank order: its PDF, its
            preprint and the records of it are one study.
        paper_status: What became of the paper: ``retracted``, ``concern`` (an expression of it),
            ``corrected`` or ``preprint``; None if nothing is known.
    """

    id: str
    text: str
    metadata: dict[str, Any]
    rank: int
    score: float | None
    kept: bool
    status: PassageStatus
    reason: str
    quote: str
    quote_span: tuple[int, int] | None
    quote_status: str
    windowed: bool
    window: tuple[int, int] | None
    summary: str
    summary_status: str
    retrieval_rank: int
    retrieval_score: float | None
    document_id: str | None = None
    direction: Direction | None = None
    position: str = ""
    band: Band | None = None
    study: int = 0
    paper_status: PaperStatus | None = None
    unusable: bool = field(default=False, repr=False)

    @cached_property
    def citation(self) -> Citation:
        """Title, authors, year, venue, DOI or URL, and page, as far as known; else the id."""
        source = Citation.of(self.metadata, self.id, self.quote_span)
        return replace(source, status=self.paper_status or source.status)

    @property
    def quote_page(self) -> str:
        """The page that the quote stands on, ``3`` or ``3-4``; empty where no page is known."""
        span = self.quote_span
        return "" if span is None else find_pages(self.metadata, span)

    @classmethod
    def of(cls, record: RankRecord, passages: list[Document], ids: list[str | None]) -> Self:
        """Join a verdict with its passage; *ids* are those of the documents handed in."""
        verdict: dict[str, Any] = {**record}
        index = verdict.pop("index")
        for name in ("quote_span", "window"):
            verdict[name] = None if verdict[name] is None else tuple(verdict[name])
        metadata = passages[index].metadata
        return cls(
            **verdict,
            text=passages[index].page_content,
            metadata={name: metadata[name] for name in metadata if name not in RETRIEVAL_KEYS},
            document_id=ids[index],
            windowed=record["window"] is not None,
        )

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote."""
        known = {one.name: plain[one.name] for one in fields(cls) if one.name in plain}
        for name in ("quote_span", "window"):
            known[name] = None if plain[name] is None else tuple(plain[name])
        return cls(**known)


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankResult(HasUsage):
    """Everything one rerank found out.

    Attributes:
        question: The question asked.
        intent: Its four `fields`, its `status` (``recognised``, ``repaired`` or ``fallback``), and
            the `cause` of the latter two.
        passages: Every passage once, in rank order, but for those left out; shape (n_passages,).
        left_out: Passages that could not be judged and, by ``on_error="drop"``, are not ranked; in
            the order they came.
        outcome: ``ok``, ``no_evidence`` (nothing passed the threshold; what `on_empty` kept all the
            same is no evidence either), ``nothing_retrieved``, ``degraded`` (too many passages
            could not be judged) or ``budget_stop`` (the budget left some undone).
        fallback: The `on_empty` choice that filled an empty result, or None.
        threshold: The lowest score kept, in [0, 1], as applied to this question.
        evidence_point: The score, in [0, 1], from which on what passed is evidence, below it is
            possible evidence; None if all that passed is evidence.
        missing_words: Words of the question that no passage has in any form; where there are any,
            nothing is evidence, and no passage has a direction.
        answer: The answer with its citations, if one was asked for.
        usage: Calls and tokens a stage (``intent``, ``score``, ``summarize``, ``answer``).
        seconds: Wall time a stage, and ``total``.
        manifest: Backend, settings, prompt hash and versions.
        warnings: Why the scores may mean little, each a sentence for people; e.g. that the judge
            cannot read the language of the question.
        sources: How it went with each service of literature that the passages are from, as
            `deepera_graph.papers.sources.base.SourceAnswer.describe` has it; empty for others.
    """

    question: str
    intent: IntentRecord
    passages: tuple[RankedPassage, ...]
    outcome: Outcome
    fallback: str | None
    threshold: float
    answer: AnswerRecord | None
    usage: Mapping[str, Usage]
    seconds: Mapping[str, float]
    manifest: Mapping[str, Any]
    left_out: tuple[RankedPassage, ...] = ()
    warnings: tuple[str, ...] = ()
    sources: tuple[Mapping[str, Any], ...] = ()
    evidence_point: float | None = None
    missing_words: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if all(one.study for one in (*self.passages, *self.left_out)):
            return
        given = [((one.id, one.metadata), one.text) for one in self.all_passages]
        found = iter(find_studies([one for one, _ in given], [text for _, text in given]))
        for name in ("passages", "left_out"):
            told = ((one, next(found)) for one in getattr(self, name))
            numbered = (replace(one, study=by[0], paper_status=by[1]) for one, by in told)
            object.__setattr__(self, name, (*numbered,))

    @property
    def all_passages(self) -> tuple[RankedPassage, ...]:
        """Every passage handed in, once: the ranked ones, then those left out."""
        return (*self.passages, *self.left_out)

    @property
    def kept(self) -> tuple[RankedPassage, ...]:
        """The passages that passed the filter, best first."""
        return tuple(one for one in self.passages if one.kept)

    @property
    def evidence(self) -> tuple[RankedPassage, ...]:
        """The passages that passed and of which the judge is sure, best first."""
        return tuple(one for one in self.passages if one.band == EVIDENCE)

    @property
    def possible(self) -> tuple[RankedPassage, ...]:
        """The passages that passed and may be evidence, best first."""
        return tuple(one for one in self.passages if one.band == POSSIBLE)

    @property
    def dropped(self) -> tuple[RankedPassage, ...]:
        """The passages that were judged and did not pass, best first."""
        return tuple(one for one in self.passages if not one.kept and one.score is not None)

    @property
    def failed(self) -> tuple[RankedPassage, ...]:
        """The passages that could not be judged; `reason` says why."""
        unjudged = (one for one in self.passages if one.score is None)
        return (*(one for one in unjudged if one.status != "not_needed"), *self.left_out)

    @property
    def not_needed(self) -> tuple[RankedPassage, ...]:
        """The passages that nobody was asked about, as there was enough; best first stage first."""
        return tuple(one for one in self.passages if one.status == "not_needed")

    @property
    def direction_counts(self) -> dict[Direction, int]:
        """How many studies support, contradict, ..., each by its best passage that is evidence.

        What has no direction is left out, and what is of a retracted paper.
        """
        return count_directions(one.direction for one in self._study_bests())

    @property
    def positions(self) -> dict[str, int]:
        """How many studies say what to a question that is not yes/no, counted as directions are.

        Positions of the same words are one, the most frequent first; empty if none has any.
        """
        return count_positions(one.position for one in self._study_bests())

    def _study_bests(self) -> "list[RankedPassage]":
        by_score = sorted(self.evidence, key=lambda one: -(one.score or 0))
        bests = [best for best, *_ in _group_studies(by_score)]
        return [one for one in bests if one.paper_status != RETRACTED]

    @property
    def studies(self) -> tuple[tuple[RankedPassage, ...], ...]:
        """The kept passages grouped by study, in the order of their first, best first within.

        One of the article goes before one of its preprint that is only a little better.
        """
        return _group_studies(self.kept)

    def cite(self, passage: RankedPassage) -> Citation:
        """Return where a passage is from: the record of its study that it stands in.

        A PDF has what records of the same version know of it. A preprint, or a notice, is cited
        as such, and names the article in `version_of`, if that is among the passages.
        """
        others = (one for one in self.all_passages if one.study == passage.study)
        return cite_as(passage.citation, [one.citation for one in others if one is not passage])

    def same_record(self, passage: RankedPassage) -> tuple[RankedPassage, ...]:
        """Return the passages that stand in the record that one is cited as, kept or not."""
        study = [one for one in self.all_passages if one.study == passage.study]
        versions = tell_versions([one.citation for one in study])
        mine = versions[study.index(passage)]
        return tuple(one for one, other in zip(study, versions, strict=True) if other == mine)

    def show_score(self, score: float | None) -> str:
        """Return a score for readers: two decimals, or as many as tell it from the thresholds.

        A score that is below the threshold, or the point from which on it is evidence, never looks
        as if it reached it, nor the other way round: beside a threshold of 0.28 a score of 0.2796
        is shown as 0.2796. None is a dash.
        """
        return write_score(score, [self.threshold, self.evidence_point])

    @property
    def backend_failure(self) -> str | None:
        """Why nothing could be judged, if the backend itself is to blame; else None."""
        readable = [one for one in self.all_passages if one.text.strip()]
        if readable and all(one.score is None and one.unusable for one in readable):
            return readable[0].reason
        return None

    @property
    def reads_by_rules(self) -> bool:
        """Whether hand-written rules read the question, which is not worth a line."""
        return bool(self.manifest.get("reads_by_rules"))

    def to_documents(self) -> list[Document]:
        """Return the kept passages as new documents, best first, with their verdicts.

        What `page_content` is, the passage or its summary, says the setting `content`.
        """
        content = self.manifest["settings"]["content"]
        return [
            kept_document(
                Document(id=one.document_id, page_content=one.text, metadata=one.metadata),
                asdict(one),
                content,
                self.cite(one),
            )
            for one in self.kept
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data that `from_dict` reads.

        Metadata that JSON has no form for is written as what comes nearest: NumPy's numbers and
        arrays as numbers and lists, NaN as None, a date in ISO 8601, a path or a UUID as it prints.
        """
        plain: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(self)}
        plain["passages"] = [asdict(one) for one in self.passages]
        plain["left_out"] = [asdict(one) for one in self.left_out]
        plain["usage"] = {stage: used.record() for stage, used in self.usage.items()}
        plain["seconds"] = dict(self.seconds)
        plain["manifest"] = dict(self.manifest)
        if not self.sources:
            del plain["sources"]
        if self.evidence_point is None:
            del plain["evidence_point"]
        if not self.missing_words:
            del plain["missing_words"]
        return {"format": FORMAT, **to_plain(plain)}

    def to_json(self) -> str:
        """Return JSON that `from_json` reads, see `to_dict`."""
        return format_json(self.to_dict(), indent=None, allow_nan=False).rstrip()

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote, or what commands write with ``--json``.

        Raises:
            ValueError: It was written in another format.
        """
        if plain.get("format") != FORMAT:
            raise ValueError(f"result format must be {FORMAT}, got {plain.get('format')!r}")
        values = {one.name: plain[one.name] for one in fields(cls) if one.name in plain}
        values["passages"] = plain["passages"] if "passages" in plain else plain["ranking"]
        for name in ("passages", "left_out"):
            values[name] = tuple(_read_passage(one, plain) for one in values.get(name, ()))
        values["warnings"] = tuple(plain.get("warnings", ()))
        values["sources"] = tuple(plain.get("sources", ()))
        values["missing_words"] = tuple(plain.get("missing_words", ()))
        values["intent"] = _read_intent(plain["intent"])
        values["outcome"] = read_outcome(plain["outcome"])
        stages = plain["usage"].get("stages", plain["usage"])
        values["usage"] = {stage: Usage.of(used) for stage, used in stages.items()}
        return cls(**values)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote."""
        return cls.from_dict(json.loads(text))

    def __repr__(self) -> str:
        """Name the outcome, the counts and the best passages."""
        scored = [(one.id, one.score) for one in self.kept[:3] if one.score is not None]
        best = ", ".join(f"{name}={score:.2f}" for name, score in scored)
        counts = f"{len(self.kept)} kept, {len(self.dropped)} dropped, {len(self.failed)} failed"
        if self.not_needed:
            counts += f", {len(self.not_needed)} not needed"
        tail = f"; best {best}" if best else ""
        return f"<RerankResult {self.outcome}: {counts}{tail}; {self.question[:60]!r}>"

    def _repr_html_(self) -> str:
        """Show the ranking as a table in a notebook."""
        return result_html(self)


def _group_studies(passages: Iterable[RankedPassage]) -> tuple[tuple[RankedPassage, ...], ...]:
    """Group passages by study, in the order of the first of each; see `order_passages`."""
    groups: dict[int, list[RankedPassage]] = {}
    for one in passages:
        groups.setdefault(one.study, []).append(one)
    ordered = []
    for group in groups.values():
        scores = [(one.score or 0.0, one.band) for one in group]
        order = order_passages(scores, [one.citation for one in group])
        ordered.append(tuple(group[place] for place in order))
    return tuple(ordered)


def _read_intent(plain: Mapping[str, Any]) -> IntentRecord:
    """Read an intent whose fields are apart, as in the state, or beside its status."""
    if "fields" in plain:
        return cast("IntentRecord", plain)
    apart = {name: plain[name] for name in ("status", "cause")}
    rest = {name: value for name, value in plain.items() if name not in apart}
    return cast("IntentRecord", {"fields": rest, **apart})


def _read_passage(plain: Mapping[str, Any], result: Mapping[str, Any]) -> RankedPassage:
    """Read a passage of a result; one written before there were bands is evidence if it passed."""
    passed = plain["kept"] and result["fallback"] is None
    return RankedPassage.from_dict({"band": EVIDENCE if passed else None, **plain})
