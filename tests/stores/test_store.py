"""One cache in one process: what goes in comes out, and what goes wrong is said."""

import os
import pickle
import sqlite3
import stat
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier

import pytest

from deepera_graph.errors import SettingsError, StoreError
from deepera_graph.stores import judgements as store_module
from deepera_graph.stores.judgements import JudgementCache

DAY = 24 * 60 * 60


def run_sql(path, statement, *values):
    with closing(sqlite3.connect(path)) as other, other:
        return other.execute(statement, values).fetchall()


@pytest.fixture
def lock(cache, path):
    """Lock the file as another process would: against writing, or against all."""
    cache.open()
    with closing(sqlite3.connect(path, isolation_level=None, timeout=5)) as other:

        def take(*, reading):
            if reading:
                cache.close()
                other.execute("PRAGMA locking_mode = EXCLUSIVE")
            other.execute("BEGIN EXCLUSIVE")

        yield take


def test_what_is_put_comes_back(cache, value):
    assert cache.put("k", "judge", value)
    assert cache.get("k") == value


def test_a_cache_in_memory_holds_what_is_put(value):
    with JudgementCache() as cache:
        assert cache.put("k", "judge", value)
        assert cache.get("k") == value
        assert cache.stats().n_bytes > 0


def test_an_unknown_key_is_a_miss(cache):
    assert cache.get("k") is None


@pytest.mark.parametrize(
    "text", ["", "葡萄糖 🧪", "\x00\x01", "\ud800 alone", "'; DROP TABLE judgement;"]
)
def test_any_text_survives(cache, text):
    cache.put("k", "judge", {"reason": text})
    assert cache.get("k") == {"reason": text}


@pytest.mark.parametrize("score", [0.1, 1 / 3, 1.0, 5e-324, 0.30000000000000004])
def test_a_float_comes_back_to_the_last_bit(cache, score):
    cache.put("k", "judge", {"score": score})
    back = cache.get("k")["score"]
    assert (type(back), back.hex()) == (float, score.hex())


def test_the_first_answer_stays(cache, value):
    cache.put("k", "judge", value)
    assert not cache.put("k", "judge", {**value, "score": 0.75})
    assert cache.get("k") == value


def test_a_forgotten_answer_can_be_put_again(cache, value):
    cache.put("k", "judge", value)
    cache.forget("k")
    assert cache.get("k") is None
    assert cache.put("k", "judge", value)


def test_a_closed_cache_opens_again(cache, value):
    cache.put("k", "judge", value)
    cache.close()
    cache.close()
    assert cache.get("k") == value


def test_a_pickled_cache_finds_its_file(cache, value):
    cache.put("k", "judge", value)
    with pickle.loads(pickle.dumps(cache)) as copy:
        assert copy.get("k") == value


def test_a_relative_path_is_kept_when_the_folder_changes(tmp_path, monkeypatch, value):
    monkeypatch.chdir(tmp_path)
    with JudgementCache(Path("here.sqlite3")) as cache:
        cache.put("k", "judge", value)
        cache.close()
        monkeypatch.chdir("/")
        assert cache.get("k") == value


def test_nothing_is_made_before_the_first_use(path):
    JudgementCache(path).close()
    assert not path.parent.exists()


def test_only_the_owner_can_read_what_is_stored(cache, path, value):
    before = os.umask(0)
    try:
        cache.put("k", "judge", value)
    finally:
        os.umask(before)
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.full
def test_many_threads_share_one_cache(cache):
    def work(number):
        key = f"k{number % 50}"
        cache.put(key, "judge", {"score": number % 50})
        return cache.get(key) == {"score": number % 50}

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(work, range(1000)))
    assert cache.stats().n_entries == 50


@pytest.mark.full
def test_all_who_open_a_new_file_at_once_can_use_it(tmp_path):
    barrier = Barrier(8)

    def work(number):
        barrier.wait(timeout=10)
        with JudgementCache(tmp_path / str(number // 8), timeout=20) as cache:
            return cache.open().put(str(number), "judge", {})

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(40 * 8)))


def test_a_call_is_fast_enough_for_the_event_loop(cache, value):
    def median(call):
        seconds = []
        for number in range(400):
            start = time.perf_counter()
            call(f"k{number}")
            seconds.append(time.perf_counter() - start)
        return statistics.median(seconds)

    assert median(lambda key: cache.put(key, "judge", value)) < 0.5e-3
    assert median(cache.get) < 0.2e-3


def test_stats_of_an_empty_cache(cache):
    stats = cache.stats()
    assert (stats.entries, stats.n_entries, stats.oldest, stats.newest) == ({}, 0, None, None)


def test_stats_count_each_role(cache, path, value):
    for key, role in (("a", "judge"), ("b", "judge"), ("c", "intent")):
        cache.put(key, role, value)
    run_sql(path, "UPDATE judgement SET created = created - ? WHERE key = 'a'", DAY)
    stats = cache.stats()
    assert stats.entries == {"intent": 1, "judge": 2}
    assert stats.n_bytes >= path.stat().st_size > 0
    assert timedelta(days=1) <= stats.newest - stats.oldest < timedelta(days=1, minutes=1)
    assert abs(datetime.now(UTC) - stats.newest) < timedelta(minutes=1)


def test_clear_removes_everything_and_gives_the_space_back(cache, path):
    for number in range(300):
        cache.put(str(number), "judge", {"reason": "r" * 2000})
    assert cache.clear() == 300
    assert cache.stats().n_entries == 0
    assert cache.stats().n_bytes < 100_000
    assert cache.clear() == 0


def test_prune_removes_what_was_not_used_for_long(cache, path, value):
    for key, days in (("new", 0), ("old", 8), ("older", 30)):
        cache.put(key, "judge", value)
        run_sql(
            path, "UPDATE judgement SET last_used = last_used - ? WHERE key = ?", days * DAY, key
        )
    assert cache.prune(older_than_days=7.5) == 2
    assert cache.get("new") == value


def test_prune_by_size_removes_the_least_recently_used_first(cache, path):
    for number in range(1000):
        cache.put(f"{number:064}", "judge", {"reason": "r" * 300})
    run_sql(path, "UPDATE judgement SET last_used = last_used - ? * (1000 - key)", DAY)
    limit = 200_000
    n_removed = cache.prune(max_bytes=limit)
    cache.close()
    assert 0.8 * limit < path.stat().st_size < limit + 32_768
    kept = [number for number in range(1000) if cache.get(f"{number:064}")]
    assert kept == list(range(n_removed, 1000))


def test_what_is_just_as_large_as_allowed_stays(cache, path, value):
    for name in "abc":
        cache.put(name, "judge", value)
    ((size,),) = run_sql(path, "SELECT sum(size) FROM judgement")
    assert cache.prune(max_bytes=size) == 0
    assert cache.prune(max_bytes=size - 1) == 1


def test_prune_to_nothing_removes_everything(cache, value):
    cache.put("k", "judge", value)
    assert cache.prune(max_bytes=0) == 1
    assert cache.prune(older_than_days=0) == 0


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        pytest.param({}, "got neither", id="neither"),
        pytest.param({"older_than_days": -1}, "older_than_days must be >= 0, got -1", id="days"),
        pytest.param({"older_than_days": float("nan")}, "got nan", id="nan"),
        pytest.param({"max_bytes": -5}, "max_bytes must be >= 0, got -5", id="bytes"),
    ],
)
def test_prune_refuses_senseless_limits(cache, limits, message):
    with pytest.raises(SettingsError, match=message):
        cache.prune(**limits)


def test_a_use_is_noted_once_a_day(cache, path, value):
    cache.put("k", "judge", value)
    ((put,),) = run_sql(path, "SELECT last_used FROM judgement")
    run_sql(path, "UPDATE judgement SET last_used = ?", put - DAY // 2)
    cache.get("k")
    assert run_sql(path, "SELECT last_used FROM judgement") == [(put - DAY // 2,)]
    run_sql(path, "UPDATE judgement SET last_used = ?", put - 2 * DAY)
    cache.get("k")
    ((noted,),) = run_sql(path, "SELECT last_used FROM judgement")
    assert noted >= put


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"my thesis, chapter 1\n" * 200, id="text"),
        pytest.param(b"x", id="one-byte"),
        pytest.param(b"SQLite format 3\x00" + b"\xff" * 4096, id="broken-header"),
    ],
)
def test_a_file_that_is_no_database_is_named_and_left_alone(cache, path, content):
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"judgements\.sqlite3.* cannot be used.*delete the file"):
        cache.open()
    assert path.read_bytes() == content


def test_a_database_of_another_program_is_named_and_left_alone(cache, path):
    path.parent.mkdir()
    run_sql(path, "CREATE TABLE thesis (chapter TEXT)")
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"judgements\.sqlite3.*a database of another program"):
        cache.stats()
    assert path.read_bytes() == before


def test_a_cache_of_another_format_is_refused(cache, path, value):
    cache.put("k", "judge", value)
    run_sql(path, "PRAGMA user_version = 2")
    cache.close()
    with pytest.raises(StoreError, match=r"has format 2, and this version .* reads format 1"):
        cache.open()
    assert run_sql(path, "SELECT count(*) FROM judgement") == [(1,)]


def test_a_damaged_table_is_a_miss_in_a_run_and_an_error_in_stats(cache, path, caplog):
    for number in range(200):
        cache.put(str(number), "judge", {"reason": "r" * 400})
    cache.close()
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\x5a" * (len(content) - 4096))
    assert cache.get("7") is None
    assert cache.get("8") is None
    assert len(caplog.records) == 1
    with pytest.raises(StoreError, match="cannot be used"):
        cache.stats()


@pytest.mark.parametrize("text", ["{", "[1]", "7", ""])
def test_a_damaged_answer_is_a_miss_and_makes_room(cache, path, value, text):
    cache.put("k", "judge", value)
    run_sql(path, "UPDATE judgement SET value = ?", text)
    assert cache.get("k") is None
    assert cache.put("k", "judge", value)


@pytest.mark.parametrize("call", ["open", "stats", "clear"])
def test_a_path_that_is_a_folder_is_an_error(path, call):
    path.mkdir(parents=True)
    with JudgementCache(path) as cache, pytest.raises(StoreError, match="Is a directory"):
        getattr(cache, call)()


def test_a_folder_that_is_a_file_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        JudgementCache(tmp_path / "file" / "c.sqlite3") as cache,
        pytest.raises(StoreError, match="cannot be used"),
    ):
        cache.open()


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="needs POSIX users")
def test_a_read_only_folder_is_an_error_at_the_start_and_a_miss_in_a_run(caplog, value):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o555)
        cache = JudgementCache(Path(folder) / "judgements.sqlite3")
        user = os.geteuid()
        os.seteuid(user or 65534)  # the superuser may write anywhere
        try:
            with pytest.raises(StoreError, match=r"judgements\.sqlite3.*Permission denied"):
                cache.open()
            assert not cache.put("k", "judge", value)
            assert cache.get("k") is None
        finally:
            os.seteuid(user)
            Path(folder).chmod(0o700)
    assert len(caplog.records) == 2


def test_a_file_locked_for_writing_still_answers(cache, lock, value, caplog):
    cache.put("k", "judge", value)
    lock(reading=False)
    assert not cache.put("other", "judge", value)
    assert cache.get("k") == value
    assert not cache.put("third", "judge", value)
    assert len(caplog.records) == 1
    assert "cannot write the judgement cache" in caplog.text


@pytest.mark.full
def test_a_file_locked_for_reading_is_a_miss(cache, lock, value, caplog):
    cache.put("k", "judge", value)
    lock(reading=True)
    assert cache.get("k") is None
    assert cache.get("k") is None
    assert len(caplog.records) == 1
    with pytest.raises(StoreError, match="another process holds it"):
        cache.stats()


def test_a_locked_file_is_waited_for_only_once_in_a_while(cache, lock, value):
    lock(reading=False)
    start = time.perf_counter()
    for number in range(100):
        cache.put(str(number), "judge", value)
    assert time.perf_counter() - start < 1  # 100 waits would take 5 s


def test_a_file_is_used_again_once_the_lock_is_gone(cache, path, value, monkeypatch):
    monkeypatch.setattr(store_module, "REST_SECONDS", 0)
    cache.open()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert not cache.put("k", "judge", value)
    assert cache.put("k", "judge", value)
