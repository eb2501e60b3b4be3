"""How a network is trained on groups of passages: what is read in a step, and at which rate."""

import math
from collections.abc import Callable, Sequence
from random import Random
from time import perf_counter
from typing import Any, NamedTuple

from deepera_graph.lab.training.lessons.groups import Group
from deepera_graph.lab.training.weights import Log, import_package

PAIRS_A_STEP = 30
STEPS_SORTED = 160  # groups among which those of like length share a step
WARM_UP = 0.06  # share of the steps in which the learning rate rises
LEAST_RATE = 0.02  # of the learning rate, at the end
_LOG_EVERY = 50
Step = Sequence[Group]


class Schedule(NamedTuple):
    """When a training ends, and where it tells of itself."""

    minutes: float  # after which it ends, the learning rate having fallen by then
    log: Log
    name: str  # of what is trained


def take_steps(
    network: Any,
    optimizer: Any,
    steps: Sequence[Step],
    measure_loss: Callable[[Step], Any],
    how: Schedule,
) -> None:
    """Fit a network to steps, in their order; the rates of the optimizer rise first, then fall."""
    torch = import_package("torch")
    rates = [one["lr"] for one in optimizer.param_groups]
    began, n_read = perf_counter(), 0
    network.train()
    for place, step in enumerate(steps):
        done = max(place / len(steps), (perf_counter() - began) / 60 / how.minutes)
        if done >= 1:
            break
        share = min(1.0, (place + 1) / (WARM_UP * len(steps))) * max(LEAST_RATE, 1 - done)
        for one, its_rate in zip(optimizer.param_groups, rates, strict=True):
            one["lr"] = its_rate * share
        loss = measure_loss(step)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        n_read += sum(map(len, step))
        if place % _LOG_EVERY == 0:
            speed = n_read / (perf_counter() - began)
            told = {"of": len(steps), "at": place, "loss": float(loss.detach())}
            how.log({"step": how.name, **told, "pairs a second": speed})
    network.eval()


def plan_steps(
    groups: Sequence[Group], epochs: float, chance: Random, *, in_order: bool = False
) -> list[list[Group]]:
    """Put groups of like length into steps of about `PAIRS_A_STEP` pairs, anew each epoch."""
    planned: list[list[Group]] = []
    for epoch in range(math.ceil(epochs)):
        order = list(groups)
        if not in_order:
            chance.shuffle(order)
        order = order[: math.ceil(len(order) * min(1.0, epochs - epoch))]
        for start in range(0, len(order), STEPS_SORTED):
            some = sorted(order[start : start + STEPS_SORTED], key=_count_characters)
            steps: list[list[Group]] = [[]]
            for group in some:
                if sum(map(len, steps[-1])) >= PAIRS_A_STEP:
                    steps.append([])
                steps[-1].append(group)
            chance.shuffle(steps)
            planned += steps
    return planned


def _count_characters(group: Group) -> int:
    return max(len(one.text) for one in group)
