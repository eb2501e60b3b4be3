import pytest

from deepera_graph.stores.judgements import JudgementCache

VALUE = {"score": 0.25, "reason": "rose by 4 %", "quote": "λ rose", "repaired": False}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cache" / "judgements.sqlite3"


@pytest.fixture
def cache(path):
    with JudgementCache(path, timeout=0.05) as cache:
        yield cache


@pytest.fixture
def value():
    return dict(VALUE)
