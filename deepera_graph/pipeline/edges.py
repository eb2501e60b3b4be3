"""Where the graph goes next."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence

from langchain_core.documents import Document
from langgraph.graph import END
from langgraph.types import Send

from deepera_graph.passages import Window, judged_windows, retrieval_place, shown_text
from deepera_graph.pipeline.state import ScoreGroup, ScoreTask, State, SummaryTask
from deepera_graph.schema import PROMISE, IntentFields, IntentKind, PassageTask
from deepera_graph.settings import Settings
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

    That is `stop_margin` above it, but no more than half the way from it to 1: a threshold of
    0.95 makes 0.975 sure, and one of 1.0 makes 1.0 sure.
    """
    lowest = cut(settings.threshold, [], intent)
    margin = min(settings.stop_margin, max(0.0, 1 - lowest) / 2)
    return max(lowest, round(lowest + margin, _DIGITS))


def _turn(state: State, windows: Sequence[ScoreTask]) -> tuple[float, int, int]:
    index = windows[0]["index"]
    promise = max(one.get("promise", 0.0) for one in windows)
    return -promise, retrieval_place(state["passages"][index], index)[0], index


MOST_CHARACTERS = 24_000  # of a group: about 6 000 tokens, which leaves room in 8 192
Choose = Callable[[State, Sequence[ScoreTask]], Sequence[ScoreTask]]
_Key = tuple[str, str, str]


def any_passages(state: State) -> str:
    """Nothing to judge needs no call at all."""
    return "intent" if state["passages"] else "select"


def any_windows(state: State, *, settings: Settings) -> str:
    """A survey of nothing needs no call at all."""
    return "survey" if judged_windows(state["passages"], settings.max_passage_chars) else "select"


def one_per_window(
    state: State, *, settings: Settings, with_summaries: bool = False, choose: Choose = all_of
) -> Sequence[Send] | str:
    """One score task for every passage, several for a very long one; with its notes, if any.

    *with_summaries* says that the judge can give the summary along with its score; *choose* says
    which tasks are next.
    """
    tasks = choose(state, _score_tasks(state, settings, with_summaries=with_summaries))
    return [Send("score", task) for task in tasks] or "select"


def one_per_group(
    state: State,
    *,
    settings: Settings,
    group_size: int,
    with_summaries: bool = False,
    choose: Choose = all_of,
    takes_place: Callable[[PassageTask], bool] = lambda task: True,
) -> Sequence[Send] | str:
    """One task for every *group_size* distinct texts at most; equal texts are in one group.

    The same texts make the same groups. They are sorted, as for a survey: neither the place of one
    nor how often it came in tells the judge anything. Those that take no place in a call, by
    *takes_place*, are one group more, of any size.
    """
    members: dict[_Key, list[ScoreTask]] = defaultdict(list)
    for task in choose(state, _score_tasks(state, settings, with_summaries=with_summaries)):
        members[text_of(task)].append(task)
    placed = sorted(key for key, own in members.items() if takes_place(own[0]["task"]))
    apart = sorted(members.keys() - set(placed))
    groups: list[ScoreGroup] = [
        {"members": [task for key in keys for task in members[key]]}
        for keys in (*_grouped(placed, group_size), apart)
        if keys
    ]
    return [Send("score", group) for group in groups] or "select"


def text_of(task: ScoreTask) -> _Key:
    """Return what a judge of groups is shown of a window: equal ones take one place."""
    shown = task["task"]
    return shown["title"], shown["section"], shown["text"]


def any_kept(state: State, *, settings: Settings) -> Sequence[Send] | str:
    """The filter edge: summarize what was kept, where the judge has not done it already.

    With nothing kept, answer or end.
    """
    kept = [record for record in state["ranking"] if record["kept"]]
    if not kept:
        return last_step(state, settings=settings)
    if settings.content == "passage":
        return "collect"
    done = {summary["index"] for summary in state.get("summaries", ())}
    sends = []
    for record in kept:
        if record["index"] in done:
            continue
        passage = state["passages"][record["index"]]
        start, end = record["window"] or (0, len(passage.page_content))
        summary_task: SummaryTask = {
            "index": record["index"],
            "id": record["id"],
            "quote": record["quote"],
            "task": _passage_task(
                state["question"], state["intent"]["fields"], passage, start, end
            ),
        }
        sends.append(Send("summarize", summary_task))
    return sends or "collect"


def last_step(state: State, *, settings: Settings) -> str:
    """Answer if that was asked for."""
    if not settings.answer:
        return END
    return "answer" if any(record["kept"] for record in state["ranking"]) else "abstain"


def _score_tasks(state: State, settings: Settings, *, with_summaries: bool) -> list[ScoreTask]:
    found = judged_windows(state["passages"], settings.max_passage_chars)
    notes = state.get("notes")
    pairs = zip(found, notes, strict=True) if notes else ((window, None) for window in found)
    floor = _lowest_kept(state, settings) if with_summaries else None
    return [_score_task(state, window, own, floor) for window, own in pairs]


def _grouped(keys: Sequence[_Key], size: int) -> list[list[_Key]]:
    """Cut into runs of about equal length, none longer than *size* or `MOST_CHARACTERS`."""
    n_runs = max(1, -(-len(keys) // size))
    longest = -(-len(keys) // n_runs)
    runs: list[list[_Key]] = []
    n_characters = 0
    for key in keys:
        n_own = sum(map(len, key))
        if not runs or len(runs[-1]) == longest or n_characters + n_own > MOST_CHARACTERS:
            runs.append([])
            n_characters = 0
        runs[-1].append(key)
        n_characters += n_own
    return runs


def _lowest_kept(state: State, settings: Settings) -> float | None:
    """Return the lowest score that may be kept; None if no summary is wanted, or none can be kept.

    A rule that goes by the scores has not seen them yet: its floor counts.
    """
    if settings.content == "passage":
        return None
    lowest = cut(settings.threshold, [], state["intent"]["fields"]["intent"])
    return lowest if lowest <= 1 else None


def _score_task(
    state: State, window: Window, notes: Mapping[str, float] | None, summary_from: float | None
) -> ScoreTask:
    index, start, end = window
    passage = state["passages"][index]
    task = _passage_task(state["question"], state["intent"]["fields"], passage, start, end)
    score_task: ScoreTask = {
        "index": index,
        "id": passage.id or str(index + 1),
        "start": start,
        "end": end,
        "task": task,
    }
    if notes is not None:
        task["notes"] = notes
    if notes is not None and PROMISE in notes:
        task["notes"] = {name: value for name, value in notes.items() if name != PROMISE}
        score_task["promise"] = notes[PROMISE]
    if summary_from is not None:
        task["summary_from"] = summary_from
    return score_task


def _passage_task(
    question: str, fields: IntentFields, passage: Document, start: int, end: int
) -> PassageTask:
    shown = shown_text(passage, start, end)
    return {
        "question": question,
        "intent": fields,
        "text": shown["text"],
        "title": shown["title"],
        "section": shown["section"],
    }
