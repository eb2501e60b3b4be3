"""Answer node: an answer from the kept evidence, citing passages by id; optional."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from deepera_graph.errors import RoleError
from deepera_graph.literature.paper_keys import RETRACTED
from deepera_graph.literature.versions import order_passages
from deepera_graph.pipeline.state import (
    AnswerQuote,
    AnswerRecord,
    RankRecord,
    State,
    UncitedStudy,
    Update,
    cite_record,
)
from deepera_graph.schema import (
    EVIDENCE,
    POSSIBLE,
    Answer,
    AnswerTask,
    EvidenceItem,
    with_repair_note,
)
from deepera_graph.text.quotes import FEWEST_WORDS, find_quote

_QUOTED = re.compile(r'"([^"\n]+)"|“([^“”\n]+)”|„([^„“”\n]+)[“”]|«([^«»\n]+)»')
_PLACE = {"verbatim": 0, "normalised": 1, "not_found": 2}


def answer_quotes(text: str, passages: Sequence[tuple[str, str]]) -> list[AnswerQuote]:
    """Return what an answer quotes, in order, each with the passage that says it best.

    A single term in quotation marks is no quote: it takes `FEWEST_WORDS` words.
    """
    quotes = ("".join(filter(None, match.groups())) for match in _QUOTED.finditer(text))
    return [_found(one, passages) for one in quotes if len(one.split()) >= FEWEST_WORDS]


def _found(quote: str, passages: Sequence[tuple[str, str]]) -> AnswerQuote:
    places = [(find_quote(text, quote), id) for id, text in passages]
    place, id = min(places, key=lambda one: _PLACE[one[0].status])
    if place.start is None or place.end is None:
        return {"text": quote, "id": None, "span": None, "status": "not_found"}
    return {"text": quote, "id": id, "span": [place.start, place.end], "status": place.status}


INSUFFICIENT = "insufficient evidence"
_CITATION = re.compile(r"\[(\d{1,6}(?:\s*,\s*\d{1,6})*)\]")


def answerable_records(state: State) -> list[RankRecord]:
    """Return the kept passages that an answer may be made of, best first.

    No possible ones, and none of a retracted paper. Those of one study are in the order of
    `order_passages`, in the places that they share.
    """
    kept = (record for record in state["ranking"] if record["kept"])
    usable = (record for record in kept if record.get("paper_status") != RETRACTED)
    found = [record for record in usable if record.get("band") != POSSIBLE]
    places: dict[int | None, list[int]] = defaultdict(list)
    for place, one in enumerate(found):
        places[one.get("study")].append(place)
    ordered = list(found)
    for study, ones in places.items():
        records = [found[place] for place in ones]
        if study is None or len(records) == 1:
            continue
        scores = [(one["score"] or 0.0, one.get("band")) for one in records]
        order = order_passages(scores, [cite_record(one, state["passages"]) for one in records])
        for place, of in zip(ones, order, strict=True):
            ordered[place] = records[of]
    return ordered


def ask(state: State) -> AnswerTask:
    """Show the answerer the evidence, numbered by its place from 1."""
    return {
        "question": state["question"],
        "intent": state["intent"]["fields"],
        "evidence": [_item(state, record) for record in answerable_records(state)],
    }


def record(state: State, answer: Answer) -> Update:
    """Keep the answer, its numbers turned into passage ids; a number out of range is dropped.

    What the answer quotes is looked for in the kept passages. An answerer may find that the
    evidence does not suffice, and say so in these words.
    """
    ids = [one["id"] for one in answerable_records(state)]
    text = _CITATION.sub(lambda match: _as_ids(match.group(1), ids), answer.text)
    cited = _numbers_in(answer.text) + list(answer.citations)
    citations = list(dict.fromkeys(ids[n - 1] for n in cited if 1 <= n <= len(ids)))
    if not citations and INSUFFICIENT in text.lower():
        head, _, why = text.partition(":")
        told = why.strip() if head.strip().lower() == INSUFFICIENT else ""
        cause = told or "the answerer found no answer in the evidence"
        return _answered(INSUFFICIENT, [], "insufficient_evidence", with_repair_note(cause, answer))
    quotes = answer_quotes(answer.text, _texts(state))
    invented = "; ".join(f"no kept passage says {one['text']!r}" for one in quotes if not one["id"])
    update = _answered(text.strip(), citations, "answered", with_repair_note(invented, answer))
    if quotes:
        update["answer"]["quotes"] = quotes
    if uncited := _list_uncited(state, citations, answer.uncited):
        update["answer"]["uncited"] = uncited
    return update


def _list_uncited(
    state: State, citations: Sequence[str], causes: Mapping[int, str]
) -> list[UncitedStudy]:
    """Return the studies that are evidence, and no passage of which is cited.

    One of which neither a direction nor a cause is known is left out: an answerer chooses.
    """
    studies: dict[int, list[tuple[int, RankRecord]]] = defaultdict(list)
    for number, one in enumerate(answerable_records(state), start=1):
        if one.get("band") == EVIDENCE:
            studies[one.get("study") or -number].append((number, one))
    found: list[UncitedStudy] = [
        {
            "id": ones[0][1]["id"],
            "direction": ones[0][1].get("direction"),
            "cause": next((causes[number] for number, _ in ones if causes.get(number)), ""),
        }
        for ones in studies.values()
        if not any(one["id"] in citations for _, one in ones)
    ]
    return [one for one in found if one["direction"] or one["cause"]]


def on_failure(state: State, error: RoleError) -> Update:
    """Say that there is no answer, and why."""
    return _answered("", [], "failed", str(error))


def abstain(state: State) -> Update:
    """Say that the evidence does not suffice; or, where nothing was judged, that none is known."""
    records = [*state["ranking"], *state.get("left_out", ())]
    unjudged = [one for one in records if one["score"] is None]
    if unjudged and len(unjudged) == len(records):
        return _answered("", [], "failed", f"no passage was judged: {unjudged[0]['reason']}")
    is_possible = any(one.get("band") == POSSIBLE for one in records)
    is_retracted = any(one["kept"] and one.get("paper_status") == RETRACTED for one in records)
    cause = "only possible evidence was kept" if is_possible else "no passage was kept"
    if is_retracted:
        cause = "what was kept is of retracted papers, or possible evidence"
    if unjudged:
        cause += f", and {len(unjudged)} of {len(records)} could not be judged"
    return _answered(INSUFFICIENT, [], "insufficient_evidence", cause)


def _texts(state: State) -> list[tuple[str, str]]:
    records = answerable_records(state)
    return [(one["id"], state["passages"][one["index"]].page_content) for one in records]


def _item(state: State, record: RankRecord) -> EvidenceItem:
    passage = state["passages"][record["index"]]
    start, end = record["window"] or (0, len(passage.page_content))
    item: EvidenceItem = {
        "text": passage.page_content[start:end],
        "summary": record["summary"],
        "quote": record["quote"],
        "title": str(passage.metadata.get("title") or ""),
        "section": str(passage.metadata.get("section") or ""),
    }
    if study := record.get("study"):
        item["study"] = study
    if direction := record.get("direction"):
        item["direction"] = direction
    if position := record.get("position"):
        item["position"] = position
    return item


def _numbers_in(text: str) -> list[int]:
    return [int(n) for match in _CITATION.finditer(text) for n in match.group(1).split(",")]


def _as_ids(numbers: str, ids: list[str]) -> str:
    known = [ids[int(n) - 1] for n in numbers.split(",") if 1 <= int(n) <= len(ids)]
    return f"[{', '.join(known)}]" if known else ""


def _answered(text: str, citations: list[str], status: str, cause: str) -> Update:
    answer: AnswerRecord = {
        "text": text,
        "citations": citations,
        "status": status,  # type: ignore[typeddict-item]  # one of the three literals
        "cause": cause,
    }
    return {"answer": answer}
