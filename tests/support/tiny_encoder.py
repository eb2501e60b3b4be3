"""A cross-encoder of a few hundred numbers, written as ONNX, with a tokenizer of invented text.

It sums the vectors of all tokens (those of the passage count double where the model is told the
parts), and multiplies the sum with a matrix: so it can be computed by hand, padding must not count,
and every token does.
"""

from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers

TEXTS = [
    "Copper roofs turn green because rain and air form a thin crust of salts.",
    "The lamps of the old harbour were cleaned twice a week by two keepers.",
    "Do wet summers make the crust on copper grow faster than dry ones?",
]
DEPTH = 4
OPSET = 17


def make_tokenizer(**settings) -> Tokenizer:
    """A word tokenizer that joins pairs as BERT does; settings are truncation and padding."""
    tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.WordLevelTrainer(
        special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]"], show_progress=False
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    if "truncation" in settings:
        tokenizer.enable_truncation(**settings["truncation"])
    if "padding" in settings:
        tokenizer.enable_padding(**settings["padding"])
    return tokenizer


class TinyEncoder:
    """The same computation as the file, in NumPy."""

    def __init__(self, *, n_outputs: int = 1, seed: int = 0, scale: float = 0.3) -> None:
        random = np.random.default_rng(seed)
        self.tokenizer = make_tokenizer()
        size = self.tokenizer.get_vocab_size()
        self.table = random.normal(0, scale, (size, DEPTH)).astype(np.float32)
        self.head = random.normal(0, 1, (DEPTH, n_outputs)).astype(np.float32)

    def output(self, pair, max_tokens=512, *, with_types=True):
        cutting = Tokenizer.from_str(self.tokenizer.to_str())
        cutting.enable_truncation(max_tokens)  # of the longer part, as is usual
        cut = cutting.encode(*pair)
        weight = [1 + (part if with_types else 0) for part in cut.type_ids]
        return sum(self.table[id] * w for id, w in zip(cut.ids, weight, strict=True)) @ self.head

    def logit(self, pair, max_tokens=512, *, with_types=True):
        out = self.output(pair, max_tokens, with_types=with_types)
        return float(out[0] if len(out) == 1 else out[1] - out[0])


def write_model(
    folder: Path,
    *,
    n_outputs: int = 1,
    with_types: bool = True,
    with_mask: bool = True,
    whole: str = "INT64",
    flat: bool = False,
    shape: tuple = ("pairs", "tokens"),
    rename: dict | None = None,
    tokenizer: Tokenizer | None = None,
    name: str = "model.onnx",
    mixing: bool = False,
) -> TinyEncoder:
    """Write ``model.onnx`` and ``tokenizer.json``; return the twin in NumPy."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    twin = TinyEncoder(n_outputs=n_outputs)
    kind = getattr(TensorProto, whole)
    inputs = ["input_ids", *(["attention_mask"] * with_mask), *(["token_type_ids"] * with_types)]
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["vectors"])]
    weights = []
    if with_mask:
        nodes.append(helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT))
        weights.append("mask")
    if with_types:
        nodes.append(helper.make_node("Cast", ["token_type_ids"], ["types"], to=TensorProto.FLOAT))
        nodes.append(helper.make_node("Add", ["types", "one"], ["parts"]))
        weights.append("parts")
    last = "vectors"
    for weight in weights:
        nodes.append(helper.make_node("Unsqueeze", [weight, "axis"], [f"{weight}_column"]))
        nodes.append(helper.make_node("Mul", [last, f"{weight}_column"], [f"by_{weight}"]))
        last = f"by_{weight}"
    if mixing:
        nodes.append(helper.make_node("ReduceMax", [last], ["largest"], keepdims=0))
        nodes.append(helper.make_node("Add", [last, "largest"], ["mixed"]))
        last = "mixed"
    nodes.append(helper.make_node("ReduceSum", [last, "tokens_axis"], ["sums"], keepdims=0))
    nodes.append(helper.make_node("MatMul", ["sums", "head"], ["flat" if flat else "logits"]))
    if flat:
        nodes.append(helper.make_node("Squeeze", ["flat", "axis_one"], ["logits"]))
    numbers = {
        "table": twin.table,
        "head": twin.head,
        "one": np.array(1, np.float32),
        "axis": np.array([2]),
        "tokens_axis": np.array([1]),
        "axis_one": np.array([1]),
    }
    graph = helper.make_graph(
        nodes,
        "tiny",
        [
            helper.make_tensor_value_info((rename or {}).get(one, one), kind, shape)
            for one in inputs
        ],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in numbers.items()],
    )
    for node in graph.node:
        node.input[:] = [(rename or {}).get(one, one) for one in node.input]
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(made, folder / name)
    (tokenizer or twin.tokenizer).save(str(folder / "tokenizer.json"))
    return twin
