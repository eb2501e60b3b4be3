"""Asks one ranker its questions in a process of its own, and prints what the clock says.

The server's log has the rest. The first question is the warm-up: connections, lazy imports and the
prefix that all prompts of this ranker share are paid there.
"""

import asyncio
import json
import logging
import os
import resource
import sys
import time
import warnings
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from rankers import RANKERS
from texts import make_questions

_KIB = 1024


async def measure(key: str, url: str, at_once: int, scene: dict[str, int]) -> dict[str, Any]:
    """Return start and end of every question, and whether its best passages are the relevant."""
    ranker = RANKERS[key]
    questions = make_questions(scene["seed"], scene["questions"], scene["passages"])
    rank = ranker.make(url, at_once)
    asked = []
    for question in questions:
        start = time.monotonic()
        found = await rank(question.text, question.passages)
        end = time.monotonic()
        is_right = set(found[: len(question.relevant)]) == question.relevant
        asked.append({"start": start, "end": end, "right": is_right})
    return {
        "questions": asked[1:],
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _KIB,
        "versions": ranker.versions,
    }


def main() -> None:
    """Measure what the JSON of the first argument asks for."""
    order = json.loads(sys.argv[1])
    if missing := RANKERS[order["ranker"]].missing():
        result: dict[str, Any] = {"missing": missing}
    else:
        logging.disable()
        warnings.simplefilter("ignore")
        with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):  # some rivals print
            asking = measure(order["ranker"], order["url"], order["at_once"], order["scene"])
            result = asyncio.run(asking)
    sys.stdout.write(json.dumps(result) + "\n")
    sys.stdout.flush()
    os._exit(0)  # threads of some clients outlive the work


if __name__ == "__main__":
    main()
