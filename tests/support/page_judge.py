"""A judge that a test can hold up, and that does what a passage says; in front of a browser.

A passage is ``[0.90 supports] Text with a >marked< part.``: its score, its direction, its quote.
``[broken]`` cannot be judged, ``[held 0.5 mixed]`` only once `gate` is open.
"""

import re
from dataclasses import replace
from threading import Event

from langchain_core.runnables import RunnableLambda

from deepera_graph.errors import AnswerError
from deepera_graph.judges import load_backend
from deepera_graph.schema import Judgement

NAME = "scripted"
_SAID = re.compile(r"\[(held )?([\d.]+)(?: (\w+))?\]")
_QUOTE = re.compile(r">([^<]*)<", re.DOTALL)
_MOST_SECONDS = 30  # of a test that went wrong


def scripted_backend(gate: Event):
    """Return a backend whose judge reads its verdict in the passage."""

    def judge(task):
        said, quote = _SAID.search(task["text"]), _QUOTE.search(task["text"])
        if not said:
            raise AnswerError("the model gave no number")
        if said[1]:
            gate.wait(_MOST_SECONDS)
        return Judgement(
            score=float(said[2]),
            direction=said[3],
            reason=f"it says {said[2]}",
            quote=quote[1] if quote else "",
        )

    return replace(load_backend("rules"), name=NAME, judge=RunnableLambda(judge), spec=None)
