"""Who judges the papers that were found: marks, scores, and the sentence that says why.

A selector orders and marks. It takes out only what breaks a limit; a paper that it cannot judge
stays, marked as unjudged, at the place its searches gave it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from numpy.typing import NDArray

from deepera_graph.agents.twin import TwinRunnable, Work, call
from deepera_graph.errors import SettingsError
from deepera_graph.judges.adapters import IntentOnce
from deepera_graph.judges.base import as_judge
from deepera_graph.judges.trained.backend import local_model
from deepera_graph.papers.agent.limits import Limits, goes_by_words, says
from deepera_graph.papers.agent.roles import PaperRoles
from deepera_graph.papers.agent.state import PaperSeen, PaperVerdict, Selected, SelectTask
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.result import RankedPassage, RerankResult
from deepera_graph.schema import Backend
from deepera_graph.settings.ranges import suggest_value
from deepera_graph.settings.thresholds import OPERATING_POINT
from deepera_graph.text.words import looks_english, split_sentences, stems
from deepera_graph.usage import Usage

_ALL = 10**6
_ORDERS_ONLY = 0.0  # threshold of a judge whose scores are no shares of relevance: nothing falls
_Jobs = list[tuple[str, list[dict[str, Any]]]]


class EvidenceSelector(TwinRunnable[SelectTask, Selected]):
    """Scores papers by a reranker, and leaves out what its judge finds to break an exclusion.

    Papers fit from the reranker's threshold on, if one was set; else from .5 on with a judge of the
    scale of chat models, and with others (``local``) all do, and are only ordered. An exclusion is
    held against a paper from the judge's own threshold on, or where `select_by_vectors` does.
    """

    def __init__(self, judge: EvidenceReranker | Backend) -> None:
        given = judge if isinstance(judge, EvidenceReranker) else EvidenceReranker(judge)
        backend = given.backend
        once = replace(backend, intent=IntentOnce(backend.intent))
        plain = given.with_backend(once).with_settings(
            content="passage",
            top_n=_ALL,
            on_empty="empty",
            on_error="keep_last",
            answer=False,
            stop_after=None,
        )
        least = _ORDERS_ONLY
        if as_judge(backend.judge).operating_point == OPERATING_POINT:
            least = 0.5
        set_here = given.settings.threshold
        self._fitting = plain.with_settings(threshold=least if set_here is None else set_here)
        self._breaking = plain.with_settings(threshold=None)
        self.about = f"{backend.name}, threshold {least if set_here is None else set_here}"
        self.is_costly = as_judge(backend.judge).asks_model

    def work(self, task: SelectTask, config: RunnableConfig | None) -> Work[Selected]:
        """Judge papers."""
        fits, breaks = self._fitting, self._breaking
        out, fitting, breaking = _ask(task, config)
        fitted = yield call(fits.batch, fits.abatch, fitting, config=config)
        broken = yield call(breaks.batch, breaks.abatch, breaking, config=config)
        return _read(task, out, fitted, broken)


def _ask(
    task: SelectTask, config: RunnableConfig | None
) -> tuple[dict[str, PaperVerdict], _Jobs, _Jobs]:
    """Return what is out without a question, and the two kinds of questions about the rest."""
    limits = Limits.from_dict(task["limits"])
    marked = select_by_vectors(task, config).papers if limits.exclude else []
    out = {one.id: one for one in marked if one.against}
    rest = [one for one in task["papers"] if one["id"] not in out]
    if not rest:
        return out, [], []
    fitting = [(limits.topic, [_passage(one) for one in rest])]
    said = [{"id": one["id"], "text": words} for one in rest if (words := own_words(one))]
    return out, fitting, [(phrase, said) for phrase in limits.exclude] if said else []


def _passage(paper: PaperSeen) -> dict[str, Any]:
    """Return a paper as a passage; one without an abstract is read by its title."""
    title = {"title": paper["title"]} if paper["abstract"] else {}
    return {"id": paper["id"], "text": paper["abstract"] or paper["title"], "metadata": title}


def _read(
    task: SelectTask,
    out: Mapping[str, PaperVerdict],
    fitting: Sequence[RerankResult],
    breaking: Sequence[RerankResult],
) -> Selected:
    exclude = Limits.from_dict(task["limits"]).exclude
    scored = _by_id(fitting[0]) if fitting else {}
    against = [(phrase, _by_id(one)) for phrase, one in zip(exclude, breaking, strict=False)]
    verdicts, failures = [*out.values()], {}
    for id, one in scored.items():
        said = [(phrase, found[id]) for phrase, found in against if id in found]
        failed = next(
            (each for each in (one, *(two for _, two in said)) if each.score is None), None
        )
        broken = next(((phrase, two) for phrase, two in said if two.kept), None)
        if broken is not None:
            phrase, two = broken
            why = f"excluded: {phrase}; {two.reason}".rstrip("; ")
            verdicts.append(
                PaperVerdict(id=id, verdict="out", reason=why, quote=two.quote, against=phrase)
            )
        elif failed is not None:
            failures[id] = failed.reason
        else:
            verdicts.append(
                PaperVerdict(
                    id=id, score=one.score, fits=one.kept, reason=one.reason, quote=one.quote
                )
            )
    usage = sum((one.total_usage for one in (*fitting, *breaking)), Usage())
    return Selected(papers=verdicts, failures=failures, usage=usage)


def _by_id(result: RerankResult) -> dict[str, RankedPassage]:
    return {one.id: one for one in result.all_passages}


AGAINST = 0.40  # cosine of a sentence and an excluded phrase from which on the paper breaks it
DOUBTFUL, MOST_DOUBT = 0.25, 0.4  # below that cosine there is no doubt; what it takes at most
_DENIES = re.compile(
    r"\b(?:no|not|never|without|unlike|nor|neither|instead|rather than|free of|beyond|except"
    r"|avoid(?:s|ed|ing)?|cannot|lacks?)\b|n't\b",
    re.IGNORECASE,
)
_COMPARES = re.compile(
    r"\b(?:than|ahead of|above|below|versus|vs|compar\w*|outperform\w*|baselines?|stronger"
    r"|superior|inferior|difference)\b",
    re.IGNORECASE,
)
# cosine that the nearest sentence has with the topic, if a paper is on it, and how many sentences
# tell: of 332 answers to four sets of questions none is below .28
_ON_TOPIC, _TELLING = 0.2, 4
_READ_CHARS = 1200  # of title and abstract, where a whole paper is compared
Floats = NDArray[np.float32]


def select_by_vectors(task: SelectTask, config: RunnableConfig | None = None) -> Selected:
    """Mark by vectors of sentences: what is like an excluded phrase, and what answers best."""
    # A paper breaks an exclusion if a sentence that neither denies nor compares is as near to the
    # excluded phrase as `AGAINST`, or names it. One is out, too, if nothing in its abstract is near
    # the topic: searches find "conducted" for "conductivity". Scores are left to the searches.
    limits = Limits.from_dict(task["limits"])
    split = [_sentences(one) for one in task["papers"]]
    vectors = _embed([limits.topic, *limits.exclude, *(text for each in split for text in each)])
    asked, excluded = vectors[0], vectors[1 : 1 + len(limits.exclude)]
    least = _ON_TOPIC if looks_english(limits.topic) else -1.0
    verdicts, place = [], 1 + len(limits.exclude)
    for one, sentences in zip(task["papers"], split, strict=True):
        own = vectors[place : place + len(sentences)]
        place += len(sentences)
        nearness = [float(each) for each in own @ asked]
        verdicts.append(
            _against(one, sentences, own @ excluded.T, limits)
            or (_stray(one) if len(nearness) >= _TELLING and max(nearness) < least else None)
            or _why(one, sentences, nearness, own @ excluded.T)
        )
    return Selected(papers=verdicts, usage=Usage())


def select_by_words(task: SelectTask, config: RunnableConfig | None = None) -> Selected:
    """Mark by words alone: what names an excluded thing in a sentence that does not deny it."""
    limits = Limits.from_dict(task["limits"])
    asked = set(stems(limits.topic))
    verdicts = []
    for one in task["papers"]:
        sentences = _sentences(one)
        none = np.zeros((len(sentences), len(limits.exclude)), dtype=np.float32)
        nearness = [len(asked & set(stems(text))) / (len(asked) or 1) for text in sentences]
        verdicts.append(_against(one, sentences, none, limits) or _why(one, sentences, nearness))
    return Selected(papers=verdicts, usage=Usage())


def nearness_to_topic(papers: Sequence[PaperSeen], asked: Sequence[str]) -> list[float]:
    """Return of each paper the cosine with the nearest of some texts, in [-1, 1]."""
    texts = [f"{one['title']}. {one['abstract']}"[:_READ_CHARS] for one in papers]
    vectors = _embed([*asked, *texts])
    return [float(one) for one in (vectors[len(asked) :] @ vectors[: len(asked)].T).max(axis=1)]


def own_words(paper: PaperSeen) -> str:
    """Return the sentences in which a paper says what it does itself; empty if there are none."""
    return " ".join(one for one in _sentences(paper) if _counts(one))


def _against(
    paper: PaperSeen, sentences: Sequence[str], nearness: Floats, limits: Limits
) -> PaperVerdict | None:
    """Return the verdict on a paper that breaks an exclusion, the nearest sentence as its quote."""
    worst: tuple[float, str, str] | None = None
    for column, phrase in enumerate(limits.exclude):
        named = [says(text, phrase) for text in sentences]
        is_denied = False in named  # what else a paper says is then no other name of the thing
        for number, text in enumerate(sentences):
            found = float(named[number] or 0.0)
            by_words = is_denied or goes_by_words(text, phrase, limits.topic)
            if named[number] is None and not by_words and _counts(text):
                found = float(nearness[number, column])
            if found >= AGAINST and (worst is None or found > worst[0]):
                worst = (found, phrase, text)
    if worst is None:
        return None
    _, phrase, text = worst
    return PaperVerdict(
        id=paper["id"], verdict="out", reason=f"excluded: {phrase}", quote=text, against=phrase
    )


def _stray(paper: PaperSeen) -> PaperVerdict:
    return PaperVerdict(id=paper["id"], verdict="out", reason="nothing in it is near the topic")


def _why(
    paper: PaperSeen,
    sentences: Sequence[str],
    nearness: Sequence[float],
    to_excluded: Floats | None = None,
) -> PaperVerdict:
    best = max(range(len(sentences)), key=lambda place: (nearness[place], -place))
    said = "of the abstract" if best else "of the title"
    return PaperVerdict(
        id=paper["id"],
        reason=f"nearest to the question are these words {said}",
        quote=sentences[best],
        doubt=0.0 if to_excluded is None else _doubt(sentences, to_excluded),
    )


def _doubt(sentences: Sequence[str], nearness: Floats) -> float:
    """Return how much a paper below `AGAINST` may break an exclusion all the same."""
    counted = [row for text, row in zip(sentences, nearness, strict=True) if _counts(text)]
    worst = max((float(row.max()) for row in counted if row.size), default=0.0)
    share = (worst - DOUBTFUL) / (AGAINST - DOUBTFUL)
    return MOST_DOUBT * min(1.0, max(0.0, share))


def _counts(sentence: str) -> bool:
    """Whether a sentence says what a paper itself does: it neither denies nor compares."""
    return not _DENIES.search(sentence) and not _COMPARES.search(sentence)


def _sentences(paper: PaperSeen) -> list[str]:
    abstract = paper["abstract"]
    return [paper["title"], *(abstract[one.start : one.end] for one in split_sentences(abstract))]


def _embed(texts: Sequence[str]) -> Floats:
    """Return vectors of length 1, a row a text, of the local judge's encoder."""
    return np.asarray(local_model().embed(list(texts)), dtype=np.float32)


NAMES = ("deepera", "vectors", "rules", "llm")
_WITHOUT_SCORES = {"vectors": select_by_vectors, "rules": select_by_words}


class Selector(NamedTuple):
    """Who judges, and what the graph has to know of it before it asks.

    It is no `Judge`: it is given papers with the limits of a search, marks what breaks a limit, and
    may leave all scores to the searches. `EvidenceSelector` makes one of a judge.
    One that does not score is asked of few: it looks for what breaks a limit, and for a reason.
    """

    name: str  # ``deepera``, ``vectors``, ``rules``, ``llm``, or ``own``
    role: Runnable[SelectTask, Selected]
    scores: bool = True  # whether it says how well papers fit
    is_costly: bool = False  # whether judging a paper is a call of a model that somebody pays for
    about: str = ""  # what the manifest says of it


def make_selector(selector: Any, roles: PaperRoles | None) -> Selector:
    """Return a selector, see `PaperSearch`; None is the chat model, or ``vectors`` without one."""
    if selector is None:
        selector = "vectors" if roles is None else "llm"
    if selector == "deepera":
        selector = EvidenceReranker("local")
    if isinstance(selector, EvidenceReranker | Backend):
        made = EvidenceSelector(selector)
        return Selector("deepera", made, is_costly=made.is_costly, about=made.about)
    if isinstance(selector, str):
        return _find(selector, roles)
    if isinstance(selector, Runnable):
        return Selector("own", selector)
    if callable(selector):
        return Selector("own", RunnableLambda(selector))
    raise SettingsError(
        f"selector must be {', '.join(NAMES)}, an EvidenceReranker, a Backend, a function or a "
        f"runnable, got {selector!r:.80}"
    )


def _find(name: str, roles: PaperRoles | None) -> Selector:
    if name in _WITHOUT_SCORES:
        return Selector(name, RunnableLambda(_WITHOUT_SCORES[name]), scores=False)
    if name == "llm":
        if roles is None:
            raise SettingsError("selector 'llm' needs a chat model")
        return Selector(name, roles.judge, is_costly=True)
    if name == "local":
        raise SettingsError(
            "selector 'local' is called 'vectors' now, as it compares vectors of sentences; the "
            "local judge selects as 'deepera'"
        )
    raise SettingsError(
        f"selector must be one of {', '.join(NAMES)}, got {name!r}{suggest_value(name, NAMES)}"
    )
