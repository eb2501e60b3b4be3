"""What an encoded text is cut into, and how texts are shared among threads."""

import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepera_graph.judges.trained.reading import encoder as encoder_module
from deepera_graph.judges.trained.reading.encoder import Encoder
from deepera_graph.judges.trained.reading.vectors import Encoded

SPANS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 4)), max_size=12).map(
    lambda pairs: [(start, start + length) for start, length in pairs]
)


class Spelling(Encoder):
    """Gives the text itself in place of vectors."""

    def __init__(self, threads):
        super().__init__(Path("none"), Path("none"), threads=threads)

    def _encode_one(self, text):
        return text

    def _keep(self, text, encoded):
        """Text has no bytes to count."""


class Counting(Encoder):
    """Gives a vector a character, and counts the texts that it encodes."""

    def __init__(self):
        super().__init__(Path("none"), Path("none"), threads=2)
        self.n_encoded = 0

    def _encode_one(self, text):
        self.n_encoded += 1
        return Encoded(np.ones((len(text), 4), np.float32), np.zeros((len(text), 2), np.int64))


@pytest.mark.full
@settings(max_examples=60, deadline=None)
@given(offsets=SPANS, places=SPANS, in_order=st.booleans())
def test_a_part_has_the_tokens_within_it_and_all_if_there_are_none(offsets, places, in_order):
    offsets = [(0, 0), *(sorted(offsets) if in_order else offsets), (0, 0)]
    text = Encoded(np.zeros((len(offsets), 3), np.float32), np.array(offsets))
    everything = list(range(len(offsets)))
    found = [np.arange(len(offsets))[part].tolist() for part in text.find_spans(places)]
    assert found == [
        [i for i, (a, b) in enumerate(offsets) if start <= a < b <= end] or everything
        for start, end in places
    ]


@pytest.mark.parametrize("texts", [[], ["one"], ["a", "longest", "bb", "a", "", "middle"] * 20])
def test_each_text_is_used_in_a_thread_and_given_back_in_order(texts):
    used_in = set()

    def use(place, text):
        used_in.add(threading.current_thread())
        return place, text

    assert Spelling(2).encode_each(texts, use) == list(enumerate(texts))
    assert len(texts) < 2 or threading.current_thread() not in used_in


def test_an_error_in_use_is_not_lost():
    def use(place, text):
        raise LookupError(text)

    with pytest.raises(LookupError, match="longer"):
        Spelling(2).encode_each(["short", "a longer one"], use)


def test_a_text_read_ahead_is_encoded_once_and_few_are_held(monkeypatch):
    monkeypatch.setattr(encoder_module, "MAX_AHEAD", len("left" + "alone"))
    done = []

    class Slow(Spelling):
        def _encode_one(self, text):
            done.append(text)
            return text

    encoder = Slow(2)
    for texts in (["left", "alone"], ["a", "b", "a", "c", "too many"]):
        encoder.read_ahead(texts)
    assert list(encoder._begun) == ["alone", "a", "b", "c"]
    assert encoder.encode(["c", "b", "a", "d", "a"]) == ["c", "b", "a", "d", "a"]
    assert sorted(text for text in done if len(text) == 1) == ["a", "a", "b", "c", "d"]
    assert "too many" not in done
    assert encoder.encode(["left"]) == ["left"]


def test_a_failure_in_reading_ahead_is_that_of_the_survey():
    class Broken(Spelling):
        def _encode_one(self, text):
            raise LookupError(text)

    encoder = Broken(1)
    encoder.read_ahead(["one"])
    with pytest.raises(LookupError, match="one"):
        encoder.encode(["one"])


def test_a_text_of_the_last_question_is_not_encoded_again(monkeypatch):
    encoder = Counting()
    for text in ("bark", "leaf", "bark"):
        encoder.encode([text])
    first = encoder.n_encoded
    encoder.encode(["leaf", "bark", "root"])
    assert encoder.n_encoded == first + 1
    monkeypatch.setattr(encoder_module, "MAX_KEPT", 64)  # bytes: no more than one of them
    encoder.encode(["stem"])
    encoder.encode(["root", "bark"])
    assert encoder.n_encoded == first + 4
