"""What rankers that ask a chat model have in common."""

from collections.abc import Sequence

from deepera_graph.bench.chat import Chat
from deepera_graph.bench.rankers.ranker import Job, Passage, Problems, Ranking
from deepera_graph.usage import Usage

EXAMPLE = Passage(id="1", text="$text", title="$title", section="$section")


class ChatRanker:
    """Ranks with a chat model, many questions at once; what fails is noted in `problems`.

    Args:
        chat: The model.
        name: What the table calls it.
    """

    def __init__(self, chat: Chat, name: str) -> None:
        self.name = name
        self.problems = Problems()
        self._chat = chat

    @property
    def usage(self) -> Usage:
        """Model calls and tokens so far."""
        return self._chat.usage

    def rank(self, question: str, passages: Sequence[Passage]) -> Ranking:
        """Return all passages, best first.

        Raises:
            BackendError: No call can succeed.
            BudgetError: The budget is spent.
        """
        return self.rank_many([(question, passages)])[0]

    def rank_many(self, jobs: Sequence[Job]) -> list[Ranking]:
        """Do what `rank` does for many questions at once."""
        raise NotImplementedError
