"""Training pools as numbers: each passage looked at once, whatever is fitted to it afterwards."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from deepera_graph.backends.local.intent import recognize
from deepera_graph.judge.encoder import Encoded, Floats
from deepera_graph.judge.likeness import Counts, Words, as_claim, compare_words
from deepera_graph.judge.measures import Look, View, look, read, shown, view
from deepera_graph.judge.model import Encodes, encode_once
from deepera_graph.judge.results_role import ResultsRole
from deepera_graph.judge.surroundings import Company, company_of
from deepera_graph.judge.train.log import Log, silent
from deepera_graph.judge.train.pool import Passage, Pool
from deepera_graph.judge.train.shelf import Key, Shelf
from deepera_graph.roles import IntentFields, PassageTask, intent_fields

_EVERY = 50
_ROOM = 2**30  # bytes of token vectors held, as questions of one set share passages


@dataclass(frozen=True, slots=True, eq=False)
class Looked:
    """A pool whose passages have been looked at.

    Attributes:
        pool: The pool.
        looks: Each passage.
        labels: 1 for evidence, shape (n,).
    """

    pool: Pool
    looks: Sequence[Look]
    labels: NDArray[np.int64]

    @property
    def is_claim(self) -> bool:
        """Whether the question is a claim."""
        return as_claim(self.pool.question)


class Material:
    """Looks at pools, and remembers what it saw.

    Args:
        encoder: Makes vectors of texts.
        shelf: Keeps looks for the next time, and gives those of the last; None keeps none.
    """

    def __init__(self, encoder: Encodes, shelf: Shelf | None = None) -> None:
        self._encoder, self._shelf = encoder, shelf
        self._looks: dict[Key, Look] = {}
        self._views: OrderedDict[tuple[str, str], View] = OrderedDict()
        self._held = 0  # bytes
        self._texts: dict[tuple[str, str], tuple[Floats, Floats, Floats]] = {}
        self._questions: dict[str, tuple[Encoded, IntentFields]] = {}
        self._counts: Counts | None = None  # that `_words` were weighed by
        self._words: dict[tuple[str, tuple[Passage, ...]], Words] = {}

    def look(self, pools: Sequence[Pool], log: Log = silent) -> list[Looked]:
        """Return the pools with their passages looked at."""
        found = []
        for n_done, pool in enumerate(pools, start=1):
            found.append(Looked(pool, self._of(pool), np.array(pool.labels)))
            if n_done % _EVERY == 0 or n_done == len(pools):
                log({"step": "look", "done": n_done, "of": len(pools)})
        return found

    def company(self, looked: Looked, counts: Counts, role: ResultsRole) -> Company:
        """Return the passages of a pool compared with each other, as the judge compares them."""
        reads = [read(one, role) for one in looked.looks]
        return company_of(self._compare_words(looked.pool, counts), reads)

    def _of(self, pool: Pool) -> list[Look]:
        missing = self._not_yet(pool)
        if missing and self._shelf is not None:
            self._remember(self._shelf.find(list(missing)))
            missing = self._not_yet(pool)
        if missing:
            found = self._look(pool.question, missing)
            self._remember(found)
            if self._shelf is not None:
                self._shelf.keep(found)
        return [self._looks[_key(pool, one)] for one in pool.passages]

    def _not_yet(self, pool: Pool) -> dict[Key, Passage]:
        keys = {_key(pool, one): one for one in pool.passages}
        return {key: one for key, one in keys.items() if key not in self._looks}

    def _look(self, text: str, passages: Mapping[Key, Passage]) -> dict[Key, Look]:
        question, intent = self._question(text)
        views = self._view(list(passages.values()))
        looks = {}
        for (key, one), seen in zip(passages.items(), views, strict=True):
            task: PassageTask = {
                "question": text,
                "intent": intent,
                "text": one.text,
                "title": one.title,
                "section": "",
            }
            looks[key] = look(question, task, seen)
        return looks

    def _view(self, passages: Sequence[Passage]) -> list[View]:
        """Return what passages are whatever the question; the latest are held for the next one."""
        new = [one for one in passages if (one.title, one.text) not in self._views]
        titles = encode_once(self._encoder, (one.title for one in new if one.title))
        encoded = self._encoder.encode([one.text for one in new])
        for one, vectors in zip(new, encoded, strict=True):
            seen = view(one.text, vectors, titles.get(one.title))
            self._views[one.title, one.text] = seen
            self._held += seen.tokens.nbytes
        found = [self._views[one.title, one.text] for one in passages]
        for one in passages:
            self._views.move_to_end((one.title, one.text))
        while self._held > _ROOM:
            self._held -= self._views.popitem(last=False)[1].tokens.nbytes
        return found

    def _remember(self, looks: Mapping[Key, Look]) -> None:
        for key, one in looks.items():
            own = (one.vector, one.body, one.sentences)
            vector, body, sentences = self._texts.setdefault(key[1:], own)
            self._looks[key] = replace(one, vector=vector, body=body, sentences=sentences)

    def _question(self, question: str) -> tuple[Encoded, IntentFields]:
        if question not in self._questions:
            intent = intent_fields(recognize({"question": question, "problem": ""}))
            self._questions[question] = (self._encoder.encode([question])[0], intent)
        return self._questions[question]

    def _compare_words(self, pool: Pool, counts: Counts) -> Words:
        if counts is not self._counts:
            self._counts, self._words = counts, {}
        key = pool.question, pool.passages
        if key not in self._words:
            texts = [shown(one.title, one.text) for one in pool.passages]
            self._words[key] = compare_words(counts, pool.question, texts)
        return self._words[key]


def _key(pool: Pool, passage: Passage) -> Key:
    return pool.question, passage.title, passage.text
