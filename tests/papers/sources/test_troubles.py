"""What goes wrong with a service: its status says so, in time, and no key is anywhere."""

import logging
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from deepera_graph.papers.sources import NAMES, open_source, open_sources
from deepera_graph.papers.sources.http import Host
from deepera_graph.stores.judgements import open_cache
from support import literature
from support.literature import QUESTION, TRIAL

pytestmark = pytest.mark.full

KEYS = {
    "pubmed": "NCBI_API_KEY",
    "openalex": "OPENALEX_API_KEY",
    "semantic_scholar": "S2_API_KEY",
}
SECRET = "never-to-be-seen-7f3a"
TROUBLES = {
    "500": ("failed", "HTTP 500: out of order"),
    "html": ("failed", "it answered an HTML page instead of data"),
    "empty body": ("failed", "it answered nothing, an empty body"),
    "refused": ("failed", "HTTP 403: Invalid key"),
    "moved": ("failed", "HTTP 302, a redirection, which is not followed as a key might go along"),
    "hours": ("rate_limited", "HTTP 429: Rate limit exceeded"),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("fault", TROUBLES)
def test_a_service_in_trouble_has_a_status_and_a_reason(world, name, fault):
    world.faults[name] = fault
    answer = open_source(name, seconds=5).search(QUESTION)
    assert (answer.status, answer.reason) == TROUBLES[fault]
    assert answer.retry_after == (54000 if fault == "hours" else None)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("fault", ["truncated", "other"])
def test_an_answer_that_cannot_be_read_is_a_failure_and_not_an_empty_one(world, name, fault):
    world.faults[name] = fault
    answer = open_source(name).search(QUESTION)
    assert answer.status == "failed"
    assert "is broken" in answer.reason or "not in the form" in answer.reason


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("code", [200, 500])
def test_an_answer_nested_too_deeply_is_a_failure(world, name, code):
    world.faults[name] = f"nested {code}"
    assert open_source(name).search(QUESTION).status == "failed"


@pytest.mark.parametrize("name", ["europe_pmc", "openalex", "semantic_scholar"])
def test_a_record_of_another_form_costs_the_others_nothing(world, name):
    well = open_source(name).search(QUESTION)
    world.faults[name] = "one odd record"
    answer = open_source(name).search(QUESTION)
    assert answer.status == "ok"
    assert answer.records == well.records
    assert answer.left_out == {**well.left_out, "unreadable": 1}


def test_a_number_that_is_infinite_is_a_failure(world):
    world.faults["semantic_scholar"] = "infinite"
    assert open_source("semantic_scholar").search(QUESTION).status == "failed"


def test_an_error_that_arxiv_writes_as_a_paper_is_none(world):
    world.faults["arxiv"] = "error"
    answer = open_source("arxiv").search(QUESTION)
    assert (answer.status, answer.reason) == ("failed", "incorrect id format")


@pytest.mark.parametrize(
    ("fault", "least"), [("date", 10**9), ("reset", 7000), ("spent", 8000), ("hours", 53000)]
)
def test_a_service_that_asks_to_wait_is_not_slept_for_nor_asked_again(world, fault, least):
    world.faults["openalex"] = fault
    source = open_source("openalex", seconds=5)
    first, second = source.search(QUESTION), source.search(QUESTION)
    assert first.status == second.status == "rate_limited"
    assert first.retry_after >= least
    assert second.retry_after >= least
    assert len(world.sent) == 1


def test_a_wait_without_end_is_no_wait_that_is_named(world):
    world.faults["openalex"] = "forever"
    source = open_source("openalex", seconds=5)
    answer = source.search(QUESTION)
    assert (answer.status, answer.retry_after) == ("rate_limited", None)
    world.faults.clear()
    assert source.search(QUESTION).status == "ok"


def test_a_limit_while_there_are_credits_is_lifted_soon(world):
    world.faults["openalex"] = "burst"
    source = open_source("openalex", seconds=5)
    answer = source.search(QUESTION)
    assert (answer.status, answer.retry_after, len(world.sent)) == ("rate_limited", None, 3)
    world.faults.clear()
    assert source.search(QUESTION).status == "ok"


@pytest.mark.parametrize("name", NAMES)
def test_a_wait_that_is_over_in_time_is_waited_for(world, name):
    world.faults[name] = "soon"
    assert open_source(name, seconds=5).search(QUESTION).status == "ok"


def test_a_key_that_is_refused_is_doubted(world, monkeypatch):
    monkeypatch.setenv("S2_API_KEY", SECRET)
    world.faults["semantic_scholar"] = "refused"
    answer = open_source("semantic_scholar").search(QUESTION)
    assert answer.reason == "HTTP 403: Invalid key; is the key right?"


def test_a_key_that_is_echoed_as_it_stands_in_an_address_is_hidden(world, monkeypatch):
    monkeypatch.setenv("OPENALEX_API_KEY", "two+words/and==")
    world.faults["openalex"], world.echo = "refused", "two%2Bwords%2Fand%3D%3D"
    answer = open_source("openalex").search(QUESTION)
    assert answer.reason == "HTTP 403: Invalid key ***; is the key right?"


@pytest.mark.full
@pytest.mark.parametrize("fault", ["refused", "said", "text"])
def test_no_part_of_a_key_is_left_where_a_long_message_is_cut(world, monkeypatch, fault):
    monkeypatch.setenv("OPENALEX_API_KEY", SECRET)
    for n in range(10, 120, 4):
        world.faults["openalex"], world.echo = fault, f"{'x' * n}{SECRET}"
        answer = open_source("openalex").search(QUESTION)
        assert answer.status == "failed"
        assert SECRET[:5] not in answer.reason


def test_an_address_in_an_abstract_is_the_same_from_the_disk(world, tmp_path, monkeypatch):
    text = "Tea data: https://me@data.org/x?email=a@b.org"
    monkeypatch.setitem(literature.ABSTRACTS, TRIAL, text)
    with open_cache(tmp_path) as kept:
        source = open_source("europe_pmc", cache=kept)
        fresh, again = source.search(QUESTION), source.search(QUESTION)
    assert (fresh.cached, again.cached) == (False, True)
    assert text in fresh[0].abstract
    assert fresh.records == again.records


def test_a_login_in_an_address_is_not_shown(world, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("DEEPERA_ARXIV_URL", world.url("arxiv").replace("//", f"//me:{SECRET}@"))
    source = open_source("arxiv")
    answer = source.search(QUESTION)
    assert answer.status == "ok"
    assert SECRET not in f"{answer.describe()} {caplog.text} {source.describe()} {source!r}"
    assert "127.0.0.1" in answer.asked


@pytest.mark.full
def test_threads_ask_at_once_and_get_the_same(world):
    literature = open_sources("all")
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(literature.search, [QUESTION] * 4))
    assert all(one.hits == found[0].hits for one in found)


def test_a_service_that_breaks_off_is_asked_again(world):
    world.faults["pubmed"] = "500"
    open_source("pubmed").search(QUESTION)
    assert len(world.sent) == 3


def test_a_slow_service_ends_with_the_time_and_keeps_nobody(world):
    world.faults["arxiv"] = "slow"
    slow = open_source("arxiv", seconds=0.2)
    found = open_sources(["pubmed", slow]).search(QUESTION)
    assert [one.status for one in found.answers] == ["ok", "failed"]
    assert found.answers[1].reason == "it did not answer within 0.2 s"
    assert len(found) == 3


def test_what_cannot_be_reached_is_a_failure(world, monkeypatch):
    monkeypatch.setenv("DEEPERA_ARXIV_URL", "http://127.0.0.1:9/api")
    answer = open_source("arxiv").search(QUESTION)
    assert answer.status == "failed"
    assert answer.reason.startswith("it cannot be reached: ")


def test_turns_are_taken_at_a_distance_and_none_past_the_deadline(monkeypatch):
    monkeypatch.setattr("deepera_graph.papers.sources.http.time.monotonic", lambda: 100.0)
    host = Host()
    assert [host.reserve(3.0, 107.0) for _ in range(4)] == [0.0, 3.0, 6.0, None]


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("fault", ["", "500", "html", "refused", "hours"])
def test_a_key_is_sent_and_nowhere_else(world, name, fault, tmp_path, monkeypatch, caplog):
    monkeypatch.setenv(KEYS[name], SECRET)
    world.faults[name], world.echo = fault, SECRET
    caplog.set_level(logging.DEBUG)
    kept = open_cache(tmp_path)
    found = open_sources(name, cache=kept).search(QUESTION)
    kept.close()
    sent = world.of(name)
    assert all(SECRET in f"{one.path} {one.headers}" for one in sent)
    assert SECRET not in f"{found} {found.describe()} {found.problems}{found.to_documents()}"
    assert SECRET not in caplog.text
    assert "HTTP Request" in caplog.text
    assert [one.name for one in tmp_path.iterdir() if SECRET.encode() in one.read_bytes()] == []


def test_an_answer_is_kept_on_disk_with_or_without_a_key(world, tmp_path, monkeypatch):
    with open_cache(tmp_path) as kept:
        first = open_sources("all", cache=kept).search(QUESTION)
        n_sent = len(world.sent)
        monkeypatch.setenv("OPENALEX_API_KEY", SECRET)
        second = open_sources("all", cache=kept).search(QUESTION)
        assert len(world.sent) == n_sent
        assert [one.cached for one in second.answers] == [True] * 5
        assert first.records == second.records
        assert set(kept.stats().entries) == {f"source {name}" for name in NAMES}


def test_an_answer_that_is_a_week_old_is_asked_for_again(world, tmp_path, monkeypatch):
    with open_cache(tmp_path) as kept:
        source = open_source("arxiv", cache=kept)
        source.search(QUESTION)
        later = time.time() + 8 * 24 * 3600
        monkeypatch.setattr("deepera_graph.papers.sources.http.time.time", lambda: later)
        assert not source.search(QUESTION).cached
        assert source.search(QUESTION).cached
        assert len(world.sent) == 2


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("fault", ["html", "other", "truncated"])
def test_what_failed_is_not_kept(world, tmp_path, name, fault):
    world.faults[name] = fault
    with open_cache(tmp_path) as kept:
        open_source(name, cache=kept).search(QUESTION)
        assert kept.stats().n_entries == 0
