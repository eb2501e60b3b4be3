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
from deepera_graph.multihop.roles import (
    CitedText,
    Conclusion,
    EvidenceText,
    PathStep,
    Plan,
    PlanTask,
    ReasonTask,
    ReplyTask,
    StepAnswer,
)
from deepera_graph.multihop.state import (
    AnswerStatus,
    CitedRecord,
    FinalRecord,
    MultiHopSettings,
    MultiHopState,
    StepRecord,
    StepTask,
    open_step,
    path_of,
)
from deepera_graph.multihop.uncertainty import normal_form
from deepera_graph.retrieval.word_index import WordIndex, name_passage
from deepera_graph.schema import with_repair_note
from deepera_graph.text.quotes import find_quote

INSUFFICIENT = "insufficient evidence"
Update = dict[str, Any]
_REFERENCE = re.compile(r"#(\d{1,3})\b")
_KNOWN = ("answered", "uncited")  # a step that has an answer
_MOST_KNOWN = 6  # earlier answers that a judge is told


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
    }


def ask_plan(state: MultiHopState, *, settings: MultiHopSettings) -> PlanTask:
    """Show the planner the question and the path so far."""
    return {
        "question": state["question"],
        "path": path_of(state["steps"]),
        "steps_left": settings.max_steps - len(state["steps"]),
    }


def record_plan(state: MultiHopState, plan: Plan, *, settings: MultiHopSettings) -> Update:
    """Open the steps that were asked for; none if the path is complete or begins to go round.

    A question that was asked before is left out, as are those above `max_steps`, and one that needs
    the answer of a step that is not done yet: the planner is asked again when it is. Where the
    first plan asks nothing, the question itself is the only step.
    """
    steps = state["steps"]
    wanted = [one.strip() for one in plan.questions if one.strip()]
    if steps and (plan.is_complete or not wanted):
        return _planned(plan, [], "complete", [])
    questions, problems = _new_questions(wanted, steps)
    if not questions and steps:
        return _planned(plan, [], "repetition", problems)
    if not questions:
        problems.append("the planner asked nothing: the question itself is the only step")
        questions = [state["question"]]
    left = settings.max_steps - len(steps)
    if len(questions) > left:
        problems.append(f"{len(questions)} sub-questions at once, {left} left: the first are asked")
    opened = [
        _opened(number, one, steps) for number, one in enumerate(questions[:left], len(steps) + 1)
    ]
    return _planned(plan, opened, "", problems)


def _new_questions(
    wanted: Sequence[str], steps: Sequence[StepRecord]
) -> tuple[list[str], list[str]]:
    """Return those of the questions that can be asked now, and what is to be told of the others."""
    asked = {_plain(one["question"]) for one in steps}
    new: dict[str, str] = {}
    for one in wanted:
        if _plain(one) not in asked:
            new.setdefault(_plain(one), one)
    ready: list[str] = []
    problems: list[str] = []
    for one in new.values():
        ahead = [n for n in map(int, _REFERENCE.findall(one)) if n > len(steps)]
        if ahead:
            problems.append(f"it needs the answer of step {ahead[0]} first: {one!r:.80}")
        else:
            ready.append(one)
    if wanted and not new:
        problems.append(f"the planner asked again: {wanted[0]!r:.80}")
    return ready, problems


def plan_failed(state: MultiHopState, error: RoleError) -> Update:
    """Go on with what there is; if there is nothing yet, with the question itself."""
    if isinstance(error, BudgetError):
        return {"stopped": "budget", "problems": [f"planning: {error}"], "thought": ""}
    if state["steps"]:
        return {"stopped": "plan_failed", "problems": [f"planning failed: {error}"], "thought": ""}
    told = f"planning failed: {error}; the question itself is the only step"
    return {"steps": [open_step(1, state["question"])], "problems": [told], "thought": ""}


def _planned(
    plan: Plan, opened: Sequence[StepRecord], stopped: str, problems: Sequence[str]
) -> Update:
    return {
        "steps": list(opened),
        "stopped": stopped,
        "problems": [*problems, *([plan.problem] if plan.problem else [])],
        "thought": plan.thought,
    }


def _opened(number: int, question: str, steps: Sequence[StepRecord]) -> StepRecord:
    """Return a step with the answers that its question names, as ``#1``, filled in."""
    answers = {one["number"]: one["answer"] for one in steps if one["status"] in _KNOWN}
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
    path = path_of(steps)
    searches = [
        Send("retrieve", StepTask(question=state["question"], path=path, step=one))
        for one in steps
        if one["status"] == "open"
    ]
    if searches:
        return searches
    if state["stopped"] or len(steps) >= settings.max_steps:
        return conclude(state)
    return "plan"


def conclude(state: MultiHopState) -> str:
    """Answer from what was found; there is nothing to ask about if no passage was."""
    return "reason" if any(one["passages"] for one in state["steps"]) else "abstain"


def gather(state: MultiHopState) -> Update:
    """Close the steps for which no passage was found."""
    empty = [one for one in state["steps"] if one["status"] == "found" and not one["passages"]]
    return {
        "steps": [
            {
                "number": one["number"],
                "question": one["question"],
                "status": "not_found",
                "cause": one["cause"] or "no passage was found",
            }
            for one in empty
        ]
    }


def next_replies(state: MultiHopState, *, settings: MultiHopSettings) -> list[Send] | str:
    """Answer the steps whose passages were found, all at once."""
    path = path_of(state["steps"])
    replies = [
        Send("reply", StepTask(question=state["question"], path=path, step=one))
        for one in state["steps"]
        if one["status"] == "found"
    ]
    return replies or next_steps(state, settings=settings)


def ask_reply(task: StepTask) -> ReplyTask:
    """Show the replier the sub-question and its passages."""
    return {"question": task["step"]["question"], "evidence": texts_of(task["step"]["passages"])}


def record_reply(task: StepTask, answer: StepAnswer) -> Update:
    """Note the answer of a step with the words that carry it.

    Words that no passage has are dropped; an answer that is then without any is ``uncited``.
    """
    step = task["step"]
    text = "" if normal_form(answer.text) in ((), ("unknown",)) else answer.text.strip()
    evidence, invented = _located(answer.cited, step["passages"])
    reason = with_repair_note(answer.reason, answer)
    if not text:
        cause = reason or "the passages do not have it"
        return _closed(step, status="not_found", cause=cause)
    if not evidence:
        note = "the answer names no sentence" if not invented else "the passages do not say it"
        cause = "; ".join(filter(None, (note, reason)))
        return _closed(step, status="uncited", answer=text, cause=cause)
    return _closed(step, status="answered", answer=text, cause=reason, evidence=evidence)


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
    cited, invented = _located(answer.cited, evidence)
    path = path_of(state["steps"])
    corrections = [
        {"step": one.step, "before": path[one.step - 1]["answer"], "after": one.answer}
        for one in answer.corrections
        if one.step <= len(path)
    ]
    about: dict[str, Any] = {"corrections": corrections, "check": answer.check}
    text = answer.text.strip()
    if not text or INSUFFICIENT in text.lower():
        cause = answer.check or "the evidence does not carry the whole way to the answer"
        final = _final(INSUFFICIENT, "insufficient_evidence", cause, **about)
    else:
        note = "" if cited else "the answer names no sentence of the evidence"
        if not cited and invented:
            note = "the answer quotes what no passage says"
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
    return {} if state["stopped"] else {"stopped": "max_steps"}


def _final(
    text: str, status: AnswerStatus, cause: str, *, cited: Sequence[CitedRecord] = (), **about: Any
) -> FinalRecord:
    return {
        "text": text,
        "status": status,
        "cause": cause,
        "citations": list(dict.fromkeys(one["id"] for one in cited)),
        "evidence": list(cited),
        "corrections": about.get("corrections", []),
        "check": about.get("check", ""),
    }


def texts_of(passages: Sequence[Document]) -> list[EvidenceText]:
    """Return passages as roles see them."""
    return [
        {"title": str(one.metadata.get("title") or ""), "text": one.page_content}
        for one in passages
    ]


def _located(
    cited: Sequence[CitedText], passages: Sequence[Document]
) -> tuple[list[CitedRecord], int]:
    """Return where cited words stand, and how many stand nowhere."""
    found: list[CitedRecord] = []
    for one in cited:
        if not 1 <= one.passage <= len(passages):
            continue
        passage = passages[one.passage - 1]
        text, quote = passage.page_content, one.text.strip()
        start = text.find(quote) if quote else -1
        end = start + len(quote)
        if start < 0:
            place = find_quote(text, quote)
            if place.start is None or place.end is None:
                continue
            start, end = place.start, place.end
        found.append(
            {
                "id": name_passage(passage),
                "title": str(passage.metadata.get("title") or ""),
                "quote": text[start:end],
                "span": [start, end],
            }
        )
    return found, len(cited) - len(found)


def question_with_path(question: str, path: Sequence[PathStep]) -> str:
    """Return a sub-question together with what is known, for who judges passages for it.

    A passage that answers the last hop only in the light of earlier answers is then evidence.

    Source:
        DeepEra names evidence of several hops as an open question; this is our answer to it.
    """
    known = [one for one in path if one["status"] in _KNOWN][-_MOST_KNOWN:]
    if not known:
        return question
    told = "; ".join(f"{_without_mark(one['question'])}: {one['answer']}" for one in known)
    return f"{question} (Known from earlier steps: {told}.)"


def _without_mark(question: str) -> str:
    return question.strip().rstrip("?").strip()


def final_evidence(state: MultiHopState, settings: MultiHopSettings) -> list[Document]:
    """Return the passages that the question is answered from, each once, best first.

    What the steps cite, and beside it the best `passages_a_step` of each; of these, ranked by the
    words of the question and of the answers on the path, the first `final_passages`. Cited
    passages go before the others when not all have room.

    Source:
        SUNAR, meta evidence reasoner: evidence of all steps ranked again by the question itself;
        the numbers are those of the authors' code.
    """
    cited: dict[str, Document] = {}
    others: dict[str, Document] = {}
    for step in state["steps"]:
        by_id = {name_passage(one): one for one in step["passages"]}
        cited |= {one["id"]: by_id[one["id"]] for one in step["evidence"] if one["id"] in by_id}
        others |= dict(list(by_id.items())[: settings.passages_a_step])
    room = max(0, settings.final_passages - len(cited))
    rest = [one for name, one in others.items() if name not in cited]
    query = _whole_question(state)
    chosen = [*list(cited.values())[: settings.final_passages], *_by_words(query, rest)[:room]]
    return _by_words(query, chosen)


def _whole_question(state: MultiHopState) -> str:
    answers = (one["answer"] for one in state["steps"] if one["status"] in _KNOWN)
    return " ".join((state["question"], *answers))


def _by_words(query: str, passages: Sequence[Document]) -> list[Document]:
    """Return passages by how their words match, equal ones and those without any as they came."""
    with WordIndex() as index:
        index.add(Document(id=str(n), page_content=_shown(one)) for n, one in enumerate(passages))
        found = [int(one.id or 0) for one in index.search(query, k=max(1, len(passages)))]
    rest = [n for n in range(len(passages)) if n not in found]
    return [passages[n] for n in (*found, *rest)]


def _shown(passage: Document) -> str:
    title = str(passage.metadata.get("title") or "")
    return f"{title}\n{passage.page_content}"
