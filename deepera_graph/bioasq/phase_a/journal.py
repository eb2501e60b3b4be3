"""What a search over a file of questions has found so far."""

from collections.abc import Sequence
from typing import Any

from deepera_graph.agents.journal import Journal
from deepera_graph.bioasq.phase_a.search import DocumentResult
from deepera_graph.bioasq.questions import Question, parse_question
from deepera_graph.bioasq.runs import RankedDocument
from deepera_graph.errors import SettingsError

DONE = ("ok", "nothing_retrieved")  # outcomes that another run would not better


class SearchJournal(Journal):
    """Holds of each question its rankings and what went wrong; if something did, it is not done."""

    def is_done(self, question: Question) -> bool:
        """Tell whether a question is there, as it stands now, and nothing went wrong.

        Raises:
            SettingsError: Another question has its id.
        """
        entry = self.entries.get(question.id)
        if entry is None:
            return False
        before = entry["question"]["body"]
        if before != question.body:
            raise SettingsError(
                f"question {question.id!r} is not the one that was searched for: {before!r:.80} "
                f"then, {question.body!r:.80} now"
            )
        return entry["outcome"] in DONE

    def add(self, result: DocumentResult, **more: Any) -> None:
        """Write what was found for a question, and *more*, plain data."""
        plain = result.to_dict()
        fields = ("question", "outcome", "problems", "usage", "runs")
        self.put(result.question.id, {**{name: plain[name] for name in fields}, **more})

    def question(self, asked: Question) -> Question:
        """Return a question with what was found for it; as it is, without answers, if nothing."""
        entry = self.entries.get(asked.id)
        if entry is None:
            return Question(id=asked.id, type=asked.type, body=asked.body)
        return parse_question({**entry["question"], "type": asked.type})

    def run(self, name: str, questions: Sequence[Question]) -> dict[str, list[RankedDocument]]:
        """Return one ranking of every question that has it, by its name in `DocumentResult.runs`.

        ``whole`` is the final one, followed by all others that were retrieved.
        """
        found = {
            one.id: self.entries[one.id]["runs"] for one in questions if one.id in self.entries
        }
        if name == "whole":
            return {one: _join(runs["final"], runs["judged"]) for one, runs in found.items()}
        return {one: [RankedDocument(*pair) for pair in runs[name]] for one, runs in found.items()}


def _join(first: Sequence[Any], rest: Sequence[Any]) -> list[RankedDocument]:
    """Return a ranking, then what another has beside it, with scores that only fall."""
    named = {pmid for pmid, _ in first}
    found = [RankedDocument(*pair) for pair in first]
    below = min((one.score for one in found), default=1.0)
    others = [pmid for pmid, _ in rest if pmid not in named]
    n = len(others)
    return [
        *found,
        *(RankedDocument(pmid, below - (place + 1) / n) for place, pmid in enumerate(others)),
    ]
