"""Pools mixed anew from labelled ones: other noise, and another number of look-alikes.

Four kinds of noise may stand beside the evidence: look-alikes that the data labels; counterfactuals
of its golden passages, whose changes are turned around; passages one hop away, which share words
with the evidence and not the question; and unrelated ones, the golden passages of other questions.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np

from deepera_graph.calibration.instance import Context, Dataset, DatasetError, Instance
from deepera_graph.errors import SettingsError
from deepera_graph.text.drift.parts import OPPOSITES, WORD
from deepera_graph.text.words import stems

LOOK_ALIKE, COUNTERFACTUAL, HOP, UNRELATED = NOISES = (
    "look-alike", "counterfactual", "hop", "unrelated",
)  # fmt: skip
TOTAL = 100  # passages of a pool


# Source: SciRerankBench, README: pools of 100; noisy contexts (NC) are 5 relevant and 95 unrelated
# passages, look-alikes (SSLI) and counterfactuals (CC) 10 beside 90 of the base. How many passages
# of a multi-hop pool are one hop away it does not say; 10 is ours.
RECIPES: Mapping[str, Mapping[str, int]] = {
    "nc": {UNRELATED: 95},
    "ssli": {LOOK_ALIKE: 10},
    "cc": {COUNTERFACTUAL: 10},
    "multihop": {HOP: 10},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How many passages of each kind of noise a pool has, and how many passages in all."""

    name: str
    noise: Mapping[str, int]
    total: int = TOTAL

    def __post_init__(self) -> None:
        for kind, n in self.noise.items():
            if kind not in NOISES:
                raise SettingsError(f"noise must be of {', '.join(NOISES)}, got {kind!r}")
            if n < 0:
                raise SettingsError(f"noise {kind!r} must be >= 0, got {n}")
        if self.total <= sum(self.noise.values()):
            raise SettingsError(
                f"total must be more than the noise, {sum(self.noise.values())}, got {self.total}"
            )

    @classmethod
    def read(cls, text: str, *, total: int = TOTAL) -> "Recipe":
        """Read a name of `RECIPES`, or ``look-alike=10,unrelated=40``."""
        if text in RECIPES:
            return cls(name=text, noise=RECIPES[text], total=total)
        try:
            pairs = (part.split("=") for part in text.split(","))
            noise = {kind.strip(): int(n) for kind, n in pairs}
        except ValueError as error:
            raise SettingsError(
                f"recipe must be {', '.join(RECIPES)}, or numbers of {', '.join(NOISES)}, e.g. "
                f"look-alike=10,unrelated=40; got {text!r}"
            ) from error
        return cls(name=text, noise=noise, total=total)


def mix_pools(
    dataset: Dataset, recipe: Recipe, *, seed: int = 0, missing: Counter[str] | None = None
) -> Iterator[Instance]:
    """Yield every question with a pool mixed by a recipe: evidence, noise, then the base."""
    # Golden passages stay; the rest of the pool are the best of the question's own plain passages.
    # Noise goes to random places. The same seed gives the same pools. What the data set does
    # not have is counted in *missing*, by kind.
    instances = list(dataset)
    corpus = _Corpus(instances)
    lacking = Counter[str]() if missing is None else missing
    n_noise = 0
    for instance in instances:
        rng = np.random.default_rng([seed, *sha256(instance.id.encode()).digest()[:8]])
        mixed, n = _mix(instance, corpus, recipe, rng, lacking)
        n_noise += n
        yield mixed
    if not n_noise and any(recipe.noise.values()):
        raise DatasetError(
            f"data set {dataset.name!r} has none of the noise of {recipe.name!r}: "
            f"{', '.join(recipe.noise)}"
        )


class _Corpus:
    """All passages of a data set, each text once, with the questions they answer."""

    def __init__(self, instances: Sequence[Instance]) -> None:
        self.golden: dict[str, Context] = {}
        self.plain: dict[str, Context] = {}
        for one in instances:
            for context in one.contexts:
                if context.is_golden:
                    self.golden.setdefault(context.text, context)
                elif not context.is_distractor:
                    self.plain.setdefault(context.text, context)
        self._stems = {text: frozenset(stems(text)) for text in (*self.golden, *self.plain)}

    def unrelated(self, instance: Instance, rng: np.random.Generator) -> Iterator[Context]:
        """Yield passages that share no telling word with the question, in a random order."""
        own = {context.text for context in instance.contexts}
        asked = frozenset(stems(instance.question))
        texts = [text for text in self._stems if text not in own]
        near = [len(asked & self._stems[text]) for text in texts]
        for place in sorted(rng.permutation(len(texts)), key=lambda at: near[at]):
            yield self._of(texts[place])

    def one_hop_away(self, instance: Instance) -> Iterator[Context]:
        """Yield passages that share most with the evidence beyond what the question names."""
        own = {context.text for context in instance.contexts if context.is_golden}
        asked = frozenset(stems(instance.question))
        bridges = frozenset[str]().union(
            *(self._stems[text] for text in own if text in self._stems)
        )
        bridges -= asked
        shared = {text: len(bridges & of) - 2 * len(asked & of) for text, of in self._stems.items()}
        for text in sorted(shared, key=lambda text: (-shared[text], text)):
            if text not in own and bridges & self._stems[text]:
                yield self._of(text)

    def _of(self, text: str) -> Context:
        return self.golden.get(text) or self.plain[text]


def _mix(
    instance: Instance,
    corpus: _Corpus,
    recipe: Recipe,
    rng: np.random.Generator,
    missing: Counter[str],
) -> tuple[Instance, int]:
    golden = [one for one in instance.contexts if one.is_golden]
    pool = {one.text: one for one in golden}
    noise: list[Context] = []
    for kind, n in recipe.noise.items():
        found: list[Context] = []
        for one in _noise_of(kind, instance, corpus, golden, rng):
            if len(found) == n:
                break
            if one.text not in pool:
                pool[one.text] = one
                found.append(one)
        noise += found
        if len(found) < n:
            missing[kind] += n - len(found)
    room = recipe.total - len(golden) - len(noise)
    base = [
        one
        for one in instance.contexts
        if not one.is_golden and not one.is_distractor and one.text not in pool
    ][: max(room, 0)]
    kept = [one for one in instance.contexts if one.is_golden or one in base]
    for one in noise:
        kept.insert(int(rng.integers(len(kept) + 1)), one)
    contexts = [
        one.model_copy(update={"first_stage_rank": rank}) for rank, one in enumerate(kept, 1)
    ]
    changed: dict[str, Any] = {"contexts": _named(contexts), "setting": recipe.name}
    return Instance.model_validate(instance.model_copy(update=changed).model_dump()), len(noise)


def _named(contexts: Sequence[Context]) -> tuple[Context, ...]:
    """Return passages under ids of which each is there once."""
    seen: set[str] = set()
    found = []
    for one in contexts:
        id = one.id
        while id in seen:
            id += "'"
        seen.add(id)
        found.append(one.model_copy(update={"id": id}))
    known = {one.id for one in found}
    return tuple(
        one if one.parent_id in known else one.model_copy(update={"parent_id": None})
        for one in found
    )


def _noise_of(
    kind: str,
    instance: Instance,
    corpus: _Corpus,
    golden: Sequence[Context],
    rng: np.random.Generator,
) -> Iterator[Context]:
    if kind == LOOK_ALIKE:
        yield from (one for one in instance.contexts if one.is_distractor)
    elif kind == COUNTERFACTUAL:
        yield from counterfactuals(golden)
    else:
        found = corpus.one_hop_away(instance) if kind == HOP else corpus.unrelated(instance, rng)
        for one in found:
            yield _as_distractor(one, kind, None)


def counterfactuals(golden: Sequence[Context]) -> Iterator[Context]:
    """Yield golden passages with their changes turned around, one after the other, then all."""
    # "Rose" becomes "fell", "did not reduce" becomes "reduced": the topic and the words stay, and
    # the passage says the opposite. One without a verb of change yields nothing.
    for one in golden:
        for number, text in enumerate(turn_changes(one.text), start=1):
            made = _as_distractor(one, COUNTERFACTUAL, one.id)
            yield made.model_copy(update={"id": f"{one.id}-counter-{number}", "text": text})


def turn_changes(text: str) -> list[str]:
    """Return a text with one change turned, a version for each, and all: ``rose`` for ``fell``."""
    places = [one for one in WORD.finditer(text) if one.group().lower() in OPPOSITES]
    turned = [_turn(text, [one]) for one in places]
    return [*turned, _turn(text, places)] if len(turned) > 1 else turned


def _turn(text: str, places: Sequence[re.Match[str]]) -> str:
    for one in reversed(places):
        word = OPPOSITES[one.group().lower()]
        word = word.capitalize() if one.group()[0].isupper() else word
        text = f"{text[: one.start()]}{word}{text[one.end() :]}"
    return text


def _as_distractor(one: Context, kind: str, parent: str | None) -> Context:
    changes = {"is_golden": False, "is_distractor": True, "distractor_type": kind, "grade": 1}
    return one.model_copy(update={**changes, "parent_id": parent})


def with_look_alikes(instance: Instance, n: int, *, n_fewest: int, seed: int = 0) -> Instance:
    """Return a question with *n* of its look-alikes, in a pool as large whatever *n* is."""
    # They are drawn at random, more of them on top of fewer. They take the place of the plain
    # passages that stand last in retrieval, as with *n_fewest* none is missing.
    like = [one for one in instance.contexts if one.is_distractor]
    digest = sha256(f"{seed}|{instance.question}".encode()).digest()
    order = np.random.default_rng([*digest[:8]]).permutation(len(like))
    chosen = {like[place].id for place in order[:n]}
    plain = [one for one in instance.contexts if not one.is_distractor and not one.is_golden]
    room = len(plain) - (n - n_fewest)
    kept = {one.id for one in plain[: max(room, 0)]} | chosen
    contexts = [one for one in instance.contexts if one.is_golden or one.id in kept]
    return instance.model_copy(update={"contexts": tuple(contexts)})
