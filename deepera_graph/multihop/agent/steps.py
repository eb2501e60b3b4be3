"""The steps of the agent, as pure functions around one role call each; see `agent.py` for the way.

`plan` asks for the next sub-questions, `reply` answers one from its passages, `reason` answers the
question itself from the path and all evidence. What they are given and give is plain data.
"""

import re
from collections.abc import Sequence
from typing import Any

from langchain_core.documents import Document
from langgraph.types import Send

from deepera_graph.errors import BudgetError, RoleError
from deepera_graph.multihop.agent.roles import (
    Conclusion,
    HopPlanTask,
    Plan,
    ReasonTask,
    ReplyTask,
    StepAnswer,
)
from deepera_graph.multihop.agent.state import (
    AnswerStatus,
    FinalRecord,
    MultiHopState,
    StepRecord,
    StepTask,
    StopReason,
    merge_steps,
    open_step,
    path_of,
)
from deepera_graph.multihop.path import KNOWN, CitedRecord, locate, normal_form, texts_of
from deepera_graph.multihop.settings import MultiHopSettings
from deepera_graph.schema import with_repair_note
from deepera_graph.stores.words import name_passage

INSUFFICIENT = "insufficient evidence"
Update = dict[str, Any]
_REFERENCE = re.compile(r"#(\d{1,3})\b")


def receive(state: MultiHopState) -> Update:
    """Begin a question anew, whatever the thread held before."""
    return {
        "question": state["question"],
        "steps": None,
        "answer": None,
        "evidence": [],
        "stopped": "",
        "problems": None,
        "usage": None,
        "thought": "",
        "pending": [],
        "is_retry": False,
        "is_complete": False,
        "n_before": 0,
    }


def ask_plan(state: MultiHopState, *, settings: MultiHopSettings) -> HopPlanTask:
    """Show the planner the question and the path so far."""
    return {
        "question": state["question"],
        "path": path_of(state["steps"]),
        "steps_left": settings.max_steps - len(state["steps"]),
    }


def record_plan(state: MultiHopState, plan: Plan, *, settings: MultiHopSettings) -> Update:
    """Open the steps that can be asked now, and let those wait that need the answers of others."""
    # A question that was asked before is left out, as are those above `max_steps`. Where the first
    # plan asks nothing, the question itself is the only step.
    steps = state["steps"]
    wanted = [one.strip() for one in plan.questions if one.strip()]
    if steps and not wanted:
        return _planned(plan, [], [], "complete", [])
    questions, problems = _new_questions(wanted, steps)
    is_whole = not problems
    if not questions and steps:
        stopped: StopReason = "complete" if plan.is_complete else "repetition"
        return _planned(plan, [], [], stopped, problems)
    if not questions:
        problems.append("the planner asked nothing: the question itself is the only step")
        questions = [state["question"]]
    left = settings.max_steps - len(steps)
    if len(questions) > left:
        problems.append(f"{len(questions)} sub-questions planned, {left} left: the first are asked")
    opened, pending = _open_ready(questions[:left], steps)
    update = _planned(plan, opened, pending, "", problems)
    is_complete = plan.is_complete and is_whole and len(questions) <= left
    return {**update, "is_complete": is_complete, "n_before": len(steps)}


def _new_questions(
    wanted: Sequence[str], steps: Sequence[StepRecord]
) -> tuple[list[str], list[str]]:
    """Return the questions of a plan that are new, and what is to be told of the others."""
    # The planner numbers all that it asks, so that a number behind a question that was asked before
    # is another one here. At a question that needs what comes after it the plan ends.
    numbers = {_plain(one["question"]): one["number"] for one in steps}
    places = {one["number"]: one["number"] for one in steps}
    new: list[str] = []
    for place, one in enumerate(wanted, start=len(steps) + 1):
        ahead = [n for n in map(int, _REFERENCE.findall(one)) if n not in places]
        if ahead:
            return new, [f"it needs the answer of step {ahead[0]} first: {one!r:.80}"]
        number = numbers.setdefault(_plain(one), len(steps) + len(new) + 1)
        places[place] = number
        if number > len(steps) + len(new):
            new.append(_REFERENCE.sub(lambda found: f"#{places[int(found[1])]}", one))
    return new, [f"the planner asked again: {wanted[0]!r:.80}"] if wanted and not new else []


def _open_ready(
    questions: Sequence[str], steps: Sequence[StepRecord]
) -> tuple[list[StepRecord], list[str]]:
    """Open the first questions, up to one that needs the answer of another; return the rest."""
    needed = [max(map(int, _REFERENCE.findall(one)), default=0) for one in questions]
    n = next((place for place, most in enumerate(needed) if most > len(steps)), len(questions))
    opened = [
        _opened(number, one, steps) for number, one in enumerate(questions[:n], len(steps) + 1)
    ]
    return opened, list(questions[n:])


def plan_failed(state: MultiHopState, error: RoleError) -> Update:
    """Go on with what there is; if there is nothing yet, with the question itself."""
    over: Update = {"thought": "", "pending": [], "is_retry": False, "is_complete": False}
    if isinstance(error, BudgetError):
        return {**over, "stopped": "budget", "problems": [f"planning: {error}"]}
    if state["steps"]:
        return {**over, "stopped": "plan_failed", "problems": [f"planning failed: {error}"]}
    told = f"planning failed: {error}; the question itself is the only step"
    return {**over, "steps": [open_step(1, state["question"])], "problems": [told]}


def _planned(
    plan: Plan,
    opened: Sequence[StepRecord],
    pending: list[str],
    stopped: StopReason,
    problems: Sequence[str],
) -> Update:
    return {
        "steps": list(opened),
        "pending": pending,
        "stopped": stopped,
        "problems": [*problems, *([plan.problem] if plan.problem else [])],
        "thought": plan.thought,
        "is_retry": plan.is_retry,
        "is_complete": plan.is_complete,
    }


def _opened(number: int, question: str, steps: Sequence[StepRecord]) -> StepRecord:
    """Return a step with the answers that its question names, as ``#1``, filled in."""
    answers = {one["number"]: one["answer"] for one in steps if one["status"] in KNOWN}
    named = [int(one) for one in _REFERENCE.findall(question)]
    missing = [one for one in named if one < number and one not in answers]
    if missing:
        step = open_step(number, question)
        cause = f"it needs the answer of step {missing[0]}, which has none"
        return {**step, "status": "failed", "cause": cause}
    filled = _REFERENCE.sub(lambda one: answers.get(int(one[1]), one[0]), question)
    return open_step(number, filled)


def _plain(question: str) -> str:
    """Return what is compared of two sub-questions: their words, in their order, without case."""
    return " ".join(re.findall(r"\w+", question.casefold()))


def next_steps(state: MultiHopState, *, settings: MultiHopSettings) -> list[Send] | str:
    """Search for the open steps, all at once; without any, plan again or conclude."""
    steps = state["steps"]
    path, read = path_of(steps), _read_in_vain(state)
    searches = [
        Send(
            "retrieve", StepTask(question=state["question"], path=path, step=one, passed_over=read)
        )
        for one in steps
        if one["status"] == "open"
    ]
    if searches:
        return searches
    if state["stopped"] or len(steps) >= settings.max_steps or _is_done(state):
        return conclude(state)
    return "plan"


def _read_in_vain(state: MultiHopState) -> list[str]:
    """Return what need not be read again where the plan asks again for what was not found."""
    missed = [one for one in state["steps"] if one["status"] == "not_found"]
    names = (name_passage(passage) for one in missed for passage in one["passages"])
    return [*dict.fromkeys(names)] if state["is_retry"] else []


def _is_done(state: MultiHopState) -> bool:
    """Whether the last plan said that it is the last, and all that it asked has an answer."""
    return state["is_complete"] and not state["pending"] and _is_answered(state, state["steps"])


def _is_answered(state: MultiHopState, steps: Sequence[StepRecord]) -> bool:
    return all(one["answer"] for one in steps[state["n_before"] :])


def conclude(state: MultiHopState) -> str:
    """Answer from what was found; there is nothing to ask about if no passage was."""
    return "reason" if any(one["passages"] for one in state["steps"]) else "abstain"


def gather(state: MultiHopState) -> Update:
    """Close the steps for which no passage was found, and open those that waited for an answer."""
    # Where a step of the plan has none, the rest of the plan is given up.
    closed: list[Any] = [
        {
            "number": one["number"],
            "question": one["question"],
            "status": "not_found",
            "cause": one["cause"] or "no passage was found",
        }
        for one in state["steps"]
        if one["status"] == "found" and not one["passages"]
    ]
    steps = merge_steps(state["steps"], closed)
    if not state["pending"] or any(one["status"] in ("open", "found") for one in steps):
        return {"steps": closed}
    if not _is_answered(state, steps):
        return {"steps": closed, "pending": []}
    opened, pending = _open_ready(state["pending"], steps)
    return {"steps": [*closed, *opened], "pending": pending, "is_retry": False}


def next_replies(state: MultiHopState, *, settings: MultiHopSettings) -> list[Send] | str:
    """Answer the steps whose passages were found, all at once."""
    path = path_of(state["steps"])
    replies = [
        Send("reply", StepTask(question=state["question"], path=path, step=one, passed_over=[]))
        for one in state["steps"]
        if one["status"] == "found"
    ]
    return replies or next_steps(state, settings=settings)


def ask_reply(task: StepTask, *, settings: MultiHopSettings) -> ReplyTask:
    """Show the replier the sub-question, and the next of its passages."""
    step = task["step"]
    shown = step["passages"][step["n_read"] : step["n_read"] + settings.read_at_once]
    return {"question": step["question"], "evidence": texts_of(shown)}


def record_reply(task: StepTask, answer: StepAnswer, *, settings: MultiHopSettings) -> Update:
    """Note the answer of a step with the words that carry it."""
    # Without an answer the passages that were not read yet are next. Words that no passage has are
    # dropped; an answer that is then without any is ``uncited``, and likely at best.
    step = task["step"]
    n_read = min(step["n_read"] + settings.read_at_once, len(step["passages"]))
    text = "" if normal_form(answer.text) in ((), ("unknown",)) else answer.text.strip()
    reason = with_repair_note(answer.reason, answer)
    read = {"n_read": n_read, "passages": step["passages"][:n_read]}
    if not text or answer.support == "none":
        if n_read < len(step["passages"]):
            return _closed(step, status="found", n_read=n_read)
        cause = reason or "the passages do not have it"
        return _closed(step, status="not_found", cause=cause, **read)
    evidence, invented = locate(answer.cited, step["passages"][step["n_read"] : n_read])
    if not evidence:
        note = "the answer names no sentence" if not invented else "the passages do not say it"
        cause = "; ".join(filter(None, (note, reason)))
        return _closed(step, status="uncited", answer=text, support="likely", cause=cause, **read)
    found = {"answer": text, "support": answer.support, "cause": reason, "evidence": evidence}
    return _closed(step, status="answered", **found, **read)


def reply_failed(task: StepTask, error: RoleError) -> Update:
    """Say that a step has no answer, and why; the path goes on."""
    status = "skipped_budget" if isinstance(error, BudgetError) else "failed"
    update = _closed(task["step"], status=status, cause=str(error))
    told = f"step {task['step']['number']}: {error}"
    return {**update, "problems": [told]}


def _closed(step: StepRecord, **found: Any) -> Update:
    return {"steps": [{"number": step["number"], "question": step["question"], **found}]}


def ask_reason(state: MultiHopState, *, settings: MultiHopSettings) -> ReasonTask:
    """Show the reasoner the path, and what `final_evidence` chose of all steps."""
    evidence = final_evidence(state, settings)
    return {
        "question": state["question"],
        "path": path_of(state["steps"]),
        "evidence": texts_of(evidence),
    }


def record_conclusion(
    state: MultiHopState, answer: Conclusion, *, settings: MultiHopSettings
) -> Update:
    """Keep the answer beside the path: where it corrects a step, both answers stand."""
    evidence = final_evidence(state, settings)
    cited, invented = locate(answer.cited, evidence)
    path = path_of(state["steps"])
    corrections = [
        {"step": one.step, "before": path[one.step - 1]["answer"], "after": one.answer}
        for one in answer.corrections
        if one.step <= len(path)
    ]
    about: dict[str, Any] = {"corrections": corrections, "check": answer.check}
    text = answer.text.strip()
    if not text or answer.support == "none" or INSUFFICIENT in text.lower():
        cause = answer.check or "the evidence does not carry the whole way to the answer"
        final = _final(INSUFFICIENT, "insufficient_evidence", cause, **about)
    else:
        note = "" if cited else "the answer names no sentence of the evidence"
        if not cited and invented:
            note = "the answer quotes what no passage says"
        about["support"] = answer.support if cited else "likely"
        final = _final(text, "answered", with_repair_note(note, answer), cited=cited, **about)
    return {"answer": final, "evidence": evidence, **_ended(state)}


def reason_failed(state: MultiHopState, error: RoleError, *, settings: MultiHopSettings) -> Update:
    """Say that there is no answer, and why; the path stays."""
    status: AnswerStatus = "budget_stop" if isinstance(error, BudgetError) else "failed"
    told = [f"the final answer: {error}"]
    return {
        "answer": _final("", status, str(error)),
        "evidence": final_evidence(state, settings),
        **_ended(state),
        "problems": told,
    }


def abstain(state: MultiHopState) -> Update:
    """Say that the evidence does not suffice, as there is none; or why nothing was looked for."""
    causes = [one["cause"] for one in state["steps"] if one["status"] == "failed"]
    if state["stopped"] == "budget":
        final = _final("", "budget_stop", state["problems"][-1])
    elif causes and len(causes) == len(state["steps"]):
        final = _final("", "failed", causes[0])
    else:
        final = _final(INSUFFICIENT, "insufficient_evidence", "no passage was found")
    return {"answer": final, "evidence": [], **_ended(state)}


def _ended(state: MultiHopState) -> Update:
    return {} if state["stopped"] else {"stopped": "complete" if _is_done(state) else "max_steps"}


def _final(
    text: str, status: AnswerStatus, cause: str, *, cited: Sequence[CitedRecord] = (), **about: Any
) -> FinalRecord:
    return {
        "text": text,
        "status": status,
        "support": about.get("support", "none"),
        "cause": cause,
        "citations": list(dict.fromkeys(one["id"] for one in cited)),
        "evidence": list(cited),
        "corrections": about.get("corrections", []),
        "check": about.get("check", ""),
    }


def final_evidence(state: MultiHopState, settings: MultiHopSettings) -> list[Document]:
    """Return the passages that an answer is drawn from, each once, `final_passages` at most."""
    # What the answers on the path cite, in its order; then, best first, `passages_a_step` of each
    # step whose answer is not proven.
    # Source: SUNAR, meta evidence reasoner, whose code takes the best of every step and ranks them
    # again by the question: a passage that shares no word with the question, as that of a last
    # step, then goes first. What answers cite is evidence already.
    cited: dict[str, Document] = {}
    others: dict[str, Document] = {}
    for step in state["steps"]:
        by_id = {name_passage(one): one for one in step["passages"]}
        cited |= {one["id"]: by_id[one["id"]] for one in step["evidence"] if one["id"] in by_id}
        if step["support"] != "proven":
            others |= dict(list(by_id.items())[: settings.passages_a_step])
    return list({**cited, **others}.values())[: settings.final_passages]
