"""What a search over a file of questions has done so far, so that it can go on where it stopped."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from deepera_graph.bioasq.questions import Question, parse_question
from deepera_graph.bioasq.runs import RankedDocument
from deepera_graph.bioasq.search import DocumentResult
from deepera_graph.errors import InputError, SettingsError
from deepera_graph.jobs.files import find_differences
from deepera_graph.text.jsonl import parse_object, read_raw_lines

FORMAT = 1
DONE = ("ok", "nothing_retrieved")  # outcomes that another run would not better
Entry = dict[str, Any]


class Journal:
    """The file beside a submission that holds what was found for each question; only added to.

    Its first line says who searched, and each other line has a question, its rankings, and what
    went wrong. A question whose line says that something did is searched for again on a resume.
    """

    def __init__(self, path: Path, ran: Mapping[str, Any]) -> None:
        self.path = path
        self._ran: dict[str, Any] = json.loads(json.dumps(ran, default=str))
        self.entries: dict[str, Entry] = {}
        self._file: IO[bytes] | None = None

    @contextmanager
    def open(self, *, resume: bool) -> Iterator["Journal"]:
        """Open it for adding, anew or with what it holds.

        Raises:
            SettingsError: It is to be resumed, and was made by another search.
        """
        end = self._load() if resume and self.path.exists() else 0
        with self.path.open("r+b" if end else "wb") as file:
            file.truncate(end)
            file.seek(end)
            self._file = file
            if not end:
                self._write({"format": FORMAT, "ran": self._ran})
            yield self
        self._file = None

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

    def add(self, result: DocumentResult) -> None:
        """Write what was found, and hand it over to the system."""
        plain = result.to_dict()
        entry = {name: plain[name] for name in ("question", "outcome", "problems", "usage", "runs")}
        self.entries[result.question.id] = entry
        self._write(entry)

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

    def _load(self) -> int:
        """Read what is there; return where its last whole line ends."""
        end = 0
        with self.path.open("rb") as file:
            for line in read_raw_lines(file):
                if not line.text.endswith(b"\n"):
                    break  # torn when the process was killed
                try:
                    self._take(parse_object(line.text), is_first=end == 0)
                except (InputError, KeyError, TypeError) as error:
                    place = f"{str(self.path)!r}, line {line.number}"
                    raise SettingsError(f"{place} cannot be read: {error}") from error
                end = line.end
        return end

    def _take(self, fields: Entry, *, is_first: bool) -> None:
        if not is_first:
            self.entries[fields["question"]["id"]] = fields
            return
        if fields["format"] != FORMAT:
            raise InputError(f"it is of format {fields['format']!r}")
        if found := find_differences(fields["ran"], self._ran):
            raise SettingsError(f"{str(self.path)!r} cannot be continued: {'; '.join(found)}")

    def _write(self, fields: Entry) -> None:
        assert self._file is not None
        text = json.dumps(fields, ensure_ascii=False, allow_nan=False)
        self._file.write(text.encode("utf-8", "backslashreplace") + b"\n")
        self._file.flush()


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
