"""QA generation II: questions that need the methods, results and significance of a document."""

from collections.abc import Sequence

from deepera_graph.backends.llm import show
from deepera_graph.bench.build.ask import Asker
from deepera_graph.bench.build.corpus import Chunk
from deepera_graph.bench.build.document import Document
from deepera_graph.bench.build.fillings import FilledNotes, FilledPairs
from deepera_graph.bench.build.lmqg import SPARE
from deepera_graph.bench.build.overlap import containment
from deepera_graph.bench.build.pairs import NoPairsError, Pair
from deepera_graph.bench.build.prompts import PACKAGE
from deepera_graph.prompts import messages_of

EXTRACT = "extract"


class GuidedGenerator:
    """Takes notes on a document, and asks for pairs from the chunk that has its results.

    Args:
        asker: The model.
        n: Pairs needed of a document, >= 1.

    Source:
        DeepEra, section 6.2 and Fig. 10.
    """

    name = "guided"

    def __init__(self, asker: Asker, *, n: int = 1) -> None:
        self._asker, self._n = asker, n + SPARE

    def about(self) -> dict[str, str]:
        """Return its name."""
        return {"name": self.name}

    async def pairs(self, document: Document, chunks: Sequence[Chunk]) -> list[Pair]:
        """Return pairs from one chunk.

        Raises:
            NoPairsError: The notes hold no results.
            AnswerError: A reply is unusable.
            CallError: A call failed.
        """
        notes = await self._notes(document)
        chunk = max(chunks, key=lambda one: containment(notes.results, one.text))
        source = show.plain(
            f"Notes on methods: {show.one_line(notes.methods)}\n"
            f"Notes on results: {show.one_line(notes.results)}\n"
            f"Notes on significance: {show.one_line(notes.significance)}\n\n"
            f"Passage:\n{chunk.text}"
        )
        messages = messages_of(
            PACKAGE, "guided", n=str(self._n), source=source, marker=show.marker(source)
        )
        filled = await self._asker.ask(self.name, messages, FilledPairs)
        return [Pair(one.question.strip(), one.answer.strip(), chunk) for one in filled.pairs]

    async def _notes(self, document: Document) -> FilledNotes:
        shown = f"Title: {show.one_line(document.title)}\n\n{show.plain(document.text)}"
        messages = messages_of(PACKAGE, "extract", document=shown, marker=show.marker(shown))
        notes = await self._asker.ask(EXTRACT, messages, FilledNotes)
        if not notes.results.strip():
            raise NoPairsError("no-results", "the notes hold no results")
        return notes
