"""How passages get to their judge: all at once or in waves, one by one or in groups."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from langgraph.types import Send

from deepera_graph.cache.store import JudgementCache
from deepera_graph.edges import one_per_group, one_per_window, text_of
from deepera_graph.limiter import Limiter
from deepera_graph.nodes import score, score_group
from deepera_graph.nodes.call import RoleNode
from deepera_graph.nodes.checked import checked_groups, checked_role
from deepera_graph.roles import Backend, JudgesGroups, gives_summaries, takes_place_of
from deepera_graph.schema import Judgement
from deepera_graph.settings import Settings
from deepera_graph.state import State
from deepera_graph.waves import next_wave, place_of_passage

Edge = Callable[[State], Sequence[Send] | str]


def score_edge(backend: Backend, settings: Settings) -> Edge:
    """Return the edge to the judge; in waves it is asked again after each, for the next one.

    A wave holds whole groups: a judge of groups of 10 is sent 10 texts where 8 are asked for.
    """
    judge, size = backend.judge, settings.passages_a_wave
    takes_place = takes_place_of(judge)
    edge = partial(one_per_window, settings=settings, with_summaries=gives_summaries(judge))
    wave = partial(next_wave, place_of=place_of_passage, takes_place=takes_place)
    if isinstance(judge, JudgesGroups):
        n = judge.group_size
        edge = partial(one_per_group, group_size=n, takes_place=takes_place, **edge.keywords)
        wave = partial(next_wave, place_of=text_of, takes_place=takes_place)
        size = size and -(-size // n) * n
    return edge if size is None else partial(edge, choose=partial(wave, size=size))


def score_node(
    backend: Backend, *, limiter: Limiter, cache: JudgementCache | None
) -> RoleNode[Any, Any, Any]:
    """Return the node that judges a window, or a group of them.

    Raises:
        SettingsError: There is a cache, and the backend cannot be told from others.
    """
    if isinstance(backend.judge, JudgesGroups):
        return RoleNode(
            "score",
            ask=score_group.ask,
            role=checked_groups(backend.judge, limiter=limiter, cache=cache, backend=backend),
            record=score_group.record,
            rescue=score_group.rescue,
            run_name=lambda group: f"score {len(group['members'])} passages",
        )
    role = checked_role(
        "judge", backend.judge, Judgement, limiter=limiter, cache=cache, backend=backend
    )
    return RoleNode(
        "score",
        ask=score.ask,
        role=role,
        record=score.record,
        rescue=score.rescue,
        run_name=lambda task: f"score {task['index'] + 1}",
    )
