"""Vectors kept on disk: nothing is encoded twice, nothing changes, and no file is trouble."""

import multiprocessing
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from deepera_graph import EvidenceReranker, SettingsError, local_backend
from deepera_graph.judges.trained import kept as kept_module
from deepera_graph.judges.trained.backend import Weights, local_model
from deepera_graph.judges.trained.kept import FILE_NAME, KeptVectors
from deepera_graph.judges.trained.reading.encoder import Encoder
from deepera_graph.judges.trained.reading.vectors import Encoded
from support.list_judges import QUESTION

pytestmark = pytest.mark.full

INTENT = {"topic": "", "entity_type": "", "intent": "other", "expected_answer_type": "other"}
WINDOWS = [
    {"title": "", "text": "Wax coating kept apples firm for ninety days.", "section": ""},
    {"title": "A trial", "text": "Coated apples lost 6% of firmness, others 31%.", "section": ""},
    {"title": "", "text": "Firmness will be measured. The protocol is registered.", "section": ""},
]
N_TEXTS = 5  # question, title and three texts


def encoded(seed, n_tokens=6):
    """A text as an encoder gives it: numbers of 16 bits."""
    tokens = np.random.default_rng(seed).normal(size=(n_tokens, 4)).astype(np.float16)
    offsets = np.arange(2 * n_tokens).reshape(-1, 2)
    return Encoded(tokens.astype(np.float32), offsets)


def same(one, other):
    return np.array_equal(one.tokens, other.tokens) and np.array_equal(one.offsets, other.offsets)


def fill(folder, texts, version="a", **how):
    with_limit = {"max_mb": 1, **how}
    store = KeptVectors(folder, version, **with_limit)
    for text in texts:
        store.add(text, encoded(len(text)))
    store.close()


def found(folder, texts, version="a"):
    store = KeptVectors(folder, version, max_mb=1)
    return [text for text in texts if store.find(text) is not None]


class CountedSession:
    """Counts what the model is asked."""

    def __init__(self, session):
        self.session, self.n_runs = session, 0

    def run(self, *given):
        self.n_runs += 1
        return self.session.run(*given)


def anew(folder):
    """The shipped judge as a new process has it, with nothing in memory, and its counter."""
    model = local_model().keeping(folder, max_mb=10, weights=Weights().place())
    model.encoder.restart()
    counted = CountedSession(model.encoder._session)
    model.encoder.__dict__["_session"] = counted
    return model, counted


def test_what_was_kept_is_not_encoded_again_and_the_judgements_are_the_same(tmp_path):
    plain = local_model().judge(QUESTION, INTENT, WINDOWS)
    first, counted = anew(tmp_path)
    assert first.judge(QUESTION, INTENT, WINDOWS) == plain
    assert counted.n_runs == N_TEXTS
    second, counted = anew(tmp_path)
    second.read_ahead(WINDOWS)
    assert second.judge(QUESTION, INTENT, WINDOWS) == plain
    assert counted.n_runs == 0
    second.judge("Do pears stay firm?", INTENT, WINDOWS)
    assert counted.n_runs == 1


def test_what_was_in_memory_is_kept_too(tmp_path):
    local_model().judge(QUESTION, INTENT, WINDOWS)
    local_model(keep_in=tmp_path).judge(QUESTION, INTENT, WINDOWS)
    second, counted = anew(tmp_path)
    second.judge(QUESTION, INTENT, WINDOWS)
    assert counted.n_runs == 0


def test_vectors_are_what_is_kept_of_them():
    found = local_model().encoder.encode([WINDOWS[0]["text"]])[0]
    assert (found.tokens.dtype, found.vectors.dtype) == (np.float16, np.float32)
    assert np.array_equal(found.tokens, found.vectors)


def test_texts_come_back_as_they_were_whatever_is_in_them(tmp_path):
    texts = ["plain", "", "\ud800 half a pair", "Ärger 漢字"]
    fill(tmp_path, texts)
    store = KeptVectors(tmp_path, "a", max_mb=1)
    for text in texts:
        assert same(store.find(text), encoded(len(text)))
    assert store.find("another") is None


def test_other_weights_find_nothing(tmp_path):
    fill(tmp_path, ["one"], version="a")
    assert found(tmp_path, ["one"], version="b") == []
    fill(tmp_path, ["two"], version="b")
    assert found(tmp_path, ["one", "two"], version="a") == ["one"]


def test_what_was_used_longest_ago_gives_way(tmp_path, monkeypatch):
    size = kept_module._encode(encoded(0, 1000)).size
    now = [1_000_000.0]
    monkeypatch.setattr(kept_module.time, "time", lambda: now[0])
    store = KeptVectors(tmp_path, "a", max_mb=3.5 * size / 1e6)
    for text in ("first", "second", "third"):
        store.add(text, encoded(0, 1000))
        store.flush()
        now[0] += 2 * kept_module.USE_SECONDS
    store.find("first")
    store.add("fourth", encoded(0, 1000))
    store.flush()
    texts = ["first", "second", "third", "fourth"]
    assert found(tmp_path, texts) == ["first", "third", "fourth"]
    assert store.count_bytes() <= 3.5 * size
    store.add("far too long", encoded(0, 5000))
    store.flush()
    assert found(tmp_path, [*texts, "far too long"]) == ["first", "third", "fourth"]


def test_the_file_stays_within_its_bounds_and_shrinks_with_them(tmp_path):
    size = kept_module._encode(encoded(0, 1000)).size
    for round_ in range(4):
        texts = [f"{round_} {number}" for number in range(50)]
        store = KeptVectors(tmp_path, "a", max_mb=50 * size / 1e6)
        for text in texts:
            store.add(text, encoded(0, 1000))
        store.close()
    assert (tmp_path / FILE_NAME).stat().st_size < 60 * (size + 16384)
    fill(tmp_path, ["one more"], max_mb=10 * size / 1e6)
    assert (tmp_path / FILE_NAME).stat().st_size < 20 * (size + 16384)


def corrupt(file):
    """Change bytes in the midst of vectors, which SQLite does not notice."""
    whole = file.read_bytes()
    place = whole.index(encoded(len("one")).tokens.astype(np.float16).tobytes())
    file.write_bytes(whole[:place] + bytes(8) + whole[place + 8 :])


def cut_short(file):
    file.write_bytes(file.read_bytes()[:20_000])


def replace_by_notes(file):
    file.write_text("These are notes about roofs. " * 50)


def replace_by_a_database(file):
    file.unlink()
    with sqlite3.connect(file) as db:
        db.execute("CREATE TABLE roofs (kind TEXT)")


@pytest.mark.parametrize("damage", [corrupt, cut_short, replace_by_notes, replace_by_a_database])
def test_a_file_that_cannot_be_used_is_set_aside_as_it_is(tmp_path, caplog, damage):
    fill(tmp_path, ["one"])
    damage(tmp_path / FILE_NAME)
    before = (tmp_path / FILE_NAME).read_bytes()
    store = KeptVectors(tmp_path, "a", max_mb=1)
    assert store.find("one") is None
    assert (tmp_path / f"{FILE_NAME}.unusable-1").read_bytes() == before
    assert [one for one in caplog.messages if "cannot be used, and is now" in one]
    store.add("one", encoded(3))
    store.close()
    assert found(tmp_path, ["one"]) == ["one"]
    damage(tmp_path / FILE_NAME)
    assert found(tmp_path, ["one"]) == []
    assert (tmp_path / f"{FILE_NAME}.unusable-2").exists()


def test_a_file_that_another_process_set_aside_is_not_set_aside_again(tmp_path):
    fill(tmp_path, ["one"])
    slow = KeptVectors(tmp_path, "a", max_mb=1)
    assert slow.find("two") is None  # the file is open
    corrupt(tmp_path / FILE_NAME)
    assert found(tmp_path, ["one"]) == []
    fill(tmp_path, ["one"])
    assert slow.find("one") is None
    assert slow.find("one") is not None
    assert len(list(tmp_path.glob("*.unusable-*[0-9]"))) == 1


def test_a_folder_that_cannot_be_written_costs_one_warning(tmp_path, caplog):
    (tmp_path / "file").write_text("in the way")
    backend = local_backend(keep_in=tmp_path / "file" / "folder")
    texts = [one["text"] for one in WINDOWS]
    for _ in range(2):
        result = EvidenceReranker(backend).rerank(QUESTION, texts)
        plain = EvidenceReranker(local_backend()).rerank(QUESTION, texts)
        assert [one.score for one in result.passages] == [one.score for one in plain.passages]
    assert len([one for one in caplog.messages if "kept in" in one]) <= 2  # reading, and writing


def test_a_locked_file_is_read_and_not_waited_for_again(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(kept_module, "TIMEOUT_SECONDS", 0.01)
    fill(tmp_path, ["one"])
    store = KeptVectors(tmp_path, "a", max_mb=1)
    with sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        store.add("two", encoded(3))
        store.flush()
        assert store.find("one") is not None
        assert not store.has_room
        other.execute("ROLLBACK")
    assert store.find("two") is None
    assert caplog.messages == []


def write_two_hundred(folder, name):
    """Half of the texts are its own, half are those of the other process."""
    store = KeptVectors(folder, "a", max_mb=50)
    for number in range(200):
        vectors = np.full((20, 4), number, np.float32)
        one = Encoded(vectors, np.zeros((20, 2), np.int64))
        store.add(f"{name if number % 2 else 'both'} {number}", one)
        if number % 10 == 0:
            store.flush()
    store.close()


@pytest.mark.full
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_two_processes_fill_one_file(tmp_path):
    context = multiprocessing.get_context("fork")
    store = KeptVectors(tmp_path, "a", max_mb=50)
    assert store.find("open before the fork") is None
    both = [
        context.Process(target=write_two_hundred, args=(tmp_path, name))
        for name in ("left", "right")
    ]
    for process in both:
        process.start()
    for process in both:
        process.join(60)
    assert [process.exitcode for process in both] == [0, 0]
    for number in range(200):
        for name in ("left", "right") if number % 2 else ("both",):
            assert store.find(f"{name} {number}").tokens[0, 0] == number


def test_what_is_at_hand_is_kept_while_there_is_room(tmp_path):
    class Lengths(Encoder):
        def _encode_one(self, text):
            return encoded(len(text), 1000)

    size = kept_module._encode(encoded(0, 1000)).size
    plain = Lengths(Path("none"), Path("none"), threads=1)
    plain.encode(["a", "bb", "ccc"])
    for max_mb, expected in ((1, ["a", "bb"]), (1.04 * size / 1e6, ["a"])):
        folder = tmp_path / str(max_mb)
        plain.keeping(KeptVectors(folder, "a", max_mb=max_mb)).keep_held(["a", "bb", "other"])
        assert found(folder, ["a", "bb", "ccc", "other"]) == expected
    plain.keep_held(["a"])  # it has nowhere to


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"keep_in": "x", "keep_mb": 0}, "keep_mb must be > 0, got 0"),
        ({"keep_mb": 5}, "keep_mb goes with keep_in"),
        ({"keep_in": ""}, "keep_in must be a folder, got ''"),
        ({"judge": "rules", "keep_in": "x"}, "keep_in goes with the trained judge"),
    ],
)
def test_what_cannot_be_is_named(given, message):
    with pytest.raises(SettingsError, match=message):
        local_backend(**given)


def test_where_vectors_are_kept_travels_but_tells_no_judge_from_another(tmp_path):
    backend = local_backend(keep_in=tmp_path / "here", keep_mb=5)
    assert backend.spec["keep_in"] == str(tmp_path / "here")
    assert backend.spec["keep_mb"] == 5
    assert backend.fingerprint() == local_backend().fingerprint()
