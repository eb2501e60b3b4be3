"""A stand-in for the trained model, for tests of what is around it: the same calls, no weights."""

import threading
from hashlib import sha256
from pathlib import Path

import numpy as np

from deepera_graph import Judgement, Usage


class EvidenceModel:
    """Scores a passage by its length beside the longest of the pool."""

    n_loaded = 0

    def __init__(self, folder, threads):
        type(self).n_loaded += 1
        self.folder, self.threads = folder, threads
        self.version = "stand-in"
        self.used_in = set()

    @classmethod
    def load(cls, folder: Path | None = None, *, threads: int | None = None):
        return cls(folder, threads)

    def judge(self, question, intent, windows):
        self.used_in.add(threading.current_thread())
        longest = max(len(one["text"]) for one in windows)
        return [
            Judgement(
                score=len(one["text"]) / longest,
                reason="in company" if len(windows) > 1 else "alone",
                quote=one["text"],
                usage=Usage(),
            )
            for one in windows
        ]

    def read_ahead(self, windows):
        pass

    def embed(self, texts):
        seeds = [int.from_bytes(sha256(text.encode()).digest()[:4]) for text in texts]
        made = [np.random.default_rng(seed).normal(size=384) for seed in seeds]
        rows = [row / np.linalg.norm(row) for row in made]
        return np.asarray(rows, np.float32).reshape(-1, 384)
