"""Pools mixed anew, and pools with another number of look-alikes."""

from collections import Counter

import pytest
from typer.testing import CliRunner

from bench.lakes import write_jsonl
from bench.study_lakes import Judge, column, lab, lakes
from deepera_graph.calibration.instance import Context, Dataset, DatasetError, Instance
from deepera_graph.errors import SettingsError
from deepera_graph.lab.cli.main import app
from deepera_graph.lab.data.pools import (
    Recipe,
    counterfactuals,
    mix_pools,
    turn_changes,
    with_look_alikes,
)
from deepera_graph.lab.rankers.base import FirstStage
from deepera_graph.lab.studies.rerank.look_alikes import study_counts

TOPICS = ("liming", "boats", "perch", "reeds", "ice", "snails", "pollen", "herons")


def instance(number, topic):
    texts = [
        (f"In ponds with {topic} the count of animal {number} rose by {number} percent.", "golden"),
        (f"Whether {topic} matters for animal {number} is debated.", "like"),
        (f"Animal {number} is eaten in spring in the town of {number}.", "plain"),
        (f"The market sells nets, rope and paint number {number}.", "plain"),
    ]
    contexts = tuple(
        Context(
            id=f"{topic}-{place}", text=text, is_golden=kind == "golden",
            is_distractor=kind == "like", parent_id=f"{topic}-0" if kind == "like" else None,
        )
        for place, (text, kind) in enumerate(texts)
    )  # fmt: skip
    return Instance(id=topic, question=f"What does {topic} do?", contexts=contexts)


DATA = Dataset("ponds", lambda: [instance(n, one) for n, one in enumerate(TOPICS, start=1)])


def mixed(recipe, **options):
    return list(mix_pools(DATA, recipe, **options))


def kinds(one):
    return [context.distractor_type for context in one.contexts if context.is_distractor]


def test_noisy_contexts_are_a_few_relevant_passages_among_unrelated_ones():
    recipe = Recipe(name="nc", noise={"unrelated": 6}, total=9)
    for one in mixed(recipe):
        assert kinds(one) == ["unrelated"] * 6
        assert len(one.contexts) == 9
        assert sum(context.is_golden for context in one.contexts) == 1
        topic = one.id
        assert not any(topic in c.text for c in one.contexts if c.is_distractor)


def test_counterfactuals_say_the_opposite_of_the_golden_passage():
    (made,) = counterfactuals([instance(3, "liming").contexts[0]])
    assert made.text == "In ponds with liming the count of animal 3 fell by 3 percent."
    assert made.is_distractor
    assert not made.is_golden
    for one in mixed(Recipe(name="cc", noise={"counterfactual": 1}, total=4)):
        (counter,) = (context for context in one.contexts if context.is_distractor)
        assert " fell " in counter.text
        assert counter.parent_id == f"{one.id}-0"


def test_a_hop_away_is_what_shares_words_with_the_evidence_and_not_the_question():
    one = mixed(Recipe(name="multihop", noise={"hop": 1}, total=4))[0]
    (hop,) = (context for context in one.contexts if context.distractor_type == "hop")
    assert one.id not in hop.text
    assert {"animal", "count", "ponds"} & set(hop.text.replace(".", "").split())


def test_kinds_of_noise_are_mixed_and_what_is_missing_is_told():
    short = Counter()
    recipe = Recipe.read("look-alike=2,counterfactual=1,unrelated=3", total=8)
    for one in mixed(recipe, missing=short):
        assert sorted(map(str, kinds(one))) == ["None", "counterfactual", *["unrelated"] * 3]
    assert short == {"look-alike": len(TOPICS)}


@pytest.mark.full
def test_the_same_seed_gives_the_same_pools_and_places_are_random():
    recipe = Recipe.read("nc", total=100)
    assert mixed(recipe) == mixed(recipe)
    places = {
        [context.is_golden for context in one.contexts].index(True)
        for one in mixed(Recipe(name="nc", noise={"unrelated": 6}, total=9))
    }
    assert len(places) > 2
    assert mixed(recipe, seed=1) != mixed(recipe)


@pytest.mark.parametrize(
    ("recipe", "total", "says"),
    [
        ("ncc", 100, "got 'ncc'"),
        ("nc", 50, "total must be more than the noise, 95, got 50"),
        ("boats=3", 100, "got 'boats'"),
        ("hop=-1", 100, "must be >= 0, got -1"),
    ],
)
def test_a_recipe_that_cannot_be_mixed_is_refused(recipe, total, says):
    with pytest.raises(SettingsError, match=says):
        Recipe.read(recipe, total=total)


def test_data_without_any_of_the_noise_is_refused():
    with pytest.raises(DatasetError, match="none of the noise"):
        list(mix_pools(lakes(2), Recipe(name="cc", noise={"counterfactual": 1}, total=5)))


def test_the_command_writes_pools_that_can_be_read(tmp_path):
    data = write_jsonl(tmp_path / "ponds.jsonl", [one.model_dump(mode="json") for one in DATA])
    out = tmp_path / "mixed.jsonl"
    args = ["bench", "mix", str(data), "--recipe", "counterfactual=1", "--total", "4"]
    result = CliRunner().invoke(app, [*args, "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert "8 questions" in result.stdout
    again = CliRunner().invoke(app, [*args, "--out", str(out)])
    assert again.exit_code == 2
    table = CliRunner().invoke(app, ["bench", "table", str(out), "--rankers", "bm25", "--quiet"])
    assert table.exit_code == 0, table.output


def test_pools_have_one_size_whatever_number_of_look_alikes_they_have():
    (one,) = lakes(1, n=10, golden=(1,), distractors=(4, 5, 6, 7))
    before = frozenset()
    for n in (1, 2, 4):
        thinned = with_look_alikes(one, n, n_fewest=1)
        like = {context.id for context in thinned.contexts if context.is_distractor}
        assert len(like) == n
        assert before < like
        before = like
        assert len(thinned.contexts) == 7
    plain = [context.id for context in thinned.contexts if not context.is_distractor]
    assert plain == ["c1", "c2", "c3"]  # the last in retrieval went first


def test_more_look_alikes_are_harder_for_who_falls_for_them():
    data = lakes(6, n=12, golden=(12,), distractors=(2, 4, 6, 8, 10))
    falls = Judge(lambda question, place: 0.5, name="falls")

    class Knows(Judge):
        def rank_many(self, jobs):
            self.score = lambda question, place: 0.9 if place == self.last else 0.1
            self.last = max(int(one["id"]) for one in jobs[0][1])
            return super().rank_many(jobs)

    knows = Knows(None, name="knows")
    found = study_counts(lab([FirstStage(), falls, knows], [data], counts=(1, 3, 5, 10)))
    (grid,) = found.grids
    assert column(grid, "look-alikes") == [1, 1, 1, 3, 3, 3, 5, 5, 5]  # none has ten
    assert set(column(grid, "passages")) == {8}
    by = {(row[1], row[2]): row for row in grid.rows}
    cdr = [one.name for one in grid.columns].index("CDR")
    assert by["falls", 5][cdr].mean == 0
    assert by["knows", 5][cdr].mean == 1
    assert [one.name for one in found.drawings] == ["counts"]
    assert "6 questions with at least 5 look-alikes" in found.findings[0]


def test_data_without_look_alikes_is_left_out_of_the_study():
    found = study_counts(lab([FirstStage()], [lakes(2)]))
    assert found.grids[0].rows == ()
    assert "left out" in found.findings[0]


def test_a_change_that_is_part_of_another_word_is_not_turned():
    assert turn_changes("The rose's scent rose.") == ["The rose's scent fell."]
