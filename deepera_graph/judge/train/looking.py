"""Opens what looks at pools, for one training or one measurement."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # has no stubs

from deepera_graph.judge.encoder import ON_CPU, Encoder
from deepera_graph.judge.model import opened
from deepera_graph.judge.train.device import available, pick, tell
from deepera_graph.judge.train.log import Log, silent
from deepera_graph.judge.train.material import Material
from deepera_graph.judge.train.shelf import open_shelf


@contextmanager
def looking(weights: tuple[Path, Path], keep: Path | None, log: Log = silent) -> Iterator[Material]:
    """Give what looks at pools with an encoder; linear algebra takes one thread meanwhile.

    With more of them small products take longer, and sums differ in their last digit with the
    threads at work.

    Args:
        weights: The encoder and its tokenizer.
        keep: Folder where looks are kept for the next time; None keeps none.
        log: Told where the encoder runs.

    Raises:
        SettingsError: Nothing can be kept there, or there is no encoder that can be used.
    """
    asked = pick(available())
    encoder = opened(Encoder(*weights, providers=asked), weights[0].parent)
    tell(encoder, asked, log)
    with open_shelf(_place(keep, encoder), weights) as shelf, threadpool_limits(1, user_api="blas"):
        yield Material(encoder, shelf)


def _place(keep: Path | None, encoder: Encoder) -> Path | None:
    """Return where looks are kept: elsewhere if not of a CPU, as last digits differ."""
    if keep is None or encoder.provider in ON_CPU:
        return keep
    return keep / encoder.provider
