"""What was read of passages is kept, and found again."""

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from deepera_graph.errors import SettingsError
from deepera_graph.judges.trained import features
from deepera_graph.judges.trained.kept import KeptVectors
from deepera_graph.judges.trained.reading.encoder import Encoder
from deepera_graph.judges.trained.reading.vectors import normalize, pairwise_dot
from deepera_graph.lab.training.fitting.features import (
    FeatureCache,
    FeatureExtractor,
    open_extractor,
    open_feature_cache,
)
from deepera_graph.lab.training.lessons.pools import hash_question
from deepera_graph.lab.training.weights import copy_encoder, find_encoder, write_projection
from support.pools import pool
from support.tiny_encoder import DEPTH

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


def test_means_are_projected_as_the_model_says_whether_kept_or_not(weights, tmp_path):
    files, texts = find_encoder(weights), ["Copper roofs turn green.", "Rain"]
    text, title = Encoder(*files).encode(texts)
    matrix = np.random.default_rng(1).normal(size=(DEPTH, DEPTH)).astype(np.float16)
    write_projection(files[0], matrix)
    places = ((0, 12), (13, 24))
    for _ in range(2):
        with_store = Encoder(*files).keeping(KeptVectors(tmp_path, "one", max_mb=1))
        found, beside = with_store.encode(texts)
        assert np.array_equal(found.units, text.units)
        assert np.array_equal(found.tuned_mean, text.mean)
        assert found.mean == pytest.approx(normalize(text.vectors.mean(0) @ matrix), abs=1e-6)
        parts, before = found.find_parts(places), text.find_parts(places)
        assert np.array_equal(parts.tuned, before.units)
        spans = [normalize(text.vectors[span].mean(0) @ matrix) for span in before.spans]
        assert parts.units == pytest.approx(np.stack(spans), abs=1e-6)
        joined, tuned = found.join(beside)
        both = np.concatenate([text.vectors, title.vectors[1:-1]]).mean(0)
        assert joined == pytest.approx(normalize(both @ matrix), abs=1e-6)
        assert tuned == pytest.approx(normalize(both), abs=1e-6)


def test_a_question_is_read_by_the_encoder_that_was_not_taught_it(weights, tmp_path):
    taught, new = POOLS
    model, tokenizer = find_encoder(weights)
    for name, known in (("half-0", [hash_question(taught.question)]), ("half-1", [])):
        turned = np.random.default_rng(len(known)).permutation(DEPTH)
        write_turned(model, weights / f"{name}.onnx", turned)
        (weights / f"{name}.json").write_text(json.dumps({"questions": known}))
    by_whole, by_other = (
        FeatureExtractor(Encoder(file, tokenizer)).match(POOLS)
        for file in (model, weights / "half-1.onnx")
    )
    copy_encoder(weights, tmp_path)
    for folder in (weights, tmp_path):
        with open_extractor(find_encoder(folder), None) as extractor:
            first, second = extractor.match([taught, new])
        assert [one.plain for one in first.matches] == [one.plain for one in by_other[0].matches]
        assert [one.plain for one in second.matches] == [one.plain for one in by_whole[1].matches]
    assert by_other[0].matches[0].plain != by_whole[0].matches[0].plain


def write_turned(model, target, turned):
    """Write a model that gives each token another vector."""
    onnx = pytest.importorskip("onnx")
    made = onnx.load(model)
    [table] = made.graph.initializer
    numbers = onnx.numpy_helper.to_array(table) + turned
    table.CopyFrom(onnx.numpy_helper.from_array(numbers.astype(np.float32), table.name))
    onnx.save(made, target)


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
