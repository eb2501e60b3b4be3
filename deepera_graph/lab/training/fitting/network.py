"""The reader's network in torch: built from a base, written as ONNX, and read from there again."""

from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from deepera_graph.errors import SettingsError
from deepera_graph.judges.cross_encoder.onnx import INPUTS, silence, trace
from deepera_graph.judges.trained.reading.reader import N_DIRECTIONS
from deepera_graph.lab.training.weights import import_package


def load_body(source: Path, what: str) -> Any:
    """Return the base, in which nothing is left out by chance and words keep their vectors."""
    transformers = import_package("transformers", what)
    transformers.utils.logging.disable_progress_bar()
    try:
        body = transformers.AutoModel.from_pretrained(
            source,
            attn_implementation="eager",
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
    except (OSError, ValueError) as error:
        raise SettingsError(f"{str(source)!r} cannot be loaded: {error}") from error
    body.embeddings.requires_grad_(requires_grad=False)  # words not trained on keep their meaning
    return body


def build_network(torch: Any, source: Path) -> Any:
    """Return the network: the mean of the passage's tokens and the first mark, through a layer."""
    body = load_body(source, "training the reader")
    size = body.config.hidden_size

    class Network(torch.nn.Module):  # type: ignore[misc]  # torch is not installed here
        def __init__(self) -> None:
            super().__init__()
            self.model = body
            self.middle = torch.nn.Linear(2 * size, size)
            self.out = torch.nn.Linear(size, 1 + N_DIRECTIONS)
            self.of_token = torch.nn.Linear(size, 1)
            self.drop = torch.nn.Dropout(0.1)

        def forward(self, ids: Any, mask: Any, parts: Any) -> tuple[Any, Any]:
            given = dict(zip(INPUTS, (ids, mask, parts), strict=True))
            tokens = self.model(**given).last_hidden_state
            inside = (parts * mask).unsqueeze(-1).to(tokens.dtype)
            mean = (tokens * inside).sum(1) / inside.sum(1).clamp(min=1)
            joined = self.middle(torch.cat([tokens[:, 0], mean], 1))
            found = self.out(self.drop(torch.nn.functional.gelu(joined)))
            return found.float(), self.of_token(tokens).squeeze(-1).float()

    return Network()


def take_weights(torch: Any, network: Any, file: Path) -> None:
    """Give a network the weights of a reader written as ONNX, but for what rounding took.

    ONNX names most of them by their place in the graph alone: so the network, each of whose weights
    is made unique first, is written in the same way, and tells by values which is which.
    """
    onnx = import_package("onnx", "going on from a reader")
    with torch.no_grad():
        for one in network.parameters():
            one.add_(1e-3 * torch.randn_like(one))
    network.eval()
    with TemporaryDirectory() as scratch, silence():
        whole = Path(scratch, "whole.onnx")
        trace_network(torch, network, whole)
        fresh = onnx.load(str(whole)).graph.initializer
    try:
        written = {one.name: one for one in onnx.load(str(file)).graph.initializer}
    except Exception as error:  # protobuf raises kinds of its own
        raise SettingsError(f"{str(file)!r} holds no reader: {error}") from error
    read = onnx.numpy_helper.to_array
    open_weights = {
        name: one for name, one in network.named_parameters() if not name.startswith(_NOT_WRITTEN)
    }
    for one in fresh:
        found = _find_same(open_weights, read(one))
        if found is None:
            continue
        name, turned = found
        its, value = open_weights.pop(name), _read_rounded(one.name, written, read)
        if value is None or value.size != its.numel():
            raise SettingsError(f"{str(file)!r} holds no reader of this kind: it lacks {name}")
        same = value.T if turned or value.shape != tuple(its.shape) else value
        its.data.copy_(torch.from_numpy(same.copy()))
    if open_weights:
        raise SettingsError(
            f"{str(file)!r} holds no reader of this kind: {', '.join(open_weights)}"
        )


_NOT_WRITTEN = "model.pooler"


def _find_same(weights: Mapping[str, Any], values: Any) -> tuple[str, bool] | None:
    """Return the name of the weight that has these values, and whether rows stand for columns."""
    for name, one in weights.items():
        own = one.detach().numpy()
        for turned, its in ((False, own), (True, own.T)):
            if its.shape == values.shape and bool((its == values).all()):
                return name, turned
    return None


def _read_rounded(name: str, written: Mapping[str, Any], read: Callable[[Any], Any]) -> Any:
    """Return a weight as float, whether or not it is rounded to eight bits; None if not there."""
    if name in written:
        return read(written[name])
    # newer versions of onnxruntime turn the weights of a layer first, and say so
    name = next((one for one in (name, f"{name}_Transposed") if f"{one}_quantized" in written), "")
    if not name:
        return None
    values = read(written[f"{name}_quantized"]).astype("float32")
    scale, zero = (read(written[f"{name}_{what}"]) for what in ("scale", "zero_point"))
    if scale.size > 1:  # of each column, or of each row where the product takes it transposed
        axis = [place for place, size in enumerate(values.shape) if size == scale.size][-1]
        form = [1] * values.ndim
        form[axis] = -1
        scale, zero = scale.reshape(form), zero.reshape(form)
    return (values - zero.astype("float32")) * scale


def trace_network(torch: Any, network: Any, target: Path) -> None:
    """Write a network as ONNX, unrounded, with the outputs that `Reader` asks for."""

    class Outputs(torch.nn.Module):  # type: ignore[misc]  # torch is not installed here
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, *given: Any) -> tuple[Any, Any, Any]:
            found, tokens = self.network(*given)
            return found[:, 0], found[:, 1:], tokens

    ids = torch.arange(16).reshape(2, 8)
    parts = (torch.arange(8) > 3).long().expand(2, 8).contiguous()
    given = dict(zip(INPUTS, (ids, torch.ones_like(ids), parts), strict=True))
    heads = ("evidence", "direction")
    trace(Outputs().eval(), given, target, of_texts=heads, of_tokens=["tokens"])
