"""QA generation I: questions from one passage, by a chat model, in the form LMQG gives them."""

from collections.abc import Sequence
from random import Random

from deepera_graph.backends.llm import show
from deepera_graph.bench.build.ask import Asker
from deepera_graph.bench.build.corpus import Chunk
from deepera_graph.bench.build.document import Document
from deepera_graph.bench.build.fillings import FilledPairs
from deepera_graph.bench.build.pairs import Pair
from deepera_graph.bench.build.prompts import PACKAGE
from deepera_graph.prompts import messages_of

SPARE = 2  # pairs asked for beyond those needed, as some cannot be used


class PassageGenerator:
    """Asks for pairs from one chunk of a document, chosen at random.

    Args:
        asker: The model.
        n: Pairs needed of a document, >= 1.
        seed: Of the choice.

    Source:
        Ushio, Alva-Manchego and Camacho-Collados (2023), An empirical comparison of LM-based
        question and answer generation methods: the form [(question, answer)] of a paragraph.
    """

    name = "lmqg"

    def __init__(self, asker: Asker, *, n: int = 1, seed: int = 0) -> None:
        self._asker, self._n, self._seed = asker, n + SPARE, seed

    def about(self) -> dict[str, str]:
        """Return its name."""
        return {"name": self.name}

    async def pairs(self, document: Document, chunks: Sequence[Chunk]) -> list[Pair]:
        """Return pairs from one chunk."""
        chunk = Random(f"{self._seed} {self.name} {document.id}").choice(chunks)
        shown = show.plain(chunk.text)
        messages = messages_of(
            PACKAGE, "lmqg", n=str(self._n), passage=shown, marker=show.marker(shown)
        )
        filled = await self._asker.ask(self.name, messages, FilledPairs)
        return [Pair(one.question.strip(), one.answer.strip(), chunk) for one in filled.pairs]
