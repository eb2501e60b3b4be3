"""How a result is told in words, and in a notebook as a table."""

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from deepera_graph.literature.citation import Citation
from deepera_graph.literature.paper_keys import RETRACTED
from deepera_graph.pipeline.state import UncitedStudy
from deepera_graph.schema import POSSIBLE
from deepera_graph.text.plain import count, name_some, replace_controls
from deepera_graph.text.questions import describe_directions, name_direction
from deepera_graph.usage import Usage

if TYPE_CHECKING:
    from deepera_graph.result import RankedPassage, RerankResult

_STYLE = "text-align:left;vertical-align:top"
_DIGITS, _MOST_DIGITS = 2, 7  # of a score
SHOWN_DROPPED = 5
SHOWN_UNASKED = 1  # all for the same reason
_SHOWN_CHARS = 240


def result_html(result: "RerankResult") -> str:
    """Return what a notebook shows: a table of what was kept, of the best dropped, of failures."""
    dropped, failed = result.dropped, result.failed
    fields = result.intent["fields"]
    intent = ""
    if fields["topic"] and not result.reads_by_rules:
        intent = f"intent: {escape(fields['intent'])} · {escape(fields['entity_type'])} · "
    said = describe_directions(result.direction_counts, result.positions)
    unasked = f", not needed {len(result.not_needed)}" if result.not_needed else ""
    failures = describe_failures(result)
    head = (
        f"<p><b>{escape(result.question)}</b><br>{intent}"
        f"outcome: <b>{result.outcome}</b> · "
        f"{describe_kept(result)}, dropped {len(dropped)}{describe_cut(result)}, "
        f"failed {len(failed)}{unasked} at threshold {result.threshold:g} · "
        f"{describe_calls(result.total_usage)}, {result.seconds.get('total', 0):.2f} s"
        f"{f' · {said}' if said else ''}"
        f"{f'<br><b>{escape(failures)}</b>' if failures else ''}"
        f"{''.join(f'<br><b>note:</b> {escape(one)}' for one in result.warnings)}</p>"
    )
    if result.fallback is not None:
        head += "<p><b>Below the threshold: the nearest passages, not evidence.</b></p>"
    shown = (*result.kept, *dropped[:SHOWN_DROPPED], *failed)
    rows = _rows(result, shown)
    hidden = len(dropped) - SHOWN_DROPPED
    if hidden > 0:
        rows.append(f"<tr><td colspan='6'>and {hidden} more dropped</td></tr>")
    rows += _rows(result, result.not_needed[:SHOWN_UNASKED])
    titles = "".join(
        f"<th style='{_STYLE}'>{title}</th>"
        for title in ("rank", "score", "retrieved as", "source", "passage", "why")
    )
    body = f"<thead><tr>{titles}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return replace_controls(f"<div>{head}<table>{body}</table></div>")


def write_score(score: float | None, cuts: "Sequence[float | None]") -> str:
    """Return a score with two decimals, or as many as tell it from *cuts*; None is a dash."""
    if score is None:
        return "–"
    shown = (f"{score:.{digits}f}" for digits in range(_DIGITS, _MOST_DIGITS))
    known = [one for one in cuts if one is not None]

    def tells(one: str) -> bool:
        return all((float(one) >= float(f"{cut:g}")) == (score >= cut) for cut in known)

    return next(filter(tells, shown), f"{score!r}")


class BandCounts(NamedTuple):
    """How many passages passed, by what they count for; one of a retracted paper for nothing."""

    evidence: int
    possible: int
    retracted: int


def count_bands(result: "RerankResult") -> BandCounts:
    """Count what passed, those of retracted papers apart."""
    evidence, possible = (
        [one for one in ones if one.paper_status != RETRACTED]
        for ones in (result.evidence, result.possible)
    )
    n_all = len(result.evidence) + len(result.possible)
    return BandCounts(len(evidence), len(possible), n_all - len(evidence) - len(possible))


def are_retracted(n: int) -> str:
    """Return what *n* passages are: ``are of retracted papers``."""
    return "is of a retracted paper" if n == 1 else "are of retracted papers"


def describe_kept(result: "RerankResult") -> str:
    """Return how many were kept, and of them are no evidence: ``kept 3, 1 possible``."""
    n = count_bands(result)
    others = {"possible": n.possible, "retracted": n.retracted}
    return "".join(
        [f"kept {len(result.kept)}", *(f", {many} {what}" for what, many in others.items() if many)]
    )


def list_cut(result: "RerankResult") -> tuple["RankedPassage", ...]:
    """Return the passages that pass, and were dropped as `top_n` others were kept."""
    most = result.manifest.get("settings", {}).get("top_n")
    if most is None or result.fallback is not None:
        return ()
    passed = [
        one
        for one in result.dropped
        if (one.score or 0.0) >= result.threshold and one.quote_status != "not_found"
    ]
    cut = tuple(one for one in passed if one.summary_status != "none")
    return cut if len(result.kept) + len(passed) - len(cut) >= most else ()


def describe_cut(result: "RerankResult") -> str:
    """Return how many that pass were dropped, to follow how many were: `` (5 by top_n=1)``."""
    n = len(list_cut(result))
    return f" ({n} by top_n={result.manifest['settings']['top_n']})" if n else ""


def list_uncited(result: "RerankResult") -> list[UncitedStudy]:
    """Return the studies that the answer does not cite, as far as they still are evidence."""
    if result.answer is None:
        return []
    ids = {one.id for one in result.evidence}
    return [one for one in result.answer.get("uncited", ()) if one["id"] in ids]


def describe_uncited(result: "RerankResult", numbers: Mapping[str, int]) -> str:
    """Say which studies are evidence and not cited by the answer, and why; empty if none is.

    They are named by the *numbers* of their passages, by id.
    """
    causes: dict[str, list[str]] = {}
    for one in list_uncited(result):
        side = name_direction(one["direction"])
        said = f"{numbers[one['id']]}{f' ({side})' if side else ''}"
        causes.setdefault(one["cause"], []).append(said)
    return "; ".join(
        f"{count(len(ones), 'more study')} {'is' if len(ones) == 1 else 'are'} evidence, "
        f"not cited{f', as {cause}' if cause else ''}: {name_some(ones)}"
        for cause, ones in causes.items()
    )


def describe_failures(result: "RerankResult") -> str:
    """Say in a sentence or two what could not be judged, and why; empty if all passages were."""
    n, said = len(result.all_passages), []
    undone = [one for one in result.failed if one.status == "skipped_budget"]
    broken = [one for one in result.failed if one.status != "skipped_budget"]
    if broken:
        part = f"{len(broken)} of {count(n, 'passage')} could not be judged"
        what = "Nothing could be judged" if len(broken) == n else part
        said.append(f"{what}: {_main_reason(broken)}.")
    if undone:
        part = f"{len(undone)} of {count(n, 'passage')} not judged"
        what = "nothing judged" if len(undone) == n else part
        said.append(f"The budget stopped the run with {what} ({_main_reason(undone)}).")
    return " ".join(said)


def _main_reason(passages: "Sequence[RankedPassage]") -> str:
    """Return the reason that most passages have; of several, the first."""
    (reason, _), *_ = Counter(one.reason for one in passages).most_common(1)
    return " ".join(reason.split()).rstrip(".") or "no reason was given"


def describe_calls(usage: Usage) -> str:
    """Return how many calls there were: ``3 calls, 2 of them from the cache, 1 more failed``."""
    beside = {"of them from the cache": usage.cached_calls, "more failed": usage.failed_calls}
    return ", ".join(
        [count(usage.calls, "call"), *(f"{n} {what}" for what, n in beside.items() if n)]
    )


def _rows(result: "RerankResult", passages: "Sequence[RankedPassage]") -> list[str]:
    return [_row(result, passage) for passage in passages]


def _row(result: "RerankResult", passage: "RankedPassage") -> str:
    score = result.show_score(passage.score)
    score += f"<br>{POSSIBLE}" if passage.band == POSSIBLE else ""
    score += f"<br>{name_direction(passage.direction)}" if passage.direction else ""
    shade = "font-weight:bold" if passage.kept else "opacity:0.65"
    quote = ""
    if passage.quote and passage.quote != passage.summary:
        quote = f"<br><i>“{escape(_short(passage.quote))}”</i>"
    cells = (
        str(passage.rank or "–"),
        score,
        str(passage.retrieval_rank),
        source_html(result.cite(passage)),
        escape(_short(passage.summary or passage.text)) + quote,
        escape(_short(passage.reason)),
    )
    return (
        "<tr>"
        + "".join(
            f"<td style='{_STYLE};{shade if n < 2 else ''}'>{cell}</td>"
            for n, cell in enumerate(cells)
        )
        + "</tr>"
    )


def source_html(source: Citation) -> str:
    """Return how a source is cited, as a link if it has an address."""
    text = escape(_short(str(source)))
    return f'<a href="{escape(source.link)}">{text}</a>' if source.link else text


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS].rstrip() + " …"
