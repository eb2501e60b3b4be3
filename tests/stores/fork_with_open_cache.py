"""A process of its own: forks while threads use its cache; child and parent both go on using it."""

import os
import sys
from pathlib import Path
from threading import Event, Thread

from deepera_graph.stores.judgements import JudgementCache


def keep_busy():
    while not stop.is_set():
        cache.get("before")


cache, memory, stop = JudgementCache(Path(sys.argv[1])), JudgementCache(), Event()
cache.put("before", "judge", {"score": 1.0})
memory.put("before", "judge", {"score": 1.0})
threads = [Thread(target=keep_busy) for _ in range(3)]
for thread in threads:
    thread.start()
for number in range(10):
    child = os.fork()
    if child == 0:
        seen = all(each.get("before") == {"score": 1.0} for each in (cache, memory))
        put = cache.put(f"child-{number}", "judge", {"score": 0.5})
        cache.close()
        os._exit(0 if seen and put else 1)
    written = cache.put(f"parent-{number}", "judge", {"score": 0.0})
    _, status = os.waitpid(child, 0)
    if os.waitstatus_to_exitcode(status) or not written:
        stop.set()
        sys.exit(f"child {number} failed")
    if cache.get(f"child-{number}") is None or memory.get("before") is None:
        stop.set()
        sys.exit(f"what child {number} put is lost")
stop.set()
for thread in threads:
    thread.join()
