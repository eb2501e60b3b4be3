"""Questions for runs that are killed, and the killing."""

import json
import random
import re
import time
from collections import Counter

from support.openai_server import ChatServer

N_QUESTIONS = 6
N_PASSAGES = 12
N_CALLS = N_QUESTIONS * (1 + N_PASSAGES + 2)  # intent, every passage, the two that are kept
LATENCY = 0.015
WAIT = 60.0


def question(number):
    """A question that is told from the others by its number."""
    return f"Question {number}: does green tea lower fasting glucose?"


def passages(number):
    """Passages of a question; the first two are evidence."""
    texts = [f"In trial {number}.{n}, green tea lowered fasting glucose by 4%." for n in range(2)]
    texts += [f"Trial {number}.{n} measured glucose in the morning." for n in range(2, N_PASSAGES)]
    return [{"id": f"p{n}", "text": text} for n, text in enumerate(texts)]


def answer(request):
    """An answer that fits all roles, and differs with what was asked."""
    return {
        "topic": "diet",
        "entity_type": request.user[:200],
        "intent": "other",
        "expected_answer_type": "other",
        "reason": f"read {len(request.user)} characters",
        "evidence": [1],
        "score": 0.9 if "lowered" in request.user else len(request.user) % 7 / 10,
        "text": "Green tea lowered fasting glucose.",
    }


def slow_server():
    """A server that takes a little while for every answer."""
    return ChatServer(answer, latency=LATENCY)


def moments(seed, n):
    """Yield *n* moments in the middle of the scoring: requests seen, and seconds after that."""
    chosen = random.Random(seed)
    for _ in range(n):
        yield chosen.randint(N_CALLS // 10, N_CALLS * 8 // 10), chosen.uniform(0, LATENCY)


def kill(process, server, n_requests, seconds):
    """Kill a process so long after the server has seen so many requests; return the requests."""
    limit = time.monotonic() + WAIT
    while server.calls < n_requests:
        if process.poll() is not None or time.monotonic() > limit:
            raise AssertionError(f"ended before it was killed: {process.communicate()}")
        time.sleep(0.0005)
    time.sleep(seconds)
    process.kill()
    process.wait(WAIT)
    while server.in_flight:
        time.sleep(0.001)
    return server.requests


def asked(requests):
    """Count the requests by what they hold."""
    return Counter(json.dumps(request.messages) for request in requests)


def numbers(requests):
    """Count the requests of every question."""
    return Counter(
        int(re.search(r"Question (\d+)", json.dumps(one.messages)).group(1)) for one in requests
    )
