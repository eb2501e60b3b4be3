"""What one passage, and each of its sentences, shows for one question, in numbers."""

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
from deepera_graph.schema import PassageTask
from deepera_graph.text.questions import looks_like_claim
from deepera_graph.text.words import split_sentences

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
    # tuned_cosine, tuned_sentence_cosine and so on: those above, by means of tokens as they are
    tuned_cosine: float
    tuned_sentence_cosine: float
    tuned_sentence_cosine_mean: float
    tuned_first_cosine: float
    tuned_last_cosine: float
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
    tuned: Floats  # as `vector`, by the mean of tokens as it is
    tuned_sentences: Floats


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
        tokens, vector, tuned = body.units, body.mean, body.tuned_mean
    else:
        tokens = np.concatenate([body.units, title.units[1:-1]])
        vector, tuned = body.join(title)
    return PassageVectors(
        tokens=tokens,
        vector=vector,
        body=body.mean,
        n_in_text=len(body.tokens),
        spans=parts.spans,
        sentences=parts.units,
        tuned=tuned,
        tuned_sentences=parts.tuned,
    )


def match_passage(question: Encoded, task: PassageTask, passage: PassageVectors) -> PassageMatch:
    """Compare the passage of a task, whose text is not blank, with its question."""
    asked = without_marks(question.units)
    similarity = pairwise_dot(asked, passage.tokens)
    matched = similarity.max(axis=1)
    worst = np.sort(matched)
    cosines = pairwise_dot(passage.sentences, question.mean[None])[:, 0]
    tuned = pairwise_dot(passage.tuned_sentences, question.tuned_mean[None])[:, 0]
    in_text = similarity[:, : passage.n_in_text]
    best = np.stack([in_text[:, span].max(axis=1) for span in passage.spans])
    matches = best.mean(axis=1)
    by_rules = analyze_passage(task)
    grounding = np.array(
        [one.grounding for one in by_rules.readings] if by_rules else [0], np.float32
    )
    plain = (
        _dot(question.mean, passage.vector),
        _mean(matched),
        float(worst[0]),
        _mean(worst[:3]),
        float(np.count_nonzero(matched > _FOUND) / len(matched)),
        *_summarize(cosines),
        float(matches.max()),
        _mean(matches),
        log(max(len(join_title(task["title"], task["text"])), 1)),
        float(len(passage.spans)),
        _mean(grounding),
        float(grounding.std()),
        *(by_rules.features if by_rules else (0.0,) * len(RuleFeatures._fields)),
        0.0 if looks_like_claim(task["question"]) else 1.0,
        float(len(asked)),
        _dot(question.tuned_mean, passage.tuned),
        *_summarize(tuned),
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


def _dot(left: Floats, right: Floats) -> float:
    return float(pairwise_dot(left[None], right[None])[0, 0])


def _summarize(cosines: Floats) -> tuple[float, float, float, float]:
    """Return the greatest, the mean, the first and the last of the cosines of sentences."""
    return float(cosines.max()), _mean(cosines), float(cosines[0]), float(cosines[-1])


def _mean(values: Floats | Doubles) -> float:
    """Return what `values.mean()` does, in a third of its time."""
    return float(np.add.reduce(values) / len(values))
