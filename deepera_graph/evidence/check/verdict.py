"""The verdict on one claim and one work: what is judged of the work, and what that comes to."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from langchain_core.documents import Document

from deepera_graph.errors import AnswerError
from deepera_graph.evidence.asking import Asked, Steps
from deepera_graph.evidence.check.library import CitedWork
from deepera_graph.evidence.clauses import CONTROL, GENERAL, stems
from deepera_graph.evidence.contrast import (
    FINDS_NOTHING,
    KEEPS,
    LEAVES,
    MAY_OPPOSE,
    OPPOSITE,
    list_contrasts,
)
from deepera_graph.evidence.gaps import find_gaps, list_shortfalls, supposes_more
from deepera_graph.judges.heuristic.roles import LocalRole
from deepera_graph.judges.heuristic.topicality import same_meaning
from deepera_graph.judges.llm.judging import LlmJudge
from deepera_graph.judges.trained.direction.wording import read_words
from deepera_graph.literature.citation import find_pages
from deepera_graph.prompts import Domain
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.result import RankedPassage, RerankResult
from deepera_graph.schema import Backend, Intent, IntentTask
from deepera_graph.stores.words import WordIndex
from deepera_graph.text.drift import turned_changes, turned_findings
from deepera_graph.text.drift.parts import hide_designs
from deepera_graph.text.words import GENERAL_STEMS, content_words, split_sentences, stem_verb
from deepera_graph.usage import Usage

Verdict = Literal[
    "supported",
    "partly",
    "contradicted",
    "not_found",
    "unavailable",
    "retracted",
    "missing",
    "method",
    "not_judged",
]
MOST_SENTENCES, MOST_PASSAGES, MOST_OTHERS = 12, 6, 8  # that are judged for a claim
AGAINST = ("contradicts", "no_difference")
_IN_PART = 0.5  # the score from which on, as the rubric has it, a part of a claim is shown
# What was done, where nothing is found: "we randomised 96 women", "mice were fed wax".
_DONE = re.compile(
    r"\brandomi[sz]|\b(?:were|was|been|we|underwent)\s+(?:\w+ly\s+)?(?:randomi[sz]|assigned|allocated"
    r"|compared|recruited|enrolled|fed|given|received?|pooled|followed|studied|included|searched|invited|counted|measured|recorded"
    r"|applied|sampled|collected|surveyed|exposed|inoculated|planted|sown|stored|warmed|heated|cycled|charged|assembled|doped|coated"
    r"|sintered|synthesi[sz]ed|prepared|trained)\b",
    re.IGNORECASE,
)
# What names a treatment or a group, and no finding: "stress reduction", "shift-working", "no tea".
_NAMES = re.compile(
    r"\b(?!associat|correlat)\w+(?:[ts]ion|ment)s?\b(?!\s+(?:in|of|with|between|to|by)\b)"
    r"|\b\w+(?:-\w+)+|\b(?:no|without|high|low|poor|good|short|slow|usual)\b",
    re.IGNORECASE,
)
# A part of a title that says what was asked, and not what was found.
_TELLS_NOTHING = re.compile(
    r"[^.:?]*\?|(?:\A|(?<=[.:?]\s))\s*(?:(?:the|an?)\s+)?(?:effects?|impacts?|influence|role|efficacy|safety"
    r"|effectiveness|associations?|relationships?|comparison|evaluation|assessment)"
    r"\s+(?:of|between|on|with|among)\b[^.:?]*",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+(?:[-–’']\w+)*")  # as it is written: "meta-analysis"
_NEAR_BEST = 0.5  # share of the best score from which on a sentence may decide


class Points(NamedTuple):
    """From which scores on, in [0, 1], a claim is supported, and partly supported."""

    supported: float
    partly: float


# Of the local judge, which reads the deciding sentence by itself. On 1131 claims of the train split
# of citation integrity (726 rightly cited, the rest wrongly, and each also beside another work),
# 73 in 100 pairs above the first are right, and 13 of 1131 other works reach the second (0.9).
LOCAL_POINTS = Points(0.25, 0.05)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What one work comes to for one claim."""

    verdict: Verdict
    score: float | None = None  # relevance of what decides, in [0, 1]; None if nothing was judged
    quote: str = ""  # the sentence that decides, in the words of the work; empty if there is none
    page: str = ""  # that it stands on, if known
    notes: tuple[str, ...] = ()  # what else is to be known, a sentence each


def cut_work(work: CitedWork, statement: str, *, by_sentence: bool) -> list[Document]:
    """Return what of a work is judged: the sentences, or passages, that share most words."""
    parts = [part for one in work.passages for part in _cut(one)] if by_sentence else work.passages
    return choose(parts, statement, MOST_SENTENCES if by_sentence else MOST_PASSAGES)


def choose(parts: Sequence[Document], statement: str, most: int) -> list[Document]:
    """Return the *most* parts that share most words with a statement, in their own order."""
    if len(parts) <= most:
        return list(parts)
    with WordIndex() as index:
        numbered = [
            Document(id=str(n), page_content=one.page_content) for n, one in enumerate(parts)
        ]
        index.add(numbered)
        found = {int(one.id or 0) for one in index.search(statement, most)}
    rest = (n for n in range(len(parts)) if n not in found)
    while len(found) < most:
        found.add(next(rest))
    return [parts[n] for n in sorted(found)]


def _cut(passage: Document) -> Iterable[Document]:
    """Cut a passage into sentences, each with its page."""
    for number, one in enumerate(split_sentences(passage.page_content)):
        page = find_pages(passage.metadata, (one.start, one.end))
        about = {name: passage.metadata[name] for name in ("title",) if passage.metadata.get(name)}
        metadata = {**about, **({"page_label": page} if page else {})}
        yield Document(id=f"{passage.id}/{number}", page_content=one.text, metadata=metadata)


def choose_nearest(statement: str, pool: RerankResult) -> RankedPassage:
    """Return the sentence that decides: of the best by score that with most words of a claim."""
    # "Long sleep was not associated" for a claim on long sleep, and not "short sleep was". Words of
    # comparison do not count, and of two with as many words one that turns nothing goes first.
    # A finding is decided by a sentence that has one, if any has: not by who was randomised. Words
    # of what only may be so count half.
    passages = pool.passages
    if read_words(statement).finds:
        passages = tuple(one for one in passages if not _is_procedure(one.text)) or passages
    about, least = _topic(statement), _NEAR_BEST * (passages[0].score or 0.0)
    near = [one for one in passages if (one.score or 0.0) >= least]
    n_shared = [
        len(about & _topic(one.text)) / (1 + supposes_more(statement, one.text)) for one in near
    ]
    most = [one for one, n in zip(near, n_shared, strict=True) if n == max(n_shared)]
    return next((one for one in most if not _list_turned(statement, one.text)), most[0])


def _is_procedure(sentence: str) -> bool:
    told = read_words(_NAMES.sub(" ", hide_designs(sentence)))
    return bool(_DONE.search(sentence)) and not told.finds


def _list_turned(statement: str, sentence: str) -> list[str]:
    return [*turned_findings(statement, sentence), *turned_changes(statement, sentence)]


def _topic(text: str) -> set[str]:
    read = read_words(text)
    said = [word for word, sign in zip(read.words, read.signs, strict=True) if not sign]
    return stems(" ".join(said))


def decide_by_rules(
    statement: str, work: CitedWork, best: RankedPassage, score: float | None, points: Points
) -> Decision:
    """Decide by the score of the sentence that decides, and by what is turned or missing in it."""
    if score is None:
        return Decision(verdict="not_judged", notes=(best.reason,))
    sentence, page = best.text, best.citation.page
    known: dict[str, str | float] = {"quote": sentence, "page": page, "score": score}
    contrasts = [f"{OPPOSITE}{one}" for one in turned_changes(statement, sentence)]
    contrasts += list_contrasts(statement, sentence)
    others = _list_findings(work)
    elsewhere = _list_elsewhere(statement, sentence, others)
    if turned := [f"turned: {one}" for one in turned_findings(statement, sentence)]:
        return _build("not_found" if elsewhere else "contradicted", known, turned + elsewhere)
    if turned := [one for one in contrasts if one.startswith(OPPOSITE)]:
        return _build("not_found", known, turned + elsewhere)
    if turned := turned_changes(statement, _TELLS_NOTHING.sub(" ", work.source.title)):
        verdict: Verdict = "partly" if score >= points.partly else "not_found"
        said = [one.replace("the passage", "it") for one in turned]
        return _build(verdict, known, [f"its title {MAY_OPPOSE}: {one}" for one in said])
    if elsewhere:
        contrasts = [one for one in contrasts if one.startswith((LEAVES, KEEPS))] or (
            contrasts and elsewhere
        )
    contrasts = contrasts or _deny_elsewhere(statement, sentence, others)
    notes = contrasts + find_gaps(statement, work.text) + list_shortfalls(statement, sentence)
    verdict = "partly" if notes else "supported"
    if score < points.supported:
        verdict = "partly" if score >= points.partly else "not_found"
    near = [_say_near(statement, sentence)] if verdict == "partly" else []
    return _build(verdict, known, notes or near)


def _say_near(statement: str, sentence: str) -> str:
    """Say that a sentence only comes near a claim, and what of the claim it does not have."""
    there = set(map(same_meaning, stems(sentence)))
    missing = {one for one in _topic(statement) - GENERAL if same_meaning(one) not in there}
    said = _quote_words(statement, missing)
    return f"it only comes near; not in this sentence: {said}" if said else "it only comes near"


def _quote_words(statement: str, chosen: Collection[str]) -> str:
    """Return the words of a claim that have one of these stems, in quotation marks."""
    words = (
        one
        for one in _WORD.findall(statement)
        if any(stem_verb(part) in chosen for part in content_words(one))
    )
    return ", ".join(f"“{one}”" for one in dict.fromkeys(words))


def _list_elsewhere(statement: str, sentence: str, others: Sequence[str]) -> list[str]:
    """Say what of a claim a sentence does not have, but another finding of an abstract."""
    missing = _topic(statement) - stems(sentence) - GENERAL_STEMS
    missing &= stems(" ".join(others))
    said = _quote_words(statement, missing)
    return [f"not in this sentence, but elsewhere in the abstract: {said}"] if said else []


def _deny_elsewhere(statement: str, sentence: str, others: Sequence[str]) -> list[str]:
    """Quote the finding nearest to what a sentence lacks: no change, or what a claim leaves out."""
    about = _topic(statement)
    missing = about - stems(sentence) - GENERAL_STEMS - {CONTROL}
    shared = [len(about & told) if missing & (told := stems(one)) else 0 for one in others]
    most = max(shared, default=0)
    near = [one for one, n in zip(others, shared, strict=True) if n == most > 0]
    turned = (FINDS_NOTHING, KEEPS)
    against = (
        one for one in near if any(n.startswith(turned) for n in list_contrasts(statement, one))
    )
    return [f"another sentence {MAY_OPPOSE}: “{one}”" for one in [*against][:1]]


def _list_findings(work: CitedWork) -> list[str]:
    """Return the sentences of an abstract but those that only say what was done."""
    passages = work.passages if work.extent == "abstract" else ()
    told = [one.text for passage in passages for one in split_sentences(passage.page_content)]
    return [one for one in told if not _is_procedure(one)]


def _build(verdict: Verdict, known: dict[str, str | float], notes: Sequence[str]) -> Decision:
    return Decision(verdict=verdict, notes=tuple(notes), **known)  # type: ignore[arg-type]


def decide_by_model(result: RerankResult, work: CitedWork) -> Decision:
    """Decide by the direction and the verified quote that a chat model gave."""
    if result.failed and not result.kept and not result.dropped:
        return Decision(verdict="not_judged", notes=(result.failed[0].reason,))
    said = [one for one in result.kept if one.quote_span is not None]
    against = [one for one in said if one.direction in AGAINST]
    backing = [one for one in said if one.direction in ("supports", None)]
    halfway = [one for one in said if one.direction in ("mixed", "unclear")]
    notes = [f"not judged: {one.reason}" for one in result.failed]
    if backing and against:
        return _of_passage("partly", backing[0], [*notes, "other parts of it say the opposite"])
    if backing or against or halfway:
        verdict: Verdict = "supported" if backing else "contradicted" if against else "partly"
        if verdict == "partly":
            notes.append(f"the judge calls what it says on the claim {halfway[0].direction}")
        return _of_passage(verdict, (backing or against or halfway)[0], notes)
    ranked = [one for one in result.passages if one.score is not None]
    if ranked and ranked[0].kept:
        return _of_passage("not_found", ranked[0], [*notes, "its quote is not in the work"])
    near = [one for one in ranked if (one.score or 0) >= _IN_PART and one.quote_span]
    if near and near[0].direction in ("supports", "mixed"):
        return _of_passage("partly", near[0], [*notes, "it says a part of the claim"])
    return Decision(
        verdict="not_found", score=ranked[0].score if ranked else None, notes=tuple(notes)
    )


def _of_passage(verdict: Verdict, one: RankedPassage, notes: Sequence[str]) -> Decision:
    start, end = one.quote_span or (0, 0)
    return Decision(
        verdict=verdict,
        score=one.score,
        quote=one.text[start:end],
        page=one.quote_page,
        notes=tuple(notes),
    )


def note_overview(purpose: str, found: Decision) -> Decision:
    """Add what an overview means for a claim that is not found in it."""
    if purpose != "review" or found.verdict not in ("not_found", "partly"):
        return found
    note = "cited as an overview: what it sums up may say so elsewhere"
    return replace(found, notes=(*found.notes, note))


def _read_nothing(task: IntentTask) -> Intent:
    """Leave the judge of a statement with the statement alone: it goes by that."""
    raise AnswerError("a statement is not read", usage=Usage())


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What a work comes to for a statement, and what it cost to find out."""

    decision: Decision
    usage: Usage


class ClaimVerifier:
    """Judges works for statements.

    A statement is no question that had to be understood: a chat model is not asked to read it,
    which saves a call. It is told *rules* of such statements beside those of its field.
    """

    def __init__(self, reranker: EvidenceReranker, rules: Domain | None = None) -> None:
        self._asks_model = reranker.backend.asks_model
        reranker = reranker.with_backend(_for_statements(reranker.backend, rules))
        self.reranker = reranker.with_settings(
            threshold=_find_threshold(reranker) if self._asks_model else None,
            content="passage",
            answer=False,
            on_empty="empty",
            stop_after=None,
            top_n=MOST_SENTENCES,
        )

    def verify(self, statement: str, work: CitedWork) -> Steps[Verified]:
        """Judge what of a work is nearest to a statement, and decide; `follow_steps` does it."""
        # The sentence that is nearest is judged once more, by itself; not by a chat model.
        pool = yield Asked(self.reranker, statement, self.cut(statement, work))
        alone = None
        if pool.passages and not self._asks_model:
            best = choose_nearest(statement, pool)
            only = Document(page_content=best.text, metadata=best.metadata)
            alone = yield Asked(self.reranker, statement, (only,))
        return self._decide(statement, work, pool, alone)

    def cut(self, statement: str, work: CitedWork) -> list[Document]:
        """Return what of a work is judged: passages for a chat model, sentences for others."""
        return cut_work(work, statement, by_sentence=not self._asks_model)

    def _decide(
        self, statement: str, work: CitedWork, pool: RerankResult, alone: RerankResult | None
    ) -> Verified:
        if self._asks_model:
            found = decide_by_model(pool, work)
        elif alone is None:
            found = Decision(verdict="not_judged", notes=("there was nothing to judge",))
        else:
            only = alone.all_passages[0]
            found = decide_by_rules(statement, work, only, only.score, self._points)
        usage = pool.total_usage + (alone.total_usage if alone else Usage())
        return Verified(decision=found, usage=usage)

    @property
    def _points(self) -> Points:
        if (self.reranker.backend.spec or {}).get("kind") == "local":
            return LOCAL_POINTS
        judge_point = self.reranker.effective_settings.threshold
        cut = judge_point if isinstance(judge_point, float) else 0.5
        return Points(cut, cut / 2)


def _for_statements(backend: Backend, rules: Domain | None) -> Backend:
    """Return a backend that asks no model to read a statement, and judges it by these rules."""
    if backend.asks_model and not backend.reads_by_rules:
        about = {**backend.about, "intent": "unread"}  # other answers than those of its model
        backend = replace(backend, intent=LocalRole(_read_nothing), about=about)
    if rules and isinstance(backend.judge, LlmJudge):
        about = {**backend.about, "rules": rules.to_dict()}
        backend = replace(backend, judge=backend.judge.with_rules(rules), about=about)
    return backend


def _find_threshold(reranker: EvidenceReranker) -> Any:
    """Return the judge's own threshold, or a higher one of the settings; a rule is for a pool."""
    given = reranker.settings.threshold
    own = reranker.with_settings(threshold=None).effective_settings.threshold
    return (
        max(own, given) if isinstance(given, int | float) and isinstance(own, int | float) else own
    )
