"""A realism report for people, and as plain data."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from deepera_graph.bench.metrics.resample import Interval
from deepera_graph.bench.realism.report import JUDGED, LIMIT, Realism
from deepera_graph.bench.realism.separate import Telling

_N_TELLING = 5


def markdown(report: Realism) -> str:
    """Return the report as a section of Markdown."""
    return "\n".join(
        [_head(report), _families(report), *_kinds(report), _similarity(report), _marks(report)]
    )


def plain(report: Realism) -> dict[str, Any]:
    """Return the report as data for JSON."""
    return {
        "dataset": report.name,
        "questions": report.n_questions,
        "distractors": report.n_distractors,
        "others": report.n_others,
        "limit": LIMIT,
        "flagged": list(report.flagged),
        "families": [
            {
                "name": one.name,
                "judged": one.judged,
                "auc": one.auc._asdict(),
                "golden_auc": one.golden and one.golden._asdict(),
                "telling": [telling._asdict() for telling in one.telling],
            }
            for one in report.families
        ],
        "types": [
            {
                "name": one.name,
                "distractors": one.n_distractors,
                "length_auc": one.length._asdict(),
                "style_auc": one.style._asdict(),
            }
            for one in report.kinds
        ],
        "similarity": [
            {**one._asdict(), "closer": one.closer._asdict()} for one in report.similarities
        ],
        "marks": [asdict(one) for one in report.marks],
    }


def _head(report: Realism) -> str:
    verdict = (
        f"**Flagged**: {', '.join(report.flagged)} tell the distractors apart (AUC above {LIMIT})."
        if report.flagged
        else f"Not flagged: neither {', '.join(JUDGED[:-1])} nor {JUDGED[-1]} tells the "
        f"distractors apart (AUC up to {LIMIT})."
    )
    return (
        f"### {report.name}\n\n{verdict}\n\n"
        f"{report.n_distractors} distractors among {report.n_others} other passages that are not "
        f"golden, in the pools of {report.n_questions} questions. AUC is the chance that a "
        "classifier which has seen neither the pool nor its texts scores a distractor above "
        "another passage, with its 95 % interval. Golden passages, if nobody wrote them to "
        "order, are the yardstick: sections of one kind differ from the mixture around them by "
        f"what they do. So does a single type; the limit of {LIMIT} is for all types together.\n"
    )


def _families(report: Realism) -> str:
    head = (
        "features",
        "AUC",
        "AUC of golden passages",
        "marks of a distractor",
        "marks of another passage",
    )
    body = [
        (
            one.name if one.judged else f"{one.name} (not judged)",
            _interval(one.auc),
            "–" if one.golden is None else _interval(one.golden),
            _names(telling for telling in one.telling if telling.weight > 0),
            _names(telling for telling in one.telling if telling.weight < 0),
        )
        for one in report.families
    ]
    return _grid(head, body)


def _kinds(report: Realism) -> list[str]:
    if not report.kinds:
        return []
    body = [
        (one.name, str(one.n_distractors), _interval(one.length), _interval(one.style))
        for one in report.kinds
    ]
    return [_grid(("type", "distractors", "AUC of length", "AUC of style"), body)]


def _similarity(report: Realism) -> str:
    head = (
        "similarity to the question", "distractors", "5 hardest others", "all others",
        "reach the 10th percentile", "closer than another",
    )  # fmt: skip
    body = [
        (
            one.measure,
            *(f"{mean:.3f}" for mean in (one.distractors, one.hardest, one.others)),
            f"{100 * one.near:.1f} %",
            _interval(one.closer),
        )
        for one in report.similarities
    ]
    return _grid(head, body)


def _marks(report: Realism) -> str:
    body = [
        (one.name, f"{100 * one.distractors:.1f} %", f"{100 * one.others:.1f} %")
        for one in report.marks
        if one.distractors or one.others
    ]
    if not body:
        return "No passage bears a mark of text written to order.\n"
    return _grid(("mark of text written to order", "distractors", "others"), body)


def _names(found: Iterable[Telling]) -> str:
    return "; ".join(one.name.replace("|", "\\|") for one in list(found)[:_N_TELLING])


def _interval(one: Interval) -> str:
    return f"{one.mean:.3f} [{one.low:.3f}, {one.high:.3f}]"


def _grid(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    ruler = ["---"] * len(head)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (head, ruler, *body))
