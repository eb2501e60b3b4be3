"""Whole abstracts with their titles, one of which answers, among those that share most words."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Final

from deepera_graph.lab.training.lessons.groups import AskedAbstract, read_abstracts
from deepera_graph.lab.training.lessons.pools import GOLDEN, OTHER_PAPER, LabelledPassage, Pool
from deepera_graph.lab.training.lessons.snippets import digest, find_near

ABSTRACTS: Final = "abstracts"  # name of the set
POOLS: Final = 1280  # questions that teach a judge's trees
_OTHERS = (4, 7, 9, 14)  # abstracts of a pool beside its own
_N_FOUND = 20  # by words
_MEASURED = "question_titles"  # a set of its own, so that its abstracts are on one side


def pool_abstracts(paths: Sequence[Path], data: Path) -> list[Pool]:
    """Return `POOLS` questions of files of labels on the abstracts that a folder holds.

    They are chosen by chance, always the same ones. A question that its abstract does not answer
    has a pool without evidence. An `InputError` names an abstract that the folder does not have.
    """
    asked = [
        one
        for path in paths
        for one in read_abstracts(path, data)
        if one.source != _MEASURED and one.question != one.title
    ]
    chance = Random(0)
    return list(_pool(chance.sample(asked, min(POOLS, len(asked))), asked, chance))


def name_group(asked: AskedAbstract) -> str:
    """Return what the pools of all questions on an abstract share: no two sides have one of it."""
    return f"{ABSTRACTS} {digest(' '.join(asked.sentences))}"


def _pool(
    chosen: Sequence[AskedAbstract], asked: Sequence[AskedAbstract], chance: Random
) -> Iterator[Pool]:
    titles = {" ".join(one.sentences): one.title for one in asked}
    texts = list(titles)
    answering: dict[str, set[str]] = defaultdict(set)
    for one in asked:
        if one.answering:
            answering[one.question].add(" ".join(one.sentences))
    if not chosen:
        return
    queries = [f"{one.question} {one.title}" for one in chosen]
    found = find_near(queries, [f"{titles[text]} {text}" for text in texts], _N_FOUND)
    for number, (one, places) in enumerate(zip(chosen, found, strict=True)):
        own = " ".join(one.sentences)
        near = [texts[place] for place in places]
        others = [text for text in near if text != own and text not in answering[one.question]]
        drawn = [own, *others[: chance.choice(_OTHERS)]]
        golden = {own} if one.answering else set()
        chance.shuffle(drawn)
        yield Pool(
            id=str(number),
            question=one.question,
            passages=tuple(
                LabelledPassage(
                    text=text,
                    title=titles[text],
                    label=int(text in golden),
                    kind=GOLDEN if text in golden else OTHER_PAPER,
                )
                for text in drawn
            ),
            set=ABSTRACTS,
            group=name_group(one),
        )
