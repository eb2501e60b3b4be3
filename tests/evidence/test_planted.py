"""Manuscripts with planted errors: all are found or told, and nothing right is called wrong."""

import pytest

from deepera_graph import ManuscriptCheck, WorkLibrary, read_passages
from support.manuscripts import LIBRARY, PLANTED, WORKS, write_manuscript

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def checker():
    return ManuscriptCheck(library=WorkLibrary(read_passages(LIBRARY)))


@pytest.fixture(scope="module", params=PLANTED, ids=lambda one: one.name)
def checked(request, checker, tmp_path_factory):
    path = write_manuscript(request.param, tmp_path_factory.mktemp("manuscript"))
    return request.param, checker.check(path)


def pairs_of(report, number):
    return [one for one in report.pairs if one.claim.number == number]


def is_told(kind, pairs):
    """Whether an error of a kind is found, or told in a note."""
    [pair, *_] = pairs
    notes = " ".join(pair.notes)
    return {
        "wrong reference": pair.verdict == "not_found",
        "inverted": pair.verdict == "contradicted" or "may say the opposite" in notes,
        "population": pair.verdict == "partly" and "another population" in notes,
        "retracted": pair.verdict == "retracted",
        "missing": pair.verdict == "missing",
        "method": pair.verdict == "method",
        "range": len(pairs) == 3,
    }[kind]


def test_every_planted_error_is_found_or_told(checked):
    planted, report = checked
    assert len(report.manuscript.claims) == len(planted.sentences)
    found = {kind: is_told(kind, pairs_of(report, number)) for kind, number in planted.errors}
    assert found == dict.fromkeys(found, True)


def test_what_is_right_is_supported_and_never_contradicted(checked):
    planted, report = checked
    wrong = {number for _, number in planted.errors}
    right = [one for one in report.pairs if one.claim.number not in wrong]
    assert all(one.verdict != "contradicted" for one in right)
    plain = [one for one in right if one.claim.purpose == "finding"]
    assert all(one.verdict == "supported" for one in plain)


def test_a_work_that_is_listed_twice_is_told(checked):
    planted, report = checked
    n_times = [len(group) for group in report.manuscript.duplicates]
    assert n_times == ([2] if planted.duplicate else [])


def test_a_deciding_sentence_stands_in_its_work(checked):
    _, report = checked
    texts = " ".join(work["text"] for work in WORKS.values())
    assert all(one.quote in texts for one in report.pairs)
