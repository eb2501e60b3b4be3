"""What wrong passages are like, and other pools of the same passages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepera_graph.lab.training.lessons.augment import (
    VARIANTS,
    add_variants,
    classify_negative,
    label_results,
)
from deepera_graph.lab.training.lessons.pools import OTHER_PAPER
from support.pools import pool

KINDS = st.sampled_from([OTHER_PAPER, "methods", "background", "BODY.RESULTS", "speculative"])
PASSAGES = st.lists(st.tuples(st.sampled_from([0, 0, 0, 1]), KINDS), min_size=1, max_size=25)


def of(drawn):
    return pool("roofs", [label for label, _ in drawn], kinds=[kind for _, kind in drawn])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (OTHER_PAPER, "other paper"),
        ("misleading_outcome", "other outcome"),
        ("misleading_scope", "other population"),
        ("speculative", "speculation"),
        ("BODY.4. DISCUSSION", "speculation"),
        ("BODY.RESULTS", "other outcome"),
        ("background and aims", "background"),
        ("materials and methods", "methods"),
        ("main outcome measures", "methods"),
        ("study objective", "aims"),
        ("TITLE", "background"),
        ("BODY.COMPETING INTERESTS", "other part"),
        ("", "other part"),
    ],
)
def test_a_heading_tells_the_type_of_a_negative(kind, expected):
    assert classify_negative(kind) == expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("sibling", (1, 1.0)),
        ("natural_other_result", (1, 1.0)),
        ("written_other_outcome", (1, 1.0)),
        ("written_other_population", (1, 1.0)),
        ("natural_background", (0, 1.0)),
        ("written_protocol", (0, 1.0)),
        ("setting", (0, 1.0)),
        ("near miss", None),
        (OTHER_PAPER, None),
    ],
)
def test_findings_on_something_else_are_results(kind, expected):
    one = pool("roofs", [1, 0, 0], kinds=["", OTHER_PAPER, kind])
    assert label_results(one, kind, 0) == expected


@pytest.mark.full
@given(PASSAGES, st.integers(0, 5))
def test_variants_keep_all_evidence_or_none_and_the_order(drawn, seed):
    whole = of(drawn)
    golden = [one for one in whole.passages if one.label]
    for variant in add_variants([whole], seed=seed)[1:]:
        kept = list(variant.passages)
        assert kept == [one for one in whole.passages if one in kept]
        assert len(kept) < len(whole.passages) or not golden
        found = [one for one in kept if one.label]
        assert found == ([] if "without evidence" in variant.id else golden)
        assert variant.n_golden == whole.n_golden
        assert (variant.group, variant.set, variant.weight) == (whole.group, whole.set, 0.5)


@pytest.mark.full
@given(PASSAGES, st.integers(0, 5))
def test_the_variant_of_a_pool_does_not_depend_on_other_pools(drawn, seed):
    one, other = of(drawn), pool("lamps", [1] + [0] * 9)
    alone = add_variants([one], kinds=("sub-pool",), seed=seed)[1:]
    among = add_variants([other, one], kinds=("sub-pool",), seed=seed)[2:]
    assert [its for its in among if its.id.startswith("roofs")] == alone


def test_siblings_are_other_parts_of_the_paper_that_answers():
    whole = pool("roofs", [0, 1, 0], kinds=["methods", "", OTHER_PAPER])
    [_, variant] = add_variants([whole], kinds=("without siblings",))
    assert variant.passages == whole.passages[1:]


def test_pools_for_measuring_alone_have_no_variants():
    whole = pool("roofs", [1] + [0] * 9, weight=0)
    assert add_variants([whole], kinds=tuple(VARIANTS)) == [whole]
