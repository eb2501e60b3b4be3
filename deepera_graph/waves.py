"""What is asked about together, where not all is at once."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence

from deepera_graph.passages import retrieval_place
from deepera_graph.roles import PassageTask
from deepera_graph.schema import IntentKind
from deepera_graph.settings import Settings
from deepera_graph.state import ScoreTask, State
from deepera_graph.thresholds import cut

_DIGITS = 9  # of a score; 0.2 + 0.1 is then 0.3


def all_of(state: State, tasks: Sequence[ScoreTask]) -> Sequence[ScoreTask]:
    """Ask about everything at once."""
    return tasks


def next_wave(
    state: State,
    tasks: Sequence[ScoreTask],
    *,
    size: int,
    place_of: Callable[[ScoreTask], Hashable],
    takes_place: Callable[[PassageTask], bool] = lambda task: True,
) -> Sequence[ScoreTask]:
    """Return what is asked about next, in the order of *tasks*; nothing if nothing is left.

    The best of the first stage are first, or what a surveyor finds most promising. All windows of
    a passage go together. What takes no place, or one that is taken already, costs nothing more,
    and so goes with the first wave that it can.

    Args:
        state: What was judged before.
        tasks: All windows of all passages.
        size: Most places a wave, >= 1; more only for a single passage that takes more.
        place_of: Names the place that a window takes; the same name, the same place.
        takes_place: Whether a window takes one.
    """
    judged = {one["index"] for one in state["judgements"]}
    windows: dict[int, list[ScoreTask]] = defaultdict(list)
    for task in tasks:
        if task["index"] not in judged:
            windows[task["index"]].append(task)
    taken: set[Hashable] = set()
    chosen: set[int] = set()
    is_full = False
    for index in sorted(windows, key=lambda index: _turn(state, windows[index])):
        places = {place_of(one) for one in windows[index] if takes_place(one["task"])} - taken
        is_full = is_full or bool(taken and places and len(taken) + len(places) > size)
        if not places or not is_full:
            taken |= places
            chosen.add(index)
    return [task for task in tasks if task["index"] in chosen]


def place_of_passage(task: ScoreTask) -> Hashable:
    """Every passage takes a place of its own."""
    return task["index"]


def sure_from(settings: Settings, intent: IntentKind) -> float:
    """Return the lowest score that is surely above the threshold, in [0, 1], or above all scores.

    That is `enough_margin` above it, but no more than half the way from it to 1: a threshold of
    0.95 makes 0.975 sure, and one of 1.0 makes 1.0 sure.
    """
    lowest = cut(settings.threshold, [], intent)
    margin = min(settings.enough_margin, max(0.0, 1 - lowest) / 2)
    return max(lowest, round(lowest + margin, _DIGITS))


def _turn(state: State, windows: Sequence[ScoreTask]) -> tuple[float, int, int]:
    index = windows[0]["index"]
    promise = max(one.get("promise", 0.0) for one in windows)
    return -promise, retrieval_place(state["passages"][index], index)[0], index
