"""What is chosen: documents, by the local judge or as a chat model sorts them; and their snippets.

A snippet is a sentence of an abstract, or of a title, word for word. It begins and ends in one
section; its end is the offset just past its last character, as in BioASQ's own files.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple, Unpack

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import Field
from typing_extensions import TypedDict

from deepera_graph.agents.role import LlmRole
from deepera_graph.bioasq.questions import Snippet, document_url
from deepera_graph.bioasq.settings import MAX_SNIPPETS, check_n_snippets
from deepera_graph.chat.client import request_reply
from deepera_graph.chat.parsing import ReplyModel, sanitize_line, schemas_hash
from deepera_graph.errors import AnswerError, CallError, DeepEraError
from deepera_graph.judges.cross_encoder.models import with_title
from deepera_graph.judges.llm import prompt as show
from deepera_graph.judges.llm.backend import LlmKwargs, open_roles_model
from deepera_graph.judges.llm.listwise import FilledOrder, fill_listwise, read_order
from deepera_graph.judges.trained.backend import TrainedJudge, Weights
from deepera_graph.judges.trained.reading.vectors import Alignment
from deepera_graph.pipeline.intent import UNKNOWN
from deepera_graph.prompts import messages_of
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.schema import Backend, RoleAnswer, RoleSet, Window
from deepera_graph.text.words import split_sentences

Align = Callable[[str, Sequence[Window]], Sequence[Alignment]]
_LEAST = 1e-4  # of a probability: scores have four digits


class OrderWeights(NamedTuple):
    """What each part of the value of a document weighs beside the log odds of evidence."""

    first: float  # of the first stage's score, the best of a question being 1
    passage: float  # of the parts of an `Alignment`
    sentences: float
    title: float


# What `python benchmarks/bioasq/phase_a.py` fits on the 505 claims of SciFact train, rounded: a
# pairwise logistic regression over first stage and alignment gives 60, 100, 25 and 21. They are
# scaled so that log odds count little beside them, as the judge was trained on some of the same
# claims; half or twice as much changes the MAP by less than 0.002.
WEIGHTS = OrderWeights(first=60.0, passage=100.0, sentences=30.0, title=30.0)
BEHIND = (
    0.3  # of the closeness that a document lacks, beside the weights of sentences; fitted there
)


def value_of(probability: float, first: float, found: Alignment) -> float:
    """Return what a document is ordered by: probability, first score and nearness."""
    return logit(probability) + WEIGHTS.first * first + closeness_of(found)


def closeness_of(found: Alignment) -> float:
    """Return how closely a document follows a question, as it counts beside log odds."""
    return (
        WEIGHTS.passage * found.passage
        + WEIGHTS.sentences * found.sentences
        + WEIGHTS.title * found.title
    )


def logit(probability: float) -> float:
    """Return log odds, of a probability held within [0.0001, 0.9999]."""
    held = min(max(probability, _LEAST), 1 - _LEAST)
    return math.log(held / (1 - held))


def find_local_judge(judge: EvidenceReranker) -> TrainedJudge | None:
    """Return the trained judge of a reranker, if that is who judges."""
    found = judge.backend.judge
    return found if isinstance(found, TrainedJudge) else None


def align_with(judge: TrainedJudge) -> Align:
    """Return what aligns documents with the encoder of a judge, which has encoded them already."""

    def align(question: str, windows: Sequence[Window]) -> list[Alignment]:
        with _loading():
            return judge.model.align(question, windows)

    return align


@contextmanager
def _loading() -> Iterator[None]:
    """Have the first use of a judge that cannot be loaded fail as a call does."""
    try:
        yield
    except (DeepEraError, ImportError, OSError) as error:
        raise CallError(f"the local judge cannot be loaded: {error}") from error


def weigh_with(judge: TrainedJudge) -> Callable[[str, Sequence[Window]], list[list[float]]]:
    """Return what weighs sentences with a judge: its trees for sentences, its reader, alignment."""
    # How far a document is behind the one that follows the question best counts against its
    # sentences, whoever ordered the documents.

    def weigh(question: str, windows: Sequence[Window]) -> list[list[float]]:
        with _loading():
            found = judge.model.weigh_sentences(question, UNKNOWN, windows)
            aligned = judge.model.align(question, windows)
        close = [closeness_of(one) for one in aligned]
        best = max(close, default=0.0)
        return [
            [weight - BEHIND * (best - own) for weight in weights]
            for weights, own in zip(found, close, strict=True)
        ]

    return weigh


PROMPTS = "deepera_graph.bioasq.prompts"
MOST_WORDS = 60  # of a query, twice what is asked for: a reply beyond is no query


class SortTask(TypedDict):
    """What the sorter is given: documents, best first as far as is known."""

    question: str
    passages: list[Window]


class Order(RoleAnswer):
    """An order of all documents, and what of it had to be mended."""

    order: list[int] = Field(description="Numbers from 1, each once, the most relevant first.")
    n_missing: int = Field(default=0, ge=0, description="Not named; they come last, as before.")
    n_repeated: int = Field(default=0, ge=0, description="Named again; the first place counts.")
    n_invented: int = Field(default=0, ge=0, description="Numbers of no document; left out.")

    @property
    def mended(self) -> str:
        """What was wrong, in words; empty if nothing was."""
        counts = {
            "not named": self.n_missing,
            "named again": self.n_repeated,
            "invented": self.n_invented,
        }
        return ", ".join(f"{n} {what}" for what, n in counts.items() if n)


class RewriteQueryTask(TypedDict):
    """What the rewriter is given."""

    question: str


class Query(RoleAnswer):
    """A query for a search engine."""

    text: str = Field(min_length=1, description="Names and their synonyms, in one line.")


class QueryReply(ReplyModel):
    """A query."""

    query: str = Field(description="The query, in one line, at most 30 words.")


class LlmSorter(LlmRole[SortTask, Order]):
    """Sorts documents in one prompt (BioASQ 13b: the best 30 of a cross-encoder)."""

    async def _play(self, task: SortTask, config: RunnableConfig | None) -> Order:
        messages = fill_listwise(task["question"], task["passages"])
        reply, notes = await request_reply(self.model, messages, FilledOrder, config)
        read = read_order(reply.order, len(task["passages"]))
        if read.names_none:
            n = len(reply.order)
            problem = f"the reply names none of the documents, of {n} numbers"
            raise AnswerError(problem, usage=notes["usage"])
        return Order(**read._asdict(), **notes)


class LlmQueryRewriter(LlmRole[RewriteQueryTask, Query]):
    """Puts a question into the words of a search engine."""

    async def _play(self, task: RewriteQueryTask, config: RunnableConfig | None) -> Query:
        messages = _fill_rewrite(task["question"])
        reply, notes = await request_reply(self.model, messages, QueryReply, config)
        text = sanitize_line(reply.query)
        if not text or len(text.split()) > MOST_WORDS:
            n = len(text.split())
            raise AnswerError(f"the reply is no query, of {n} words", usage=notes["usage"])
        return Query(text=text, **notes)


def _fill_rewrite(question: str) -> list[BaseMessage]:
    line = show.one_line(question)
    return messages_of(PROMPTS, "rewrite", question=line, marker=show.marker(line))


@dataclass(frozen=True, kw_only=True)
class SearchRoles(RoleSet):
    """What a chat model does in a search; `dataclasses.replace` puts a function in its place."""

    sorter: Runnable[SortTask, Order]  # sorts the best documents
    rewriter: Runnable[RewriteQueryTask, Query]  # rewrites the question


def search_roles(
    model: Backend | BaseChatModel | str, **how_to_ask: Unpack[LlmKwargs]
) -> SearchRoles:
    """Have a chat model sort documents and rewrite questions; asked as `llm_backend` says."""
    needed = "documents are sorted by a chat model, and backend {name} has none"
    opened = open_roles_model(model, needed=needed, **how_to_ask)
    return SearchRoles(
        name="llm",
        sorter=LlmSorter(opened.chat),
        rewriter=LlmQueryRewriter(opened.chat),
        about={
            "model": opened.chat.name,
            "prompts": _hash_prompts(),
            "schemas": schemas_hash((FilledOrder, QueryReply)),
        },
        spec=opened.spec,
    )


def _hash_prompts() -> str:
    """Return 12 hex digits that change when what the roles show changes."""
    window: Window = {"text": "$text", "title": "$title", "section": ""}
    shown = [*fill_listwise("$question", [window]), *_fill_rewrite("$question")]
    return sha256("\0".join(str(one.content) for one in shown).encode()).hexdigest()[:12]


TITLE, ABSTRACT = "title", "abstract"


class FoundDocument(NamedTuple):
    """A document that was found; title and abstract as they are indexed, maybe empty."""

    pmid: str  # or the document's id in another corpus, see `read_pmid`
    title: str
    abstract: str

    @property
    def passage(self) -> str:
        """What a cross-encoder reads, the same in training and when it judges."""
        return with_title(self.title, self.abstract)

    def window(self) -> Window:
        """Return it as a judge sees it."""
        return {"text": self.abstract, "title": self.title, "section": ""}


class Piece(NamedTuple):
    """A sentence of a document, and how likely it is a snippet."""

    snippet: Snippet
    probability: float  # in [0, 1]


# How well each sentence of each window answers a question, log odds but for a scale; the sentences
# are those of `split_sentences`.
WeighSentences = Callable[[str, Sequence[Window]], Sequence[Sequence[float]]]


def weigh_locally(question: str, windows: Sequence[Window]) -> list[list[float]]:
    """Weigh sentences with the local judge that comes with the package."""
    return weigh_with(TrainedJudge(Weights()))(question, windows)


def weigh_as(judge: EvidenceReranker | None) -> WeighSentences:
    """Weigh sentences as a local judge does; as the package's own if another judges."""
    local = None if judge is None else find_local_judge(judge)
    return weigh_locally if local is None else weigh_with(local)


# A logistic regression, fitted on the 505 claims of SciFact train, which have 2 golden sentences
# each, by `python benchmarks/bioasq/phase_a.py`.
WEIGHT, START = 0.86, -1.5


def list_pieces(
    question: str,  # what is asked
    documents: Sequence[FoundDocument],  # best first
    *,
    weigh: WeighSentences = weigh_locally,  # says how well sentences answer
) -> list[Piece]:
    """Return every sentence of the abstracts, likeliest first, ties in the order of documents."""
    # A document without an abstract, which has nothing but its title, has the title.
    # Raises `ValueError` if *weigh* gives another number of weights than there are sentences.
    windows = [_window(one) for one in documents]
    weights = weigh(question, windows)
    pieces: list[Piece] = []
    for document, window, found in zip(documents, windows, weights, strict=True):
        section = ABSTRACT if document.abstract.strip() else TITLE
        for sentence, weight in zip(split_sentences(window["text"]), found, strict=True):
            snippet = Snippet(
                document=document_url(document.pmid),
                text=sentence.text,
                begin_section=section,
                begin=sentence.start,
                end_section=section,
                end=sentence.end,
            )
            pieces.append(Piece(snippet, _logistic(WEIGHT * weight + START)))
    return sorted(pieces, key=lambda one: -one.probability)


def choose_snippets(pieces: Iterable[Piece], *, n: int | None = None) -> list[Piece]:
    """Return the likeliest *n* of pieces in that order, 0 to 10; fewer if there are fewer."""
    # None gives as many as have the highest expected F1, at least one, so that precision is not
    # given away where one or two sentences answer.
    # Source: Lipton, Elkan and Naryanaswamy (2014), Optimal Thresholding of Classifiers to Maximize
    # F1 Measure, section 4; the expectation of the ratio is taken as the ratio of expectations,
    # 2 sum(p of those given) / (their number + sum(p of all)).
    every = list(pieces)
    if n is not None:
        check_n_snippets("n_snippets", n)
        return every[:n]
    total, given, best, n_best = sum(one.probability for one in every), 0.0, 0.0, 0
    for number, one in enumerate(every[:MAX_SNIPPETS], start=1):
        given += one.probability
        expected = 2 * given / (number + total)
        if expected > best:
            best, n_best = expected, number
    return every[: max(1, n_best)]


def _window(document: FoundDocument) -> Window:
    if document.abstract.strip():
        return document.window()
    return {"text": document.title, "title": "", "section": ""}


def _logistic(value: float) -> float:
    return 1 / (1 + math.exp(-max(-700.0, min(700.0, value))))
