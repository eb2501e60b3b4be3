"""What an agent reads: how the search went, and the numbered evidence."""

from deepera_graph import RankedPassage, RerankResult

_NOTHING = "Say that no evidence was found; do not answer from other knowledge."


def evidence_text(result: RerankResult) -> str:
    """Return an outcome line, then one numbered line a kept passage: ``[1] (id, score) summary``.

    Line breaks inside a passage become spaces, so that no passage can forge a line of its own.
    """
    lines = [_outcome_line(result)]
    if result.failed and result.dropped + result.kept:
        lines.append(
            f"{len(result.failed)} of {len(result.all_passages)} passages could not be judged "
            f"({_one_line(result.failed[0].reason)}), so evidence may have been missed."
        )
    if result.not_needed:
        lines.append(
            f"{len(result.not_needed)} of {len(result.all_passages)} passages were not read, as "
            "there was enough evidence without them."
        )
    lines += [_evidence_line(number, one) for number, one in enumerate(result.kept, start=1)]
    return "\n".join(lines)


def _outcome_line(result: RerankResult) -> str:
    n, cut = len(result.all_passages), f"threshold {result.threshold:.2f}"
    if not n:
        return f"The search found no passages for this question. {_NOTHING}"
    if result.kept and result.fallback is not None:
        return f"No passage gives direct evidence ({cut}). The nearest of {n} are weak evidence:"
    if result.kept:
        return f"{len(result.kept)} of {n} passages give direct evidence ({cut}):"
    best = max((one.score for one in result.dropped if one.score is not None), default=None)
    rejected = "" if best is None else f"; best rejected score {best:.2f}"
    return f"No passage of {n} gives direct evidence ({cut}{rejected}). {_NOTHING}"


def _evidence_line(number: int, one: RankedPassage) -> str:
    text = _one_line(one.summary or one.text)
    return f"[{number}] ({_one_line(one.id)}, score {one.score:.2f}) {text}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
