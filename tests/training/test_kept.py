"""What was read of passages is kept, and found again."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from deepera_graph.errors import SettingsError
from deepera_graph.judges.trained import features
from deepera_graph.judges.trained.reading.encoder import Encoder
from deepera_graph.judges.trained.reading.vectors import pairwise_dot
from deepera_graph.lab.training.fitting.features import (
    FeatureCache,
    FeatureExtractor,
    open_feature_cache,
)
from deepera_graph.lab.training.weights import find_encoder
from support.pools import pool

WORD = re.compile(r"\S+")
POOLS = [pool("copper roofs", [1, 0, 0]), pool("harbour lamps", [0, 1])]


class Counted:
    """Counts what is really read."""

    def __init__(self, encoder):
        self.encoder, self.read = encoder, []

    def encode(self, texts):
        self.read += texts
        return self.encoder.encode(texts)


def looked(counted, weights, folder):
    with open_feature_cache(folder, find_encoder(weights)) as shelf:
        return FeatureExtractor(counted, shelf).match(POOLS)


def cosines(found):
    vectors = np.stack([one.vector for one in found.matches])
    return pairwise_dot(vectors, vectors)


def test_a_passage_is_read_once_and_kept_exactly(weights, tmp_path):
    counted = Counted(Encoder(*find_encoder(weights)))
    first = looked(counted, weights, tmp_path / "keep")
    n_read = len(counted.read)
    second = looked(counted, weights, tmp_path / "keep")
    assert len(counted.read) == n_read == len(set(counted.read))
    for one, other in zip(first, second, strict=True):
        assert np.array_equal(cosines(one), cosines(other))
        for here, there in zip(one.matches, other.matches, strict=True):
            assert here.plain == there.plain
            for name in ("vector", "sentences", "cosines", "matches"):
                assert np.array_equal(getattr(here, name), getattr(there, name))
                assert getattr(here, name).dtype == getattr(there, name).dtype


def test_other_weights_do_not_find_it(weights, tmp_path):
    counted = Counted(Encoder(*find_encoder(weights)))
    looked(counted, weights, tmp_path)
    n_read = len(counted.read)
    (weights / "tokenizer.json").write_text((weights / "tokenizer.json").read_text() + " ")
    looked(counted, weights, tmp_path)
    assert len(counted.read) == 2 * n_read


def test_nothing_is_kept_if_nobody_says_where(weights):
    with open_feature_cache(None, find_encoder(weights)) as shelf:
        assert shelf is None


def test_a_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / "notes").write_text("These are notes about roofs. " * 50)
    with pytest.raises(SettingsError, match=r"cache of features .* cannot be used: "):
        FeatureCache(tmp_path / "notes")


def test_what_was_cut_into_other_sentences_then_is_read_anew(weights, tmp_path, monkeypatch):
    """A later version may end sentences elsewhere, and read other questions first."""

    def cut_words(text):
        return [SimpleNamespace(start=one.start(), end=one.end()) for one in WORD.finditer(text)]

    def look(pools):
        with open_feature_cache(tmp_path, find_encoder(weights)) as shelf:
            return FeatureExtractor(Encoder(*find_encoder(weights)), shelf).match(pools)

    with monkeypatch.context() as earlier:
        earlier.setattr(features, "split_sentences", cut_words)
        look(POOLS)
    others = [replace(one, question=f"{one.question} again") for one in POOLS]
    for pools in (others, others, POOLS):
        for one in look(pools):
            assert [len(x.cosines) for x in one.matches] == [len(x.sentences) for x in one.matches]
