"""The real services, where there is a network: `pytest -m live tests/papers/sources`."""

import pytest

from deepera_graph.papers import Scope
from deepera_graph.papers.sources import NAMES, open_source
from support.literature import QUESTION


@pytest.mark.live
@pytest.mark.enable_socket
@pytest.mark.parametrize("name", NAMES)
def test_a_service_still_answers_as_it_documents(name):
    answer = open_source(name, seconds=30).search(QUESTION, 5, Scope(year_from=2010, year_to=2020))
    if answer.status == "rate_limited":
        pytest.skip(str(answer))
    assert answer.status == "ok", answer
    assert all(2010 <= (one.year or 2010) <= 2020 for one in answer)
    assert any(one.abstract for one in answer)
