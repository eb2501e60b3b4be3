"""Look-alikes that give themselves away are flagged; others are not."""

import random

import numpy as np
import pytest

from bench.lakes import SHARED_DATA
from deepera_graph.calibration.instance import Context, Dataset, DatasetError, Instance
from deepera_graph.lab.bench.realism import auc_within_pools, extract_features, shape
from deepera_graph.lab.bench.realism_report import REALISM, measure_realism, tabulate
from deepera_graph.lab.data.readers import open_dataset
from deepera_graph.lab.studies.run import format_study

pytestmark = pytest.mark.full

NOUNS = "lake pond river trout pike alga mayfly reed heron ice sediment lime".split()  # noqa: SIM905
VERBS = "rose fell grew vanished froze settled returned doubled".split()  # noqa: SIM905
HOW = (
    "in spring",
    "by 4%",
    "within 12 days",
    "at depth",
    "(P < 0.05)",
    "as before",
    "near the inlet",
)
N_POOLS = 30
N_OTHERS = 12


def prose(dice):
    """One to four plain sentences."""
    return " ".join(
        f"The {dice.choice(NOUNS)} {dice.choice(VERBS)} {dice.choice(HOW)}, and "
        f"{dice.choice(NOUNS)} {dice.choice(VERBS)} {dice.choice(HOW)}."
        for _ in range(dice.randint(1, 4))
    )


def lakes(distort=lambda text, dice: text, *, share=1.0, n_pools=N_POOLS, kind="planted"):
    """Pools of prose where two passages are distractors, distorted with a probability."""
    dice = random.Random(7)
    instances = []
    for number in range(n_pools):
        texts = [prose(dice) for _ in range(N_OTHERS + 3)]
        contexts = [Context(id="g", text=texts[0], is_golden=True)]
        for place, text in enumerate(texts[1:]):
            planted = place < 2
            worse = distort(text, dice) if planted and dice.random() < share else text
            contexts.append(
                Context(
                    id=f"c{place}", text=worse, is_distractor=planted,
                    distractor_type=kind if planted else None,
                )
            )  # fmt: skip
        instances.append(Instance(id=f"q{number}", question="What froze?", contexts=contexts))
    return Dataset("lakes", lambda: instances)


def auc(report, family):
    return next(one for one in report.families if one.name == family).auc


def test_a_label_in_front_is_flagged():
    report = measure_realism(lakes(lambda text, dice: f"Deceptive: {text}"))
    assert auc(report, "opening").mean > 0.95
    assert {"opening", "style"} <= set(report.flagged)
    opening = next(one for one in report.families if one.name == "opening")
    assert "deceptive" in opening.telling[0].name
    assert {one.name: one.distractors for one in report.marks}["label"] == 1


def test_a_length_that_never_varies_is_flagged():
    def fixed(text, dice):
        words = " ".join(prose(dice) for _ in range(4)).split()[:21]
        return " ".join(words) + "."

    assert auc(measure_realism(lakes(fixed)), "length").mean > 0.8


def test_hedges_are_flagged_as_style():
    report = measure_realism(
        lakes(lambda text, dice: text.replace(" and ", " perhaps it might be that "))
    )
    assert "style" in report.flagged
    assert any("`might`" in one.name for one in report.families[2].telling)


def test_what_differs_in_nothing_is_not_flagged():
    report = measure_realism(lakes())
    assert report.flagged == ()
    assert all(one.auc.low < 0.5 < one.auc.high for one in report.families if one.judged)


def test_the_topic_alone_raises_no_flag():
    """Distractors about one topic, others about another: `words` sees it and is not judged."""
    report = measure_realism(
        lakes(lambda text, dice: text.replace("froze", "thawed").replace("ice", "snow"))
    )
    assert auc(report, "words").mean > auc(report, "style").mean
    assert report.flagged == ()


def test_passages_of_many_pools_are_not_learnt_by_heart():
    """The same other passages in every pool, and distractors like them: nothing to tell."""
    dice = random.Random(3)
    common = [prose(dice) for _ in range(N_OTHERS)]
    instances = [
        Instance(
            id=f"q{number}",
            question="What froze?",
            contexts=[
                Context(id="g", text=prose(dice), is_golden=True),
                Context(id="d", text=prose(dice), is_distractor=True),
                *(Context(id=f"c{place}", text=text) for place, text in enumerate(common)),
            ],
        )
        for number in range(N_POOLS)
    ]
    assert measure_realism(Dataset("common", lambda: instances)).flagged == ()


def in_common(n_documents, n_candidates):
    """Look-alikes are labelled; each pool has the next documents, which share their texts."""
    dice = random.Random(5)
    texts = [[prose(dice) for _ in range(3)] for _ in range(n_documents)]
    instances = []
    for number, (golden, *alike) in enumerate(texts):
        following = (texts[(number + step) % n_documents] for step in range(1, n_documents))
        others = [one for document in following for one in document][: n_candidates - 3]
        contexts = [
            Context(id="g", text=golden, is_golden=True),
            *(
                Context(id=f"d{n}", text=f"Deceptive: {one}", is_distractor=True)
                for n, one in enumerate(alike)
            ),
            *(Context(id=f"c{n}", text=one) for n, one in enumerate(others)),
        ]
        instances.append(Instance(id=f"q{number}", question="What froze?", contexts=contexts))
    return Dataset("lakes", lambda: instances)


def test_pools_that_share_their_texts_have_no_verdict():
    """They leave nothing to learn from, which is no sign that nothing tells them apart."""
    report = measure_realism(in_common(12, 33))
    assert not report.is_measured
    assert report.flagged == ()
    result = tabulate([report])
    assert result.findings == (
        "lakes: **could not be measured**: the pools share nearly all their texts, and too few "
        "are left to learn from; take smaller pools or more documents; 24 distractors among 360 "
        "other passages that are not golden, in the pools of 12 questions.",
    )
    assert "| lakes | opening | – | – |" in format_study(REALISM, result)


@pytest.mark.parametrize(("n_documents", "n_candidates"), [(12, 6), (30, 12)])
def test_pools_that_share_some_texts_are_measured(n_documents, n_candidates):
    report = measure_realism(in_common(n_documents, n_candidates))
    assert report.is_measured
    assert "opening" in report.flagged
    assert auc(report, "opening").mean == 1


def test_few_questions_are_told():
    [finding] = tabulate([measure_realism(lakes(n_pools=12))]).findings
    told = "Where all 12 come out alike, up to 25 % of other questions may still not."
    assert finding.endswith(f"in the pools of 12 questions. {told}")
    [finding] = tabulate([measure_realism(lakes())]).findings
    assert finding.endswith("in the pools of 30 questions.")


def test_golden_passages_are_the_yardstick():
    report = measure_realism(lakes(lambda text, dice: f"Deceptive: {text}"))
    golden = next(one for one in report.families if one.name == "opening").golden
    assert golden is not None
    assert golden.low < 0.5 < golden.high


def test_only_the_asked_types_count():
    labelled = lakes(lambda text, dice: f"Deceptive: {text}", n_pools=20)
    mixed = [*labelled, *lakes(kind="natural", n_pools=20)]
    dataset = Dataset("mixed", lambda: mixed)
    both = measure_realism(dataset)
    assert [(one.name, one.n_distractors) for one in both.kinds] == [
        ("planted", 40), ("natural", 40),
    ]  # fmt: skip
    assert measure_realism(dataset, kinds=["natural"]).flagged == ()
    assert measure_realism(dataset, kinds=["planted"]).n_distractors == 40


def test_first_stage_scores_are_compared_where_all_have_one():
    def scored(instance):
        return instance.model_copy(
            update={
                "contexts": tuple(
                    one.model_copy(update={"first_stage_score": 2.0 if one.is_distractor else 1.0})
                    for one in instance.contexts
                )
            }
        )

    instances = [scored(one) for one in lakes(n_pools=5)]
    words, scores = measure_realism(Dataset("scored", lambda: instances)).similarities
    assert (scores.distractors, scores.hardest, scores.others, scores.near) == (2, 1, 1, 1)
    assert scores.closer.mean == 1
    assert 0 <= words.others <= 1
    assert len(measure_realism(lakes(n_pools=5)).similarities) == 1


def test_a_report_is_the_same_every_time():
    first, second = (measure_realism(lakes(n_pools=6)) for _ in range(2))
    assert first == second
    assert tabulate([first]) == tabulate([second])


def test_the_report_has_a_verdict_and_tables():
    report = measure_realism(lakes(lambda text, dice: f"Deceptive: {text}", n_pools=25))
    result = tabulate([report])
    assert result.findings[0].startswith(f"lakes: **flagged**: {', '.join(report.flagged)} tell")
    families = next(one for one in result.grids if one.name == "families")
    assert families.rows[0][2].mean == pytest.approx(report.families[0].auc.mean)
    assert "| lakes | opening | 1 [1, 1] |" in format_study(REALISM, result)


@pytest.mark.parametrize("n_pools", [0, 1])
def test_fewer_than_two_pools_are_refused(n_pools):
    with pytest.raises(DatasetError, match=f"'lakes' has {n_pools} pools with distractors"):
        measure_realism(lakes(n_pools=n_pools))


def test_a_type_that_is_not_there_is_named():
    with pytest.raises(DatasetError, match="no distractor of type 'misleading'; it has 'planted'"):
        measure_realism(lakes(n_pools=4), kinds=["misleading"])


def test_two_pools_are_enough_to_run():
    assert measure_realism(lakes(n_pools=2)).n_questions == 2


def test_the_auc_is_taken_within_pools():
    pool = np.array([0, 0, 0, 1, 1])
    labels = np.array([True, False, False, True, False])
    scores = np.array([0.5, 0.1, 0.5, 9.0, 10.0])
    assert auc_within_pools(pool, labels, scores).mean == pytest.approx((0.75 + 0) / 2)


def test_a_shape_keeps_only_how_a_text_is_put_together():
    assert shape("IL-6 rose (P < 0.05), and pH fell.") == "A-0 a (A < 0.0), a a a."


def test_a_family_has_a_name_a_column():
    for family in extract_features(["The pH rose.", "It fell by 4%.", "The ice melted."]).values():
        assert family.matrix.shape == (3, len(family.names))


@pytest.mark.slow
@pytest.mark.skipif(not SHARED_DATA.exists(), reason="needs the evaluation data")
class TestRealData:
    def test_natural_look_alikes_pass(self):
        report = measure_realism(open_dataset(SHARED_DATA / "pubmedqa_dev/natural.jsonl"))
        assert report.flagged == ()
        assert all(one.auc.mean <= 0.65 for one in report.families)

    def test_a_label_in_front_of_natural_look_alikes_is_flagged(self):
        natural = open_dataset(SHARED_DATA / "pubmedqa_dev/natural.jsonl")

        def labelled(instance):
            contexts = tuple(
                one.model_copy(update={"text": f"Deceptive: {one.text}"})
                if one.is_distractor
                else one
                for one in instance.contexts
            )
            return instance.model_copy(update={"contexts": contexts})

        report = measure_realism(Dataset("planted", lambda: map(labelled, natural)))
        assert auc(report, "opening").low > 0.95
        assert auc(report, "style").low > 0.95

    def test_written_ones_are_flagged(self):
        dataset = open_dataset(SHARED_DATA / "pubmedqa_dev/written.jsonl")
        report = measure_realism(dataset, kinds=["misleading_outcome", "misleading_scope"])
        assert set(report.flagged) == {"length", "opening", "style"}
        assert auc(report, "style").low > 0.95
