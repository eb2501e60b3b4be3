"""What one passage, and each of its sentences, shows for one question, in numbers."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any, NamedTuple, Self

import numpy as np

from deepera_graph.judges.heuristic.analysis import RuleFeatures, analyze_passage
from deepera_graph.judges.trained.reading.vectors import (
    Doubles,
    Encoded,
    Floats,
    TokenSpan,
    pairwise_dot,
    sigmoid,
    without_marks,
)
from deepera_graph.judges.trained.trees import Trees
from deepera_graph.schema import PassageTask
from deepera_graph.text.questions import looks_like_claim
from deepera_graph.text.words import MOST_SENTENCES, held, split_sentences

_FOUND = 0.6  # a question token has its counterpart from this cosine on


class PassageFeatures(NamedTuple):
    """One passage in numbers.

    "Match" is late interaction (ColBERT, Khattab and Zaharia 2020, section 3): each question token
    takes the passage token most like it. "Role" is the log odds that a text reports results.
    """

    cosine: float  # of question and passage
    match: float  # mean over the question's tokens of the best cosine with a passage token
    match_least: float  # the same for the question token that is matched worst
    match_least3: float  # mean of the three matched worst
    found: float  # share of the question's tokens matched at 0.6 or better
    sentence_cosine: float  # of question and the sentence closest to it
    sentence_cosine_mean: float  # mean over the sentences
    first_cosine: float  # of question and first sentence
    last_cosine: float  # of question and last sentence
    sentence_match: float  # match of the sentence that is matched best
    sentence_match_mean: float  # mean over the sentences
    length: float  # natural logarithm of the number of characters
    n_sentences: float  # number of sentences
    grounding: float  # mean grounding of the sentences, by the rules
    grounding_spread: float  # its standard deviation
    # strength, grounded_coverage, grounded_strength, opening, closing, peak, names: those of the
    # rules judge
    strength: float
    grounded_coverage: float
    grounded_strength: float
    opening: float
    closing: float
    peak: float
    names: float
    is_question: float  # 1 for a question, 0 for a claim
    question_length: float  # number of the question's tokens
    role: float  # of the passage
    # role_best, role_mean, role_first, role_last: of its sentences
    role_best: float
    role_mean: float
    role_first: float
    role_last: float
    # role_of_match, role_of_cosine: of the sentence with the best match, and cosine
    role_of_match: float
    role_of_cosine: float
    # result_cosine, result_match: best product of a sentence's cosine or match and the
    # probability that it reports results
    result_cosine: float
    result_match: float


@dataclass(frozen=True, slots=True)
class PassageVectors:
    """A passage, whatever the question."""

    # vectors of its tokens, of length 1, shape (n_tokens, n_dimensions): those of the text, and
    # after them those of the title
    tokens: Floats
    vector: Floats  # of title and text, of length 1, shape (n_dimensions,)
    body: Floats  # of the text alone
    n_in_text: int  # number of the text's tokens
    spans: Sequence[TokenSpan]  # which of them each sentence has
    sentences: Floats  # vectors of its sentences, of length 1, shape (n_sentences, n_dimensions)


@dataclass(frozen=True, slots=True)
class PassageMatch:
    """A passage for one question, but for what the results classifier says."""

    plain: tuple[float, ...]  # the features before `role`, shape (n_plain,)
    # vector, body, sentences: see `PassageVectors`
    vector: Floats
    body: Floats
    sentences: Floats
    cosines: Floats  # of question and each sentence, shape (n_sentences,)
    # how well each sentence matches each token of the question, shape (n_sentences, n_asked)
    tokens: Floats

    @property
    def matches(self) -> Floats:
        """Match of each sentence, shape (n_sentences,)."""
        return np.asarray(self.tokens.mean(axis=1), np.float32)


@dataclass(frozen=True, slots=True)
class PassageReading:
    """A passage as read for a question."""

    features: PassageFeatures
    vector: Floats  # of title and text, of length 1, shape (n_dimensions,)
    tokens: Floats  # see `PassageMatch`


@dataclass(frozen=True, slots=True)
class ResultsClassifier:
    """Tells sentences and passages that report results: two logistic regressions on unit vectors.

    Weights are of shape (n_dimensions,); each start is added.
    """

    passage: Doubles
    passage_start: float
    sentence: Doubles
    sentence_start: float

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Return the model that `to_dict` gave."""
        return cls(
            passage=np.array(plain["passage"], np.float64),
            passage_start=float(plain["passage_start"]),
            sentence=np.array(plain["sentence"], np.float64),
            sentence_start=float(plain["sentence_start"]),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the model as lists and numbers."""
        return {
            "passage": self.passage.tolist(),
            "passage_start": self.passage_start,
            "sentence": self.sentence.tolist(),
            "sentence_start": self.sentence_start,
        }

    def predict_passages(self, vectors: Floats) -> Doubles:
        """Return the log odds of each passage; *vectors* have the shape (n, n_dimensions)."""
        return np.asarray(vectors @ self.passage + self.passage_start, np.float64)

    def predict_sentences(self, vectors: Floats) -> Doubles:
        """Return the log odds of each sentence; *vectors* have the shape (n, n_dimensions)."""
        return np.asarray(vectors @ self.sentence + self.sentence_start, np.float64)


def join_title(title: str, text: str) -> str:
    """Return a passage as one text."""
    return f"{title}. {text}" if title else text


def vectorize_passage(text: str, body: Encoded, title: Encoded | None = None) -> PassageVectors:
    """Find the sentences of a text that is not blank, encoded as *body*.

    Title and text are encoded apart: whether a text reports results is read off its vectors, and
    a title that the encoder saw beside it would hide that.
    """
    parts = body.find_parts(tuple((one.start, one.end) for one in split_sentences(text)))
    if title is None:
        tokens, vector = body.units, body.mean
    else:
        tokens = np.concatenate([body.units, title.units[1:-1]])
        vector = body.join(title)
    return PassageVectors(
        tokens=tokens,
        vector=vector,
        body=body.mean,
        n_in_text=len(body.tokens),
        spans=parts.spans,
        sentences=parts.units,
    )


def match_passage(question: Encoded, task: PassageTask, passage: PassageVectors) -> PassageMatch:
    """Compare the passage of a task, whose text is not blank, with its question."""
    asked = without_marks(question.units)
    similarity = pairwise_dot(asked, passage.tokens)
    matched = similarity.max(axis=1)
    worst = np.sort(matched)
    cosines = pairwise_dot(passage.sentences, question.mean[None])[:, 0]
    in_text = similarity[:, : passage.n_in_text]
    best = np.stack([in_text[:, span].max(axis=1) for span in passage.spans])
    matches = best.mean(axis=1)
    by_rules = analyze_passage(task)
    grounding = np.array(
        [one.grounding for one in by_rules.readings] if by_rules else [0], np.float32
    )
    plain = (
        float(pairwise_dot(question.mean[None], passage.vector[None])[0, 0]),
        _mean(matched),
        float(worst[0]),
        _mean(worst[:3]),
        float(np.count_nonzero(matched > _FOUND) / len(matched)),
        float(cosines.max()),
        _mean(cosines),
        float(cosines[0]),
        float(cosines[-1]),
        float(matches.max()),
        _mean(matches),
        log(max(len(join_title(task["title"], task["text"])), 1)),
        float(len(passage.spans)),
        _mean(grounding),
        float(grounding.std()),
        *(by_rules.features if by_rules else (0.0,) * len(RuleFeatures._fields)),
        0.0 if looks_like_claim(task["question"]) else 1.0,
        float(len(asked)),
    )
    return PassageMatch(plain, passage.vector, passage.body, passage.sentences, cosines, best)


def complete_features(match: PassageMatch, classifier: ResultsClassifier) -> PassageReading:
    """Add what the results classifier says."""
    roles = classifier.predict_sentences(match.sentences)
    results = sigmoid(roles)
    matches = match.matches
    evidence = matches * results
    by_role = (
        float(classifier.predict_passages(match.body[None])[0]),
        float(roles.max()),
        _mean(roles),
        float(roles[0]),
        float(roles[-1]),
        float(roles[matches.argmax()]),
        float(roles[match.cosines.argmax()]),
        float((match.cosines * results).max()),
        float(evidence.max()),
    )
    features = PassageFeatures._make((*match.plain, *by_role))
    return PassageReading(features, match.vector, match.tokens)


def _mean(values: Floats | Doubles) -> float:
    """Return what `values.mean()` does, in a third of its time."""
    return float(np.add.reduce(values) / len(values))


SENTENCE_FEATURES = (
    "cosine", "match", "cosine_behind", "match_behind", "shared", "shared_behind", "role",
    "results", "role_behind", "place", "last", "first", "length", "aim", "finding",
    "cosine_results", "match_results",
)  # fmt: skip
READER_WEIGHT = 0.5  # of the reader's log odds beside what the trees say
_WORD = re.compile(r"[a-z0-9]+")
_STEM = 6  # characters of a word that count
# function words and forms of asking
_STOP = frozenset("""
a an and are as at be been between by can could did do does for from had has have how in into is it
its may no not of on or our should than that the their there these those this to was we were what
when which who whom whose why with would
""".split())  # fmt: skip  # noqa: SIM905
_AIM = re.compile(
    r"\b(?:aim|objective|we investigat|to determine|to examine|to assess|whether|remain|unknown|"
    r"unclear|we (?:asked|test|study|studied))\b",
    re.IGNORECASE,
)
_FINDING = re.compile(
    r"\b(?:conclu|we (?:find|found|show|demonstrat|report|observ)|suggest|here,? we|"
    r"results? (?:show|indicat|demonstrat)|(?:these|our) (?:results|findings|data))",
    re.IGNORECASE,
)


class Sentences(NamedTuple):
    """The sentences of a passage that is compared with the question."""

    texts: Sequence[str]
    match: PassageMatch
    read: Doubles | None = None  # the reader's log odds of each, if it has read the passage

    @property
    def can_be_weighed(self) -> bool:
        """Whether there are any, and they are those that were matched."""
        return 0 < len(self.texts) == len(self.match.cosines)


class _Cues(NamedTuple):
    """What a sentence shows, whatever the question."""

    stems: frozenset[str]
    length: float  # number of characters, and one
    aims: bool  # whether it has words of an aim
    finds: bool  # whether it has words of a finding


def compute_sentence_features(
    question: str, sentences: Sequence[str], match: PassageMatch, classifier: ResultsClassifier
) -> Doubles:
    """Return what tells the sentence that answers from the others, shape (n_sentences, n_features).

    The columns are `SENTENCE_FEATURES`; "behind" is how far it is below the best of the passage.
    """
    return _compute_features(question, [Sentences(sentences, match)], classifier)


def _compute_features(
    question: str, passages: Sequence[Sentences], classifier: ResultsClassifier
) -> Doubles:
    """Return the features of the sentences of passages, one passage after the other."""
    sizes = np.array([len(one.texts) for one in passages])
    starts = np.cumsum(sizes) - sizes

    def behind(values: Doubles) -> Doubles:
        best = np.maximum.reduceat(values, starts)
        return np.asarray(values - np.repeat(best, sizes), np.float64)

    cosine = np.concatenate([one.match.cosines for one in passages]).astype(np.float64)
    matched = np.concatenate([one.match.matches for one in passages]).astype(np.float64)
    role = np.concatenate([classifier.predict_sentences(one.match.sentences) for one in passages])
    results = sigmoid(role)
    asked = _read_cues(question).stems
    cues = [_read_cues(text) for one in passages for text in one.texts]
    shared = np.array([len(asked & one.stems) / max(1, len(asked)) for one in cues])
    number = np.arange(len(cues)) - np.repeat(starts, sizes)
    place = number / np.repeat(np.maximum(1, sizes - 1), sizes)
    columns = (
        cosine, matched, behind(cosine), behind(matched),
        shared, behind(shared), role, results, behind(role),
        place, place == 1, number == 0, np.log([one.length for one in cues]),
        [one.aims for one in cues], [one.finds for one in cues],
        cosine * results, matched * results,
    )  # fmt: skip
    return np.array(columns, np.float64).T


def weigh_sentences(
    question: str, passages: Sequence[Sentences], classifier: ResultsClassifier, trees: Trees
) -> list[Doubles]:
    """Return how well each sentence of each passage answers, log odds but for a scale.

    All of a question's passages are weighed at once. Zeros where the sentences are not those that
    were matched.
    """
    weighed = [np.zeros(len(one.texts)) for one in passages]
    known = [place for place, one in enumerate(passages) if one.can_be_weighed]
    if not known:
        return weighed
    rows = _compute_features(question, [passages[place] for place in known], classifier)
    ends = np.cumsum([len(weighed[place]) for place in known])
    for place, found in zip(known, np.split(trees.predict(rows), ends[:-1]), strict=True):
        read = passages[place].read
        is_read = read is not None and len(read) == len(found)
        weighed[place] = found + READER_WEIGHT * np.asarray(read) if is_read else found
    return weighed


def choose_sentences(
    question: str, passages: Sequence[Sentences], classifier: ResultsClassifier, trees: Trees
) -> list[int]:
    """Return the place of the sentence of each passage that answers best; see `weigh_sentences`."""
    chosen = [0] * len(passages)
    several = [place for place, one in enumerate(passages) if len(one.texts) > 1]
    weighed = weigh_sentences(question, [passages[place] for place in several], classifier, trees)
    for place, found in zip(several, weighed, strict=True):
        chosen[place] = int(found.argmax())
    return chosen


def choose_sentence(
    question: str,
    sentences: Sequence[str],
    match: PassageMatch,
    classifier: ResultsClassifier,
    trees: Trees,
) -> int:
    """Return the place of the sentence of one passage that answers best, from 0."""
    return choose_sentences(question, [Sentences(sentences, match)], classifier, trees)[0]


@held(MOST_SENTENCES)
def _read_cues(text: str) -> _Cues:
    words = _WORD.findall(text.lower())
    return _Cues(
        stems=frozenset(one[:_STEM] for one in words if one not in _STOP),
        length=len(text) + 1.0,
        aims=_AIM.search(text) is not None,
        finds=_FINDING.search(text) is not None,
    )
