"""Score node for judges of groups: several windows, one call, one verdict each."""

from collections.abc import Sequence

from deepera_graph.errors import RoleError
from deepera_graph.nodes import score
from deepera_graph.roles import GroupTask, PassageTask
from deepera_graph.schema import GroupJudgement, Unjudged
from deepera_graph.state import ScoreGroup, Update

_Key = tuple[str, str, str]


def ask(group: ScoreGroup) -> GroupTask:
    """Show the judge every text of the group once; never an id, a place or a label."""
    return {"tasks": list(_distinct(group).values())}


def record(group: ScoreGroup, answer: GroupJudgement) -> Update:
    """Append the verdict on every window; equal texts get the same one."""
    verdict_of = dict(zip(_distinct(group), answer.verdicts, strict=True))
    updates = []
    for member in group["members"]:
        verdict = verdict_of[_key(member["task"])]
        note = score.leave if isinstance(verdict, Unjudged) else score.record
        updates.append(note(member, verdict))  # type: ignore[arg-type]  # chosen by its type
    return _joined(updates)


def rescue(group: ScoreGroup, error: RoleError) -> Update:
    """Keep all windows of the group, unscored."""
    return _joined([score.rescue(member, error) for member in group["members"]])


def find_problem(task: GroupTask, answer: GroupJudgement) -> str:
    """Say why verdicts do not fit their passages, or nothing."""
    n_verdicts, n_passages = len(answer.verdicts), len(task["tasks"])
    if n_verdicts == n_passages:
        return ""
    return f"unusable answer: {n_verdicts} verdicts on {n_passages} passages"


def _distinct(group: ScoreGroup) -> dict[_Key, PassageTask]:
    return {_key(member["task"]): member["task"] for member in group["members"]}


def _key(task: PassageTask) -> _Key:
    return task["title"], task["section"], task["text"]


def _joined(updates: Sequence[Update]) -> Update:
    return {"judgements": [one for update in updates for one in update["judgements"]]}
