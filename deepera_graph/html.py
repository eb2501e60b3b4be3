"""The notebook view of a result: one table, plain HTML, no script."""

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deepera_graph.result import RankedPassage, RerankResult

_STYLE = "text-align:left;vertical-align:top"
_SHOWN_DROPPED = 5
_SHOWN_UNASKED = 1  # all for the same reason
_SHOWN_CHARS = 240


def result_html(result: "RerankResult") -> str:
    """Return an HTML table of the kept passages, the best dropped ones and the failures."""
    dropped, failed = result.dropped, result.failed
    fields = result.intent["fields"]
    intent = f"{fields['intent']} · {fields['entity_type']}" if fields["topic"] else "not known"
    survey = result.survey["status"] if result.survey else ""
    without = f"survey: <b>{survey}</b> · " if survey in {"failed", "skipped_budget"} else ""
    unasked = f", not needed {len(result.not_needed)}" if result.not_needed else ""
    head = (
        f"<p><b>{escape(result.question)}</b><br>intent: {escape(intent)} · "
        f"{without}outcome: <b>{result.outcome}</b> · "
        f"kept {len(result.kept)}, dropped {len(dropped)}, "
        f"failed {len(failed)}{unasked} at threshold {result.threshold:g} · "
        f"{result.total_usage.calls} calls, {result.seconds.get('total', 0):.2f} s</p>"
    )
    rows = [*_rows(result.kept), *_rows(dropped[:_SHOWN_DROPPED]), *_rows(failed)]
    hidden = len(dropped) - _SHOWN_DROPPED
    if hidden > 0:
        rows.append(f"<tr><td colspan='6'>and {hidden} more dropped</td></tr>")
    rows += _rows(result.not_needed[:_SHOWN_UNASKED])
    titles = "".join(
        f"<th style='{_STYLE}'>{title}</th>"
        for title in ("rank", "score", "was", "id", "passage", "why")
    )
    body = f"<thead><tr>{titles}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return f"<div>{head}<table>{body}</table></div>"


def _rows(passages: "Sequence[RankedPassage]") -> list[str]:
    return [_row(passage) for passage in passages]


def _row(passage: "RankedPassage") -> str:
    score = "–" if passage.score is None else f"{passage.score:.2f}"
    shade = "font-weight:bold" if passage.kept else "opacity:0.65"
    cells = (
        str(passage.rank or "–"),
        score,
        str(passage.retrieval_rank),
        escape(passage.id),
        escape(_short(passage.summary or passage.text)),
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


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS].rstrip() + " …"
