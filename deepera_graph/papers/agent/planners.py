"""Who plans a search: one search, rules, or the styles of PaSa, SPAR and PaperScout."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Literal, get_args

from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda

from deepera_graph.agents.twin import TwinRunnable, Work, ask
from deepera_graph.errors import SettingsError
from deepera_graph.papers.agent.planning import find_seeds, is_kept
from deepera_graph.papers.agent.roles import N_QUERIES, PaperRoles
from deepera_graph.papers.agent.state import Action, PaperSeen, PlanTask, SearchPlan
from deepera_graph.papers.library.words import QUESTION_WORDS
from deepera_graph.papers.results import SearchMode
from deepera_graph.settings.ranges import check_choice
from deepera_graph.usage import Usage

_ASKING = frozenset(QUESTION_WORDS["before_subject"])
_FEWEST_LEFT = 3  # words that a subject keeps at least
_LABEL = re.compile(
    r"\b(?P<name>[A-Z][\w-]*(?:[\s-]+(?:19|20)\d\d)(?:\s+Shared)?\s+Task)[\s-]*(?P<number>\d{1,2})\b",
    re.I,
)


def subject_of(question: str) -> str:
    """Return a question from its first word that does not only ask."""
    # ``Are there papers that explore word order in parsing?`` is about ``word order in parsing?``.
    words = question.split()
    first = 0
    while first < len(words) - _FEWEST_LEFT and words[first].strip(",.?!").lower() in _ASKING:
        first += 1
    return " ".join(words[first:])


def find_labels(titles: Iterable[str]) -> list[str]:
    """Return the labels of shared tasks that titles have, the commonest first."""
    # ``SemEval-2018 Task 3`` is one. Labels that differ in case, spaces or hyphens are the same;
    # equally common ones are in the order of their first title.
    counts: Counter[str] = Counter()
    written: dict[str, str] = {}
    for title in titles:
        for found in {_plain(one[0]): one[0] for one in _LABEL.finditer(title)}.items():
            counts[found[0]] += 1
            written.setdefault(found[0], " ".join(found[1].split()))
    return [written[name] for name, _ in counts.most_common()]


def count_label(label: str, titles: Sequence[str]) -> int:
    """Return how many titles have a label."""
    wanted = _plain(label)
    return sum(wanted in {_plain(one[0]) for one in _LABEL.finditer(title)} for title in titles)


def _plain(label: str) -> str:
    return " ".join(re.sub(r"[\s-]+", " ", label).lower().split())


_RULES_DEPTH = 100
N_TITLES, N_LABELS, N_LIKE, N_EXPANDED, N_CITED = 10, 2, 3, 5, 30
LABEL_WEIGHT, LIKE_WEIGHT, LIKE_WORDS_WEIGHT, CITED_WEIGHT = 2.0, 1.0, 0.3, 3.0
LIKE_CHARS = 1500
_TOPIC, _GROW, _CITED = 1, 2, 3


def plan_by_rules(task: PlanTask) -> SearchPlan:
    """Plan the next round."""
    if task["step"] == _TOPIC or not task["history"]:
        query = subject_of(task["limits"]["topic"])
        k = 2 * _RULES_DEPTH if "hybrid" in task["modes"] else _RULES_DEPTH
        return _plan([Action(tool="search", text=query, k=k)])
    best = [one for one in task["pool"] if is_kept(one, task)]
    if task["step"] == _GROW:
        grown = [*_labels(best), *(_like(best) if "dense" in task["modes"] else ())]
        if grown:
            return _plan(grown)
    expanded = [] if any(one["tool"] != "search" for one in task["history"]) else _cited(best)
    return _plan(expanded)


def _plan(actions: Sequence[Action], thought: str = "") -> SearchPlan:
    """Return a plan that cost nothing; one without a call ends the search."""
    return SearchPlan(usage=Usage(), actions=[*actions], is_complete=not actions, thought=thought)


def _labels(best: list[PaperSeen]) -> list[Action]:
    titles = [one["title"] for one in best[:N_TITLES]]
    counts = {one: count_label(one, titles) for one in find_labels(titles)}
    labels = [one for one, n in counts.items() if n > 1][:N_LABELS]
    return [
        Action(
            tool="search",
            text=one,
            k=_RULES_DEPTH,
            mode="sparse",
            weight=LABEL_WEIGHT * counts[one] / counts[labels[0]],
        )
        for one in labels
    ]


def _like(best: list[PaperSeen]) -> list[Action]:
    """Search for papers like the best: by meaning for their texts, by words for their titles."""
    actions = []
    for one in best[:N_LIKE]:
        text = (
            f"{one['title']}. {one['abstract']}"[:LIKE_CHARS] if one["abstract"] else one["title"]
        )
        for mode, query, weight in (
            ("dense", text, LIKE_WEIGHT),
            ("sparse", one["title"], LIKE_WORDS_WEIGHT),
        ):
            actions.append(
                Action(tool="search", text=query, k=_RULES_DEPTH, mode=mode, weight=weight / N_LIKE)  # type: ignore[arg-type]
            )
    return actions


def _cited(best: list[PaperSeen]) -> list[Action]:
    weight = CITED_WEIGHT / N_EXPANDED
    tools = ("references", "citations")
    return [
        Action(tool=tool, text=one["id"], k=N_CITED, weight=weight)  # type: ignore[arg-type]
        for one in best[:N_EXPANDED]
        for tool in tools
    ]


_PASA_PER_QUERY = 10
LAYERS, PER_LAYER = 2, 20
Writer = Runnable[PlanTask, SearchPlan]


class _WritingPlanner(TwinRunnable[PlanTask, SearchPlan]):
    """Plans by rules where *by_rules* gives a plan; else has *choose*'s writer plan the queries.

    *finish* makes a plan of what was written.
    """

    def __init__(
        self,
        by_rules: Callable[[PlanTask], SearchPlan | None],
        choose: Callable[[PlanTask], Writer],
        finish: Callable[[SearchPlan, PlanTask], SearchPlan],
    ) -> None:
        self._by_rules, self._choose, self._finish = by_rules, choose, finish

    def work(self, task: PlanTask, config: RunnableConfig | None) -> Work[SearchPlan]:
        if ruled := self._by_rules(task):
            return ruled
        written = yield ask(self._choose(task), task, config)
        return self._finish(written, task)


def plan_as_pasa(writer: Writer) -> Writer:
    """Write queries first; then, layer by layer, follow references of all papers that fit."""
    return _WritingPlanner(
        lambda task: expand(task) if task["history"] else None,
        lambda task: writer,
        lambda plan, task: trim(plan),
    )


def trim(plan: SearchPlan, k: int = _PASA_PER_QUERY) -> SearchPlan:
    """Return a plan with the searches of the first round alone."""
    kept = [one for one in plan.actions if one.tool == "search"][:N_QUERIES]
    actions = [one.model_copy(update={"k": k}) for one in kept]
    return plan.model_copy(update={"actions": actions, "is_complete": not actions})


def expand(task: PlanTask) -> SearchPlan:
    """Expand the papers of the last layer that are kept, best first."""
    if task["step"] > 1 + LAYERS:
        return _plan([], thought="all layers are done")
    done = {one["text"] for one in task["history"] if one["tool"] == "references"}
    actions = [
        Action(tool="references", text=one["id"], k=PER_LAYER)
        for one in task["pool"]
        if is_kept(one, task) and one["id"] not in done
    ][:PER_LAYER]
    return _plan(actions)


PARALLEL, PER_CALL = 5, 20
LEAST = 0.01  # a paper that scores below it is dropped


def script_scout(queries: Sequence[str]) -> Writer:
    """Return a planner that searches in odd rounds, and in even ones expands the best papers."""

    def plan(task: PlanTask) -> SearchPlan:
        done = {(one["tool"], one["text"]) for one in task["history"]}
        rest = [one for one in queries if ("search", one) not in done][:PARALLEL]
        actions = [Action(tool="search", text=one, k=PER_CALL) for one in rest]
        if task["step"] % 2 == 0 or not rest:
            best = [one["id"] for one in task["pool"] if is_kept(one, task)]
            actions = [
                Action(tool="citations", text=one, k=PER_CALL)
                for one in best
                if ("citations", one) not in done
            ][:PARALLEL] or actions
        return _plan(actions)

    return RunnableLambda(plan)


DEPTH = 100


def plan_once(task: PlanTask, mode: SearchMode) -> SearchPlan:
    """Search once, for the topic of the question: what it excludes is not searched for."""
    if task["history"]:
        return _plan([])
    return _plan([Action(tool="search", text=task["limits"]["topic"], k=DEPTH, mode=mode)])


_SPAR_DEPTH, _SPAR_PER_QUERY, N_SEEDS, PER_SEED = 2, 10, 5, 20


def plan_as_spar(fuse: Writer, evolve: Writer) -> Writer:
    """Plan rounds of queries, the question itself among the first; after each the RefChain."""
    return _WritingPlanner(chain, lambda task: evolve if task["history"] else fuse, with_question)


def chain(task: PlanTask) -> SearchPlan | None:
    """Return the RefChain in even rounds, and the end when all depths are done."""
    if task["step"] > 2 * _SPAR_DEPTH:
        return _plan([], thought="all depths are done")
    if task["step"] % 2:
        return None
    done = {one["text"] for one in task["history"] if one["tool"] == "references"}
    actions = [
        Action(tool="references", text=one["id"], k=PER_SEED)
        for one in find_seeds(task)
        if one["id"] not in done
    ][:N_SEEDS]
    return _plan(actions) if actions else None


def with_question(plan: SearchPlan, task: PlanTask) -> SearchPlan:
    """Return the queries of a plan, in the first round with the topic before them."""
    trimmed = trim(plan, _SPAR_PER_QUERY)
    if task["history"]:
        return trimmed
    own = Action(tool="search", text=task["limits"]["topic"], k=_SPAR_PER_QUERY)
    rest = [one for one in trimmed.actions if one.text != own.text][: N_QUERIES - 1]
    return trimmed.model_copy(update={"actions": [own, *rest], "is_complete": False})


Style = Literal["rules", "sparse", "dense", "hybrid", "pasa", "spar", "scout"]
_WITHOUT_MODEL: tuple[Style, ...] = ("rules", "sparse", "dense", "hybrid")


def make_planner(
    style: Style,
    planner: Runnable[PlanTask, SearchPlan] | Sequence[str] | None,
    roles: PaperRoles | None,
) -> Writer:
    """Return the planner of a style, see `PaperSearch`; *planner* or *roles* write its queries."""
    check_choice("style", style, get_args(Style))
    if style in _WITHOUT_MODEL:
        if planner is not None:
            raise SettingsError(f"style {style!r} plans by itself, and takes no planner")
        mode: Any = style
        return RunnableLambda(plan_by_rules if style == "rules" else partial(plan_once, mode=mode))
    if planner is None and roles is None:
        raise SettingsError(
            f"style {style!r} needs a chat model or a planner; 'rules' needs neither"
        )
    if style == "scout":
        return roles.scout if roles and planner is None else _writer_of(planner, script_scout)
    if roles is None or planner is not None:
        queries = fuse = evolve = _writer_of(planner, script)
    else:
        queries = roles.queries
        fuse, evolve = roles.fuse or queries, roles.evolve or queries
    return plan_as_pasa(queries) if style == "pasa" else plan_as_spar(fuse, evolve)


def script(queries: Sequence[str]) -> Writer:
    """Return a writer that gives the next five of some queries, each once."""
    kept = list(queries)

    def write(task: PlanTask) -> SearchPlan:
        done = {one["text"] for one in task["history"]}
        rest = [one for one in kept if one not in done][:5]
        return _plan([Action(tool="search", text=one) for one in rest])

    return RunnableLambda(write)


def _writer_of(planner: Any, of_queries: Callable[[Sequence[str]], Writer]) -> Writer:
    if isinstance(planner, Sequence) and not isinstance(planner, str):
        return of_queries(list(planner))
    if isinstance(planner, Runnable):
        return planner
    if callable(planner):
        return RunnableLambda(planner)
    raise SettingsError(
        f"planner must be queries, a function or a runnable, got {type(planner).__name__}"
    )
