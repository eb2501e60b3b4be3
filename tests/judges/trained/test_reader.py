"""The reader, whose every number can be computed by hand here."""

import numpy as np
import pytest

from deepera_graph.judges.trained.reading.encoder import Encoder
from deepera_graph.judges.trained.reading.reader import MAX_TOKENS, N_DIRECTIONS, Reader
from deepera_graph.text.words import split_sentences
from support.tiny_encoder import DEPTH, OPSET, TEXTS, make_tokenizer

QUESTION = "Do roofs turn green?"


def write_reader(path, size):
    """A reader that sums its tokens' vectors, those of the passage twice; returns its weights."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    random = np.random.default_rng(3)
    arrays = {
        "table": random.normal(size=(size, DEPTH)),
        "one": random.normal(size=(DEPTH, 1)),
        "four": random.normal(size=(DEPTH, N_DIRECTIONS)),
    }
    arrays = {name: array.astype(np.float32) for name, array in arrays.items()}
    inputs = ("input_ids", "attention_mask", "token_type_ids")
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["vectors"]),
        helper.make_node("Cast", ["token_type_ids"], ["types"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["types", "mask"], ["times"]),
        helper.make_node("Unsqueeze", ["times", "last"], ["column"]),
        helper.make_node("Mul", ["vectors", "column"], ["weighed"]),
        helper.make_node("ReduceSum", ["weighed", "middle"], ["sums"], keepdims=0),
        helper.make_node("MatMul", ["sums", "one"], ["flat"]),
        helper.make_node("Squeeze", ["flat", "middle"], ["evidence"]),
        helper.make_node("MatMul", ["sums", "four"], ["direction"]),
        helper.make_node("MatMul", ["vectors", "one"], ["each"]),
        helper.make_node("Squeeze", ["each", "last"], ["tokens"]),
    ]
    numbers = {**arrays, "last": np.array([2]), "middle": np.array([1])}
    graph = helper.make_graph(
        nodes,
        "reader",
        [helper.make_tensor_value_info(one, TensorProto.INT64, ("n", "m")) for one in inputs],
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
            for name in ("evidence", "direction", "tokens")
        ],
        [numpy_helper.from_array(array, name) for name, array in numbers.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    onnx.save(made, path)
    return arrays


@pytest.fixture
def reader(tmp_path):
    """The reader, its tokenizer, and its weights."""
    pytest.importorskip("onnx")
    tokenizer = make_tokenizer()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    arrays = write_reader(tmp_path / "reader.onnx", tokenizer.get_vocab_size())
    encoder = Encoder(tmp_path / "none.onnx", tmp_path / "tokenizer.json", threads=2)
    return Reader(tmp_path / "reader.onnx", encoder), tokenizer, arrays


def expect(tokenizer, arrays, question, text):
    pair = tokenizer.encode(question, text)
    weights = 1 + np.array(pair.type_ids)[:, None]
    total = (arrays["table"][pair.ids] * weights).sum(axis=0)
    return total @ arrays["one"][:, 0], total @ arrays["four"]


def test_question_and_passage_are_read_as_one_text_in_two_parts(reader):
    read, tokenizer, arrays = reader
    found = read.read(QUESTION, TEXTS)
    for one, text in zip(found, TEXTS, strict=True):
        evidence, directions = expect(tokenizer, arrays, QUESTION, text)
        assert one.evidence == pytest.approx(evidence, rel=1e-5)
        assert one.directions == pytest.approx(directions, rel=1e-5)


def test_a_sentence_has_the_mean_of_its_own_tokens(reader):
    read, tokenizer, arrays = reader
    text = f"{TEXTS[0]} {TEXTS[1]}"
    [found] = read.read(QUESTION, [text])
    sentences = [one.text for one in split_sentences(text)]
    assert sentences == TEXTS[:2]
    by_hand = [
        (arrays["table"][tokenizer.encode(one).ids[1:-1]] @ arrays["one"])[:, 0].mean()
        for one in sentences
    ]
    assert found.sentences == pytest.approx(by_hand, rel=1e-5)


def test_a_long_passage_is_read_in_pieces_and_the_best_one_counts(reader):
    read, tokenizer, _ = reader
    sentence = TEXTS[1] + " "
    long = sentence * 30 + TEXTS[0]
    n_tokens = len(tokenizer.encode(long).ids)
    assert n_tokens > MAX_TOKENS
    [found] = read.read(QUESTION, [long])
    assert len(found.sentences) == 31
    assert np.isfinite(found.evidence)
    [alone] = read.read(QUESTION, [long[: len(long) // 8]])
    assert found.evidence != alone.evidence


def test_a_text_reads_alike_whatever_stands_beside_it(reader):
    read, *_ = reader
    together = read.read(QUESTION, TEXTS * 3)
    for place, text in enumerate(TEXTS):
        [alone] = read.read(QUESTION, [text])
        assert alone.evidence == together[place].evidence
        assert alone.sentences.tolist() == together[place].sentences.tolist()


def test_a_question_longer_than_it_reads_leaves_room_for_the_passage(reader):
    read, *_ = reader
    [one, other] = read.read("roofs " * 500, TEXTS[:2])
    assert one.evidence != other.evidence


def test_a_question_that_is_asked_again_is_not_read_again(reader):
    read, _, _ = reader
    first = read.read(QUESTION, TEXTS)
    again = read.read(QUESTION, TEXTS[::-1])[::-1]
    assert all(one is other for one, other in zip(first, again, strict=True))
    assert read.read("Do bees sleep?", TEXTS)[0] is not first[0]


def test_a_question_without_a_word_is_read(reader):
    read, tokenizer, arrays = reader
    found = read.read("", TEXTS[:1])[0]
    assert found.evidence == pytest.approx(expect(tokenizer, arrays, "", TEXTS[0])[0], rel=1e-5)
