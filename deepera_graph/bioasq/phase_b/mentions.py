"""Runs of words in snippets that may be names, and what stands around each; all are read at once.

All sentences are one row of tokens, with a full stop before and after each, as no name goes on over
it. What is known of a token is found once for all that are written alike.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from deepera_graph.text.plain import read_lists
from deepera_graph.text.words import STOP_WORDS, rarity, split_sentences, stem, stems

Doubles = NDArray[np.float64]
Places = NDArray[np.int64]
Mask = NDArray[np.bool_]
_PIECE: Final = re.compile(  # a token with the space before it
    r"[\s_]*(?:[^\W_]+(?:[-‐‑–/'’.+,](?=[^\W_])[^\W_]+)*[+%]?|[^\w\s])"
)
_SPACE: Final = re.compile(r"[\s_]*")
_BETWEEN: Final = " . "  # sentences
WORDS: Final = read_lists(__file__, "words.toml")["mentions"]
_GENERAL = frozenset(stem(one) for one in WORDS["general"]) | frozenset(WORDS["general"])
_BREAKERS = STOP_WORDS | frozenset(WORDS["breakers"])
_ASIDE = _GENERAL | _BREAKERS
LONGEST: Final = 6  # words of a name
_LEAST: Final = 2  # letters of a name that is no number
_FARTHEST: Final = 12  # words; what is farther from the words of the question is as far
_AROUND: Final = {  # what may stand before or after a name
    **dict.fromkeys((",", ";"), "comma"),
    **dict.fromkeys(("and", "or"), "and"),
    **dict.fromkeys((".", ":"), "stop"),
    **dict.fromkeys(("is", "are", "was", "were"), "is"),
    **{"the": "the", "of": "of", "(": "opens", ")": "closes"},
}
KINDS: Final = tuple(dict.fromkeys(_AROUND.values()))
_KIND_OF: Final = {word: KINDS.index(kind) for word, kind in _AROUND.items()}


class Tokens(NamedTuple):
    """What is known of tokens by themselves; of each an array of shape (n_tokens,)."""

    length: Places  # characters
    is_apart: Mask  # whether there is a space before it
    is_word: Mask
    may_end: Mask  # whether a name may begin or end here
    tells: Mask  # whether it is neither a general word nor asked
    is_long: Mask  # whether it may be a name alone
    asked: Places  # which stem of the question it is; -1 for none
    rarity: Doubles
    is_breaker: Mask
    is_stop: Mask
    is_general: Mask
    capitals: Places
    is_capital: Mask  # whether it begins with one
    has_digit: Mask
    kind: Places  # of what stands beside names; the number of kinds for what is none
    opening: Places  # brackets that it opens; -1 if it closes one


def _describe(token: str, piece: str, roots: Mapping[str, int]) -> tuple[Any, ...]:
    low = token.lower()
    is_word = low[0].isalnum()
    root = stem(low) if is_word else ""
    is_breaker = low in _BREAKERS
    is_aside = is_breaker or low in _GENERAL or root in _ASIDE
    return (
        len(token),
        len(token) < len(piece) and not piece.startswith("_"),
        is_word,
        is_word and not is_breaker,
        is_word
        and not is_aside
        and not roots.keys() >= ({root} if low.isalnum() and low.isascii() else {*stems(low)}),
        len(token) >= _LEAST or token.isdigit(),
        roots.get(root, -1),
        rarity(root),
        is_breaker,
        low in STOP_WORDS,
        low in _GENERAL or root in _GENERAL,
        0 if token.islower() else sum(map(str.isupper, token)),
        token[0].isupper(),
        not token.isalpha() and any(map(str.isdigit, token)),
        _KIND_OF.get(low, len(KINDS)),
        (low in "([") - (low in ")]"),
    )


@dataclass(frozen=True, slots=True)
class Mentions:
    """The runs of words of snippets that may be names, in the order in which they begin.

    Of each, one word is neither general nor asked, and none at its ends stands between names.
    """

    words: Sequence[str]  # as tokens are written, each once
    # which of these each token is, shape (n_tokens,), with a full stop around sentences
    which: Places
    tokens: Tokens  # what is known of the tokens
    bounds: Places  # places of these full stops
    begin: Places  # place of the first token of each mention, shape (n,)
    end: Places  # place behind its last
    sentence: Places  # which has it
    snippet: Places  # which has it
    texts: Sequence[str]  # as each is written

    @classmethod
    def read(cls, snippets: Sequence[str], asked: Iterable[str]) -> Self:
        """Return what snippets mention; *asked* are the stems of the question."""
        read = [
            (number, one.text)
            for number, snippet in enumerate(snippets)
            for one in split_sentences(snippet)
        ]
        text = _BETWEEN.join(["", *(one for _, one in read), ""])
        pieces, alike = _PIECE.findall(text), dict[str, int]()
        which = np.array([alike.setdefault(one, len(alike)) for one in pieces])
        roots = {root: place for place, root in enumerate(asked)}
        words = [_SPACE.sub("", one, count=1) for one in alike]
        known = [_describe(*one, roots) for one in zip(words, alike, strict=True)]
        tokens = Tokens(*(np.array(one)[which] for one in zip(*known, strict=True)))
        stops = np.cumsum(np.array([*map(len, alike)])[which])
        starts = stops - tokens.length
        between = np.cumsum([1, *(len(one) + len(_BETWEEN) for _, one in read)])
        bounds = np.searchsorted(starts, between)
        begin, end = _find_runs(tokens)
        sentence = np.searchsorted(bounds, begin) - 1
        snippet = np.array([number for number, _ in read], np.int64)[sentence]
        spans = zip(starts[begin].tolist(), stops[end - 1].tolist(), strict=True)
        texts = [text[start:stop] for start, stop in spans]
        return cls(words, which, tokens, bounds, begin, end, sentence, snippet, texts)

    def of(self, places: Places) -> "Mentions":
        """Return those at places among these."""
        rows = ("begin", "end", "sentence", "snippet")
        chosen: Any = {name: getattr(self, name)[places] for name in rows}
        return replace(self, **chosen, texts=[self.texts[place] for place in places.tolist()])

    def have(self, form: re.Pattern[str]) -> Mask:
        """Return which have a word with a pattern in it."""
        found = np.array([bool(form.search(one)) for one in self.words])
        return np.asarray(self.sum(found[self.which]) > 0)

    def sum(self, of_tokens: NDArray[Any]) -> NDArray[Any]:
        """Return the sum over the tokens of each."""
        sums = _sum_before(of_tokens)
        return np.asarray(sums[self.end] - sums[self.begin])

    def describe_places(self, weights: Doubles) -> Doubles:
        """Return where each stands, shape (n, n_features); *weights* are of the stems asked."""
        # The features are its nearness to a word of the question, its place in the sentence,
        # whether a name may end before it or begin after it, whether it stands in brackets, the
        # kinds of what is before and after, what share of the question stands beside it, and how
        # close.
        tokens, first, behind = (
            self.tokens,
            self.bounds[self.sentence],
            self.bounds[self.sentence + 1],
        )
        depth = np.cumsum(tokens.opening)
        near, close = self._measure_nearness(weights)
        sides = (tokens.kind[self.begin - 1], tokens.kind[self.end])
        return np.column_stack(
            [
                near,
                (self.begin - first - 1) / (behind - first - 1),
                tokens.may_end[self.begin - 1],
                tokens.may_end[self.end],
                depth[self.begin] > depth[first],
                *(side == kind for side in sides for kind in range(len(KINDS))),
                self._weigh_beside(weights),
                close,
            ]
        )

    def _measure_nearness(self, weights: Doubles) -> tuple[Doubles, Doubles]:
        """Return how near the nearest word asked is in the sentence, and how close all are."""
        size = len(self.tokens.asked)
        places, sentence = self._find_asked()
        first, behind = self.bounds[sentence] + 1, self.bounds[sentence + 1]
        n_of = behind - first + 1
        of = np.repeat(np.arange(len(places)), n_of)
        at = np.arange(len(of)) + np.repeat(first + n_of - np.cumsum(n_of), n_of)
        far = at - places[of]
        is_before = far > 0
        far = np.where(is_before, far, 1 - far)
        share = weights[self.tokens.asked[places]][of] / (1 + far)
        least, close = np.full((2, size), _FARTHEST), np.zeros(len(self.begin))
        for side, mask, ends in ((0, is_before, self.begin), (1, ~is_before, self.end)):
            np.minimum.at(least[side], at[mask], far[mask])
            close += np.bincount(at, share * mask, size)[ends]
        nearest = np.minimum(least[0][self.begin], least[1][self.end])
        return 1 / nearest, close / (weights.sum() or 1.0)

    def _weigh_beside(self, weights: Doubles) -> Doubles:
        """Return the share that the stems asked have that stand in the sentence, but not within."""
        size = len(self.tokens.asked)
        places, sentence = self._find_asked()
        stems_asked = self.tokens.asked[places]
        _, first, which = np.unique(
            sentence * len(weights) + stems_asked, return_index=True, return_inverse=True
        )
        last = np.zeros_like(first)
        last[which] = places  # the last one stays
        once = np.zeros((2, size))
        once[:, places[first]] = np.ones(len(first)), weights[stems_asked[first]]
        until = np.zeros(size, np.int64)
        until[places[first]] = last
        n_all, all_weights = np.add.reduceat(once, self.bounds, axis=1)[:, self.sentence]
        rows = np.flatnonzero(self.sum(self.tokens.asked >= 0))
        for more in range(LONGEST):
            at = np.minimum(self.begin[rows] + more, self.end[rows] - 1)
            is_within = (self.begin[rows] + more < self.end[rows]) & (until[at] < self.end[rows])
            n_all[rows] -= once[0][at] * is_within
            all_weights[rows] -= once[1][at] * is_within
        return np.where(n_all > 0, all_weights, 0.0) / (weights.sum() or 1.0)

    def _find_asked(self) -> tuple[Places, Places]:
        places = np.flatnonzero(self.tokens.asked >= 0)
        return places, np.searchsorted(self.bounds, places) - 1


def _find_runs(tokens: Tokens) -> tuple[Places, Places]:
    """Return where each run begins, and the place behind its end, in order."""
    n_tokens, tells, goes_on = len(tokens.tells), _sum_before(tokens.tells), tokens.may_end
    found = np.zeros((n_tokens, LONGEST), np.bool_)
    for more in range(min(n_tokens, LONGEST)):
        goes_on = goes_on[: n_tokens - more] & tokens.is_word[more:]
        is_telling = tells[more + 1 :] > tells[: n_tokens - more]
        found[: n_tokens - more, more] = goes_on & tokens.may_end[more:] & is_telling
    found[:, 0] &= tokens.is_long
    begin, further = np.nonzero(found)
    return begin, begin + further + 1


def _sum_before(of_tokens: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate([[0], np.cumsum(of_tokens)])
