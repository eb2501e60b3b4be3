"""A process of its own: puts entries until told to stop, says the number of each one put."""

import itertools
import sys
from pathlib import Path

from deepera_graph.stores.judgements import JudgementCache


def write(path, prefix, n):
    numbers = range(n) if n else itertools.count()
    cache = JudgementCache(Path(path), timeout=20)
    for number in numbers:
        cache.put(f"{prefix}-{number}", prefix, {"score": number / 7, "reason": "r" * 300})
        answer = cache.get(f"{prefix}-{number}")
        if answer is None or answer["score"] != number / 7:
            sys.exit(f"{prefix}-{number} was lost: {answer!r}")
        sys.stdout.write(f"{prefix}-{number}\n")
        sys.stdout.flush()
    cache.close()


write(sys.argv[1], sys.argv[2], int(sys.argv[3]))
