"""Opens what looks at pools, for one training or one measurement."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # has no stubs

from deepera_graph.judge.encoder import Encoder
from deepera_graph.judge.train.material import Material
from deepera_graph.judge.train.shelf import open_shelf


@contextmanager
def looking(weights: tuple[Path, Path], keep: Path | None) -> Iterator[Material]:
    """Give what looks at pools with an encoder; linear algebra takes one thread meanwhile.

    With more of them small products take longer, and sums differ in their last digit with the
    threads at work.

    Args:
        weights: The encoder and its tokenizer.
        keep: Folder where looks are kept for the next time; None keeps none.

    Raises:
        SettingsError: Nothing can be kept there.
    """
    with open_shelf(keep, weights) as shelf, threadpool_limits(1, user_api="blas"):
        yield Material(Encoder(*weights), shelf)
