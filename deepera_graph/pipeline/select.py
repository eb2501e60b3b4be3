"""What is kept: verdicts joined and ranked, the filter, and what summaries change of it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.documents import Document

from deepera_graph.errors import BackendError, RoleError
from deepera_graph.judges.base import Judge, window_key
from deepera_graph.literature.citation import Citation
from deepera_graph.literature.copies import text_key
from deepera_graph.literature.paper_keys import RETRACTED
from deepera_graph.literature.same_study import find_studies
from deepera_graph.literature.versions import cite_as
from deepera_graph.passages import retrieval_place, shown_text
from deepera_graph.pipeline.score import Evidence, cut, is_proven, locate_quote, passes
from deepera_graph.pipeline.state import (
    JudgementRecord,
    Outcome,
    RankRecord,
    State,
    Update,
    cite_record,
    kept_document,
    read_judgements,
)
from deepera_graph.pipeline.summarize import given_summaries
from deepera_graph.schema import EVIDENCE, POSSIBLE, Band
from deepera_graph.settings import Settings
from deepera_graph.usage import Usage

NO_TEXT = "the passage has no text"
_UNREADABLE = {"score": None, "status": "failed", "reason": NO_TEXT, "quote": "", "unusable": False}


def select(
    state: State,
    *,
    settings: Settings,
    evidence: Evidence = "any",
    names_evidence: bool = False,
    judge: Judge | None = None,
) -> Update:
    """Rank every passage once, 1..N, and keep the best that reach the threshold.

    A threshold is a lowest score, nothing more (DeepEra, algorithm 1): a passage that reaches it
    is kept without evidence, too, unless that is required; of a judge that names its evidence such
    a passage is flagged, and one with a quote that does not occur in it is held back.

    The *judge* is asked whether it can read such a question at all, and from which score on what is
    kept is evidence; below, it is possible evidence.

    Ties go to the better first-stage rank, then to the earlier input (DeepEra, algorithm 1).

    Raises:
        RoleError: A passage failed and the settings say to raise; carries what all calls cost.
        BackendError: Every passage failed because of the backend, and the settings say to raise.
    """
    by_index = _group_by_passage(state)
    own_scores = ([one["score"] for one in own] for own in by_index.values())
    known = ([score for score in scores if score is not None] for scores in own_scores)
    best = [max(scores) for scores in known if scores]
    threshold = cut(settings.threshold, best, state["intent"]["fields"]["intent"])
    records = [
        _join(
            index,
            passage,
            by_index.get(index, []),
            threshold,
            evidence=evidence,
            prefers_proof=names_evidence,
        )
        for index, passage in enumerate(state["passages"])
    ]
    if settings.on_error == "raise":
        _raise_first_failure(records, state)
    drops = settings.on_error == "drop"
    left_out = [one for one in records if drops and one["status"] == "failed"]
    ordered = sorted(
        (one for one in records if not (drops and one["status"] == "failed")),
        key=lambda one: (
            one["score"] is None,
            -(one["score"] or 0.0),
            one["score"] is None and one["status"] != "not_needed",
            one["retrieval_rank"],
            one["index"],
        ),
    )
    every = [*ordered, *left_out]
    texts = [state["passages"][one["index"]].page_content for one in every]
    given = ((one["id"], state["passages"][one["index"]].metadata) for one in every)
    for one, about in zip(every, find_studies(given, texts), strict=True):
        one["study"], one["paper_status"] = about.study, about.status
    copies = _find_copies(every, texts) if len(ordered) > settings.top_n else set()
    kept, fallback = _keep(ordered, threshold, settings, evidence, copies)
    point = None if judge is None else judge.evidence_point
    problems, missing = _ask_judge(state, judge)
    ranking = _rank(kept, ordered, left_out)
    for one in ranking:
        if missing:
            one["direction"], one["position"] = None, ""
        if one["kept"] and one["score"] is not None and fallback is None:
            one["band"] = find_band(one["score"], point, missing)
    bare = _flag_bare(ranking, threshold) if names_evidence else []
    return {
        "ranking": ranking,
        "summaries": given_summaries(state, ranking) if settings.content != "passage" else [],
        "left_out": left_out,
        "warnings": [*problems, *bare, *_count_retracted(ranking)],
        "documents": [],
        "threshold": threshold,
        "evidence_point": point,
        "missing_words": missing,
        "outcome": outcome(
            records,
            settings,
            is_empty=fallback is not None or not kept,
        ),
        "fallback": fallback,
    }


def _ask_judge(state: State, judge: Judge | None) -> tuple[list[str], list[str]]:
    """Return what the judge says of the question, if anything, and which words of it it misses."""
    if judge is None:
        return [], []
    shown = (
        shown_text(state["passages"][one["index"]], one["start"], one["end"])
        for one in state["windows"]
    )
    windows = {window_key(window): window for window in shown}
    given = state["question"], list(windows.values())
    problem, missing = judge.question_problem(*given), list(judge.missing_words(*given))
    if missing:
        names = " or ".join(f'"{word}"' for word in missing)
        problem = problem or (
            f"no passage names {names}, nor anything like it, which the question is about: what is "
            "kept is possible evidence at most"
        )
    return [problem] if problem else [], missing


def outcome(
    records: Sequence[RankRecord],
    settings: Settings,
    *,
    is_empty: bool,
) -> Outcome:
    """Name how the run went; a run with too many failures is degraded whatever it kept.

    What was not needed is no failure, and does not hide the share of those that are.
    """
    if not records:
        return "nothing_retrieved"
    if any("skipped_budget" in (one["status"], one["summary_status"]) for one in records):
        return "budget_stop"
    needed = [record for record in records if record["status"] != "not_needed"]
    n_failed = sum(record["score"] is None for record in needed)
    if needed and n_failed / len(needed) > settings.max_failed_share:
        return "degraded"
    return "no_evidence" if is_empty else "ok"


def _group_by_passage(state: State) -> dict[int, list[JudgementRecord]]:
    """Return the verdicts on each passage; one on the whole of it comes last, and counts alone."""
    by_index: dict[int, list[JudgementRecord]] = defaultdict(list)
    for one in read_judgements(state):
        length = len(state["passages"][one["index"]].page_content)
        if (one["start"], one["end"]) == (0, length):
            by_index[one["index"]] = [one]
        else:
            by_index[one["index"]].append(one)
    return by_index


def _join(
    index: int,
    passage: Document,
    judgements: list[JudgementRecord],
    threshold: float,
    *,
    evidence: Evidence,
    prefers_proof: bool,
) -> RankRecord:
    """Fold the windows of one passage into one record: the best window counts.

    Or a failed one, if reading it could have changed the verdict. What would pass, but for the
    proof that is asked for, says so.
    """
    rank, score = retrieval_place(passage, index)
    text = passage.page_content
    passing = [one for one in judgements if passes(text, one, threshold, evidence=evidence)]
    if prefers_proof:
        proven = [one for one in passing if passes(text, one, threshold, evidence="required")]
        passing = proven or passing
    failed = [one for one in judgements if one["score"] is None]
    best = min(
        passing or failed or judgements,
        key=lambda one: (one["score"] is None, -(one["score"] or 0.0), one["start"]),
        default=None,
    )
    verdict: Mapping[str, Any] = best or _UNREADABLE
    whole = best is None or (best["start"], best["end"]) == (0, len(text))
    record: Any = {
        "index": index,
        "id": passage.id or str(index + 1),
        "rank": 0,
        "kept": False,
        "band": None,
        **{key: verdict[key] for key in _UNREADABLE},
        "direction": verdict.get("direction"),
        "position": verdict.get("position", ""),
        "quote_span": None,
        "quote_status": "",
        "window": None if whole or best is None else [best["start"], best["end"]],
        "retrieval_rank": rank,
        "retrieval_score": score,
        "summary": "",
        "summary_status": "",
    }
    made: RankRecord = record
    if best:
        made["quote_status"], made["quote_span"] = locate_quote(text, best)
    reaches = made["score"] is not None and made["score"] >= threshold
    if reaches and not is_proven(made["quote_status"], evidence):
        made["reason"] = _join_words(made["reason"], f"held back: {_lacks(made)}")
    return made


def _join_words(*parts: str) -> str:
    return "; ".join(filter(None, parts))


def _lacks(record: RankRecord) -> str:
    if record["quote"]:
        return "the quote is not in the passage"
    is_unknown = record["quote_status"] == "not_found"
    return "the sentence named is not in the passage" if is_unknown else "no evidence was named"


def _flag_bare(ranking: Sequence[RankRecord], threshold: float) -> list[str]:
    """Flag what is kept by its score, with nothing in it named as evidence; say how many."""
    bare = [
        one
        for one in ranking
        if one["kept"] and (one["score"] or 0.0) >= threshold and one["quote_span"] is None
    ]
    for one in bare:
        one["reason"] = _join_words(one["reason"], f"kept by its score alone: {_lacks(one)}")
    if not bare:
        return []
    return [
        f"{len(bare)} of {sum(one['kept'] for one in ranking)} passages that passed have no "
        "sentence named as evidence: they passed by their score alone"
    ]


def _find_copies(records: Sequence[RankRecord], texts: Sequence[str]) -> set[int]:
    """Return the records whose text a better one of the study has."""
    copies, seen = set[int](), set[tuple[int | None, str]]()
    for one, text in zip(records, texts, strict=True):
        key = one["study"], text_key(text)
        if key in seen:
            copies.add(one["index"])
        seen.add(key)
    return copies


def _take(records: Sequence[RankRecord], n: int | None, copies: set[int]) -> list[RankRecord]:
    """Return the first *n* records in order; copies of others only where there is room."""
    first = sorted(records, key=lambda one: one["index"] in copies)[:n]
    chosen = {one["index"] for one in first}
    return [one for one in records if one["index"] in chosen]


def _keep(
    ordered: list[RankRecord],
    threshold: float,
    settings: Settings,
    evidence: Evidence,
    copies: set[int],
) -> tuple[list[RankRecord], str | None]:
    """Return the kept records in the order asked for, and the `on_empty` choice if it acted."""
    scored = [one for one in ordered if one["score"] is not None]
    passed = [
        one
        for one in scored
        if (one["score"] or 0.0) >= threshold and is_proven(one["quote_status"], evidence)
    ]
    kept = _take(passed, settings.top_n, copies) if copies else passed[: settings.top_n]
    fallback, by_retrieval = None, settings.order == "retrieval"
    if not kept and scored and settings.on_empty != "empty":
        fallback = settings.on_empty
        by_retrieval = by_retrieval or fallback == "original"
        n_kept = {"top1": 1, "topn": settings.top_n}.get(fallback)
        kept = _take(scored, n_kept, copies)
    if by_retrieval:
        kept = sorted(kept, key=lambda one: (one["retrieval_rank"], one["index"]))
    return kept[: settings.top_n], fallback


def _rank(
    kept: Sequence[RankRecord],
    ordered: Sequence[RankRecord],
    left_out: Sequence[RankRecord],
) -> list[RankRecord]:
    """Put the kept first, then the others by score; number them, and in this order their studies.

    Those left out have a study, too.
    """
    chosen = {one["index"] for one in kept}
    ranking = [*kept, *(one for one in ordered if one["index"] not in chosen)]
    for rank, one in enumerate(ranking, start=1):
        one["rank"], one["kept"] = rank, one["index"] in chosen
    numbers: dict[int | None, int] = {}
    for one in (*ranking, *left_out):
        one["study"] = numbers.setdefault(one["study"], len(numbers) + 1)
    return ranking


def _count_retracted(ranking: Sequence[RankRecord]) -> list[str]:
    n = sum(one["kept"] and one.get("paper_status") == RETRACTED for one in ranking)
    if not n:
        return []
    one_is = "1 passage that was kept is of a retracted paper: it counts"
    many_are = f"{n} passages that were kept are of retracted papers: they count"
    it_or_them = "it" if n == 1 else "them"
    said = one_is if n == 1 else many_are
    return [f"{said} for no direction, and no answer is made of {it_or_them}"]


def _raise_first_failure(records: Sequence[RankRecord], state: State) -> None:
    readable = [one for one in records if one["reason"] != NO_TEXT]
    if readable and all(one["status"] == "failed" and one["unusable"] for one in readable):
        raise BackendError(readable[0]["reason"])
    for record in records:
        if record["status"] == "failed":
            why = f"passage {record['id']!r} could not be judged: {record['reason']}"
            spent = (state.get("usage") or {}).values()
            raise RoleError(why, usage=sum(map(Usage.of, spent), Usage()))


def collect(state: State, *, settings: Settings) -> Update:
    """Put each summary beside its passage; one whose summarizer found no answer is dropped.

    What `on_empty` put back stays: it was under the threshold, and asked for all the same.
    """
    summaries = {summary["index"]: summary for summary in state["summaries"]}
    may_drop = state["fallback"] is None
    ranking = [record.copy() for record in state["ranking"]]
    for record in ranking:
        if (summary := summaries.get(record["index"])) is None:
            continue
        record["summary"], record["summary_status"] = summary["summary"], summary["status"]
        if summary["cause"]:
            record["reason"] = _join_words(record["reason"], summary["cause"])
        if summary["status"] == "none" and may_drop:
            record["kept"], record["band"] = False, None
    kept = [record for record in ranking if record["kept"]]
    sources: dict[int | None, dict[str, Citation]] = defaultdict(dict)
    for record in (*ranking, *state.get("left_out", ())):
        sources[record.get("study")][record["id"]] = cite_record(record, state["passages"])

    cited: dict[str, Citation] = {}
    for record in kept:
        study = sources[record.get("study")]
        own = study[record["id"]]
        is_alone = len(study) == 1 and not (own.is_preprint or own.is_notice)
        others = (one for name, one in study.items() if name != record["id"])
        cited[record["id"]] = own if is_alone else cite_as(own, others)
    return {
        "ranking": ranking,
        "documents": [
            kept_document(
                state["passages"][record["index"]], record, settings.content, cited[record["id"]]
            )
            for record in kept
        ],
        "outcome": outcome(
            [*ranking, *state.get("left_out", ())],
            settings,
            is_empty=state["fallback"] is not None or not kept,
        ),
    }


def find_band(score: float, evidence_point: float | None, missing_words: Sequence[str]) -> Band:
    """Return the band of a kept passage: evidence from a score on, or always if there is none.

    Where words of the question are missing in all passages, none is evidence for it.
    """
    is_sure = evidence_point is None or score >= evidence_point
    return EVIDENCE if is_sure and not missing_words else POSSIBLE
