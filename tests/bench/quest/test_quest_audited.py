"""What a build writes is what an audit reads."""

from collections import Counter

import pytest

from bench.quest.conftest import read
from deepera_graph.lab.quest.audit.drawing import draw_audit


@pytest.mark.full
def test_every_judged_pair_of_a_build_can_be_drawn(build, tmp_path):
    result = build()
    judged = Counter(one["grade"] for one in read(result.folder, "judgements.jsonl"))
    audit = draw_audit(result.folder, tmp_path / "audit", per_grade=5)
    assert audit.judged == tuple(judged[grade] for grade in (0, 1, 2))
    assert audit.about["left_out"] == {}
    assert all(one.question and one.title and one.intent for one in audit.pairs.values())
    assert any(one.constraints for one in audit.pairs.values())
    strict = [one for one in audit.key.values() if one.grade == 2]
    assert strict
    assert all(one.evidence and one.grades["writer"] == 2 for one in strict)
