"""What a search for papers brings: the ranked papers with reasons, the trace, and other forms."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from deepera_graph.agents.run import AgentResult
from deepera_graph.chat.parsing import sanitize_line
from deepera_graph.literature.citation import Citation
from deepera_graph.literature.paper_keys import PaperStatus, name_status
from deepera_graph.papers.agent.limits import Limits, breaks_by_facts
from deepera_graph.papers.agent.planning import JUDGED, LETTERS, order
from deepera_graph.papers.agent.state import (
    ActionRecord,
    FoundBy,
    PooledPaper,
    StopReason,
)
from deepera_graph.papers.base import PaperBase
from deepera_graph.papers.paper import (
    Listed,
    ListFormat,
    Paper,
    cite_paper,
    mark_papers,
    write_list,
)
from deepera_graph.papers.results import Scope
from deepera_graph.settings.ranges import check_at_least, check_choice
from deepera_graph.text.jsonl import format_json
from deepera_graph.text.plain import count
from deepera_graph.usage import Usage

FoundFormat = Literal["text", "json", ListFormat, "mermaid"]
_SHOWN, _SHOWN_OUT = 20, 5
_N_LOOKUPS = 3  # that a paper names
_LOOKUPS = {letter: tool for tool, letter in LETTERS.items()}


@dataclass(frozen=True, slots=True)
class FoundPaper:
    """A paper that was found, and why it is in or out.

    Attributes:
        paper: The paper.
        rank: From 1; 0 for what is left out.
        score: The selector's, in [0, 1], or None.
        verdict: ``in``, ``out`` (it breaks a limit) or ``unjudged``.
        fits: Whether it was judged to fit well enough; None if nobody said.
        reason: Why, in a sentence.
        quote: The words of title or abstract that show it.
        against: The limit that it breaks, or empty.
        found_by: The calls that found it, in order, with its rank in each; none if it was looked
            for only to say that the years or venues of the question leave it out.
    """

    paper: Paper
    rank: int = 0
    score: float | None = None
    verdict: str = "unjudged"
    fits: bool | None = None
    reason: str = ""
    quote: str = ""
    against: str = ""
    found_by: tuple[FoundBy, ...] = ()

    @property
    def id(self) -> str:
        """Of the paper."""
        return self.paper.id

    @property
    def paper_status(self) -> PaperStatus | None:
        """What became of it, by its title or a notice that was found, too; see `Paper`."""
        return self.paper.paper_status

    @property
    def citation(self) -> Citation:
        """How it is cited."""
        return cite_paper(self.paper)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "rank": self.rank,
            **{name: getattr(self, name) for name in JUDGED},
            **({"paper_status": self.paper_status} if self.paper_status else {}),
            "found_by": [{"call": one["call"], "rank": one["rank"]} for one in self.found_by],
            "paper": self.paper.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class Found(AgentResult):
    """The papers that a question asks for, and how they were found.

    Attributes:
        question: What was asked.
        limits: As they were read.
        papers: Best first.
        left_out: What breaks a limit, with the limit, also what the years and venues of the
            question leave out of the best of a base on this machine; in the style ``scout`` also
            what scored below .01.
        actions: Every call of the base with its yield, in order.
        stopped: ``complete``, ``max_steps``, ``max_actions``, ``max_papers``, ``no_gain``,
            ``plan_failed`` or ``budget``.
        problems: All that went wrong on the way, in words.
        usage: Calls and tokens by role.
        seconds: How long it took; of a resumed search what was done now.
        manifest: Who planned and selected, with which settings, scope and versions.
    """

    question: str
    limits: Limits
    papers: tuple[FoundPaper, ...]
    left_out: tuple[FoundPaper, ...]
    actions: tuple[ActionRecord, ...]
    stopped: StopReason
    problems: tuple[str, ...]
    usage: Mapping[str, Usage]
    seconds: float
    manifest: Mapping[str, Any]

    @classmethod
    def of(
        cls,
        state: Mapping[str, Any],
        *,
        outside: Sequence[FoundPaper] = (),
        usage: Mapping[str, Usage],
        seconds: float,
        manifest: Mapping[str, Any],
    ) -> "Found":
        """Return what a finished state holds, and what is *outside* of its years and venues."""
        pool: Mapping[str, PooledPaper] = state["pool"]
        ranking: Sequence[str] = state["ranking"]
        kept = set(ranking)
        out = [id for id in order(pool) if id not in kept]
        ranked = [_paper(pool[id], rank) for rank, id in enumerate(ranking, 1)]
        every = _mark([*ranked, *(_paper(pool[id], 0) for id in out), *outside])
        return cls(
            question=state["question"],
            limits=Limits.from_dict(state["limits"]),
            papers=tuple(every[: len(ranked)]),
            left_out=tuple(every[len(ranked) :]),
            actions=tuple(state["actions"]),
            stopped=state["stopped"],
            problems=tuple(state["problems"]),
            usage=usage,
            seconds=seconds,
            manifest=manifest,
        )

    @property
    def ids(self) -> list[str]:
        """Of the papers, best first."""
        return [one.id for one in self.papers]

    @property
    def steps(self) -> int:
        """Rounds in which something was called."""
        return len({one["step"] for one in self.actions})

    @property
    def n_seen(self) -> int:
        """How many papers came into the pool."""
        return len(self.papers) + sum(bool(one.found_by) for one in self.left_out)

    @property
    def has_failed(self) -> bool:
        """Whether a call, a plan or a judgement failed on the way."""
        failed = any(one["status"] == "failed" for one in self.actions)
        return failed or self.stopped in ("plan_failed", "budget") or self._has_unjudged

    @property
    def _has_unjudged(self) -> bool:
        return any(one.reason.startswith("not judged") for one in self.papers)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as ``deepera papers ask --json`` writes it."""
        return {
            "question": self.question,
            "limits": self.limits.to_dict(),
            "papers": [one.to_dict() for one in self.papers],
            "left_out": [one.to_dict() for one in self.left_out],
            "actions": [dict(one) for one in self.actions],
            "stopped": self.stopped,
            **self.plain_end(),
        }

    def export(self, format: FoundFormat = "text", *, k: int | None = None) -> str:
        """Return it as text in a form that a reader or another program takes.

        Args:
            format: ``text``, ``json``, ``csv``, ``bibtex``, ``ris``, or ``mermaid``: the search
                as a tree.
            k: Most papers; None: all, of ``text`` the first 20.

        Raises:
            SettingsError: There is no such format, or *k* is below 1.
        """
        check_choice("format", format, get_args(FoundFormat))
        if k is not None:
            check_at_least("k", k, 1)
        if format == "text":
            return self.to_text(k=k or _SHOWN)
        if format == "mermaid":
            return draw_mermaid(self.question, self.actions)
        if format == "json":
            plain = {**self.to_dict(), "papers": [one.to_dict() for one in self.papers[:k]]}
            return format_json(plain)
        return write_list([_list(one) for one in self.papers[:k]], format)

    def to_text(self, *, k: int = _SHOWN, closing: bool = True, lookups: bool = False) -> str:
        """Return the first *k* papers for a reader, with reasons, and what was left out.

        With *lookups* also what was looked up in the base, in order, and what came of it.
        """
        lines = [sanitize_line(self.question), *_limit_line(self.limits), ""]
        for one in self.papers[:k]:
            lines += _paper_lines(one, f"{one.rank:>3}.")
        if not self.papers:
            lines.append("no paper was found")
        if len(self.papers) > k:
            lines.append(f"     ... and {len(self.papers) - k} more")
        lines += _left_out_lines(self.left_out)
        if lookups:
            lines += ["", "looked up:", *map(_lookup_line, self.actions)]
        lines += [f"note: {sanitize_line(one)}" for one in self.problems]
        return "\n".join([*lines, *(["", self._closing_line()] if closing else [])])

    def _closing_line(self) -> str:
        used = self.total_usage
        paid = f", {used.calls} model calls, {used.tokens} tokens" if used.calls else ""
        papers, calls = count(len(self.papers), "paper"), count(len(self.actions), "lookup")
        return (
            f"{papers}, {len(self.left_out)} left out; {calls} in {count(self.steps, 'round')} "
            f"({self.stopped.replace('_', ' ')}){paid}, {self.seconds:.1f} s"
        )


def _paper(one: PooledPaper, rank: int) -> FoundPaper:
    judged: dict[str, Any] = {name: one[name] for name in JUDGED}  # type: ignore[literal-required]
    paper, found_by = Paper.from_dict(one["paper"]), tuple(one["found_by"])
    return FoundPaper(paper=paper, rank=rank, found_by=found_by, **judged)


def _mark(found: Sequence[FoundPaper]) -> list[FoundPaper]:
    papers = mark_papers([one.paper for one in found])
    return [replace(one, paper=paper) for one, paper in zip(found, papers, strict=True)]


_MOST_OUTSIDE = 10


def find_outside(base: PaperBase, state: Mapping[str, Any]) -> list[FoundPaper]:
    """Return what the years and venues of a question leave out of the best that a base has."""
    # A base behind an address is not asked again.
    searches = [one for one in state["actions"] if one["tool"] == "search"]
    if state["searched"] == state["scope"] or not searches or not getattr(base, "is_local", False):
        return []
    limits, inner = Limits.from_dict(state["limits"]), Scope.from_dict(state["searched"])
    first, scope = searches[0], Scope.from_dict(state["scope"])
    hits = base.search(first["text"], mode=first["mode"], k=_MOST_OUTSIDE, scope=scope)
    return [
        _outside(one.paper, limits)
        for one in hits
        if not inner.allows(one.paper) and one.paper.id not in state["pool"]
    ]


def _outside(paper: Paper, limits: Limits) -> FoundPaper:
    only = f"only at {' or '.join(limits.venues)}"
    against = breaks_by_facts(paper.to_dict(), limits)[0] or only
    reason = f"breaks a limit: {against}"
    return FoundPaper(paper, verdict="out", reason=reason, against=against)


def _limit_line(limits: Limits) -> list[str]:
    said = []
    for name, value in limits.to_dict().items():
        if name not in ("question", "topic", "notes"):
            text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            said.append(f"{name.replace('_', ' ')} {text}")
    return [f"limits: {'; '.join(said)}"] if said else []


def _paper_lines(one: FoundPaper, head: str) -> list[str]:
    score = "" if one.score is None else f"{one.score:.2f}  "
    calls = ", ".join(_name_lookup(each["call"]) for each in one.found_by[:_N_LOOKUPS])
    if (n_more := len(one.found_by) - _N_LOOKUPS) > 0:
        calls += f" and {n_more} more"
    lines = [f"{head} {score}[{one.id}] {sanitize_line(str(one.citation))}"]
    if one.quote:
        lines.append(f"     “{sanitize_line(one.quote)}”")
    said = (sanitize_line(one.reason), calls and f"found by {calls}")
    lines.append(f"     {'; '.join(filter(None, said))}")
    return lines


def _left_out_lines(left_out: Sequence[FoundPaper]) -> list[str]:
    lines = ["", "left out:"] if left_out else []
    for one in left_out[:_SHOWN_OUT]:
        lines += _paper_lines(one, "   -")
    more = len(left_out) - _SHOWN_OUT
    return [*lines, f"     ... and {more} more"] if more > 0 else lines


def _name_lookup(id: str) -> str:
    return f"{_LOOKUPS[id[0]]} {id[1:]}"


def _lookup_line(one: ActionRecord) -> str:
    gave = f"{one['found']} found, {one['new']} new" if one["status"] == "ok" else one["status"]
    return (
        f"   - {_name_lookup(one['id'])}: {sanitize_line(one['text'])} ({gave.replace('_', ' ')})"
    )


def _list(one: FoundPaper) -> Listed:
    names = ("score", "verdict", "reason", "quote")
    calls = " ".join(each["call"] for each in one.found_by)
    after = {**{name: getattr(one, name) or None for name in names}, "found_by": calls}
    after["paper_status"] = one.paper_status
    note = "; ".join(filter(None, (name_status(one.paper_status), one.quote or one.reason)))
    return Listed(one.paper, note, {"rank": one.rank}, after)


_LABEL = 60  # characters of a text in the tree


def draw_mermaid(question: str, actions: Sequence[ActionRecord]) -> str:
    """Return a search as a Mermaid flowchart, which Markdown viewers and notebooks draw."""
    # A search hangs on the question, an expansion on the call that found its paper first.
    first: dict[str, str] = {}
    lines = ["flowchart LR", f'  Q["{_label(question)}"]']
    for one in actions:
        page = f", from place {one['offset'] + 1}" if one["offset"] else ""
        title = _label(f"{one['id']} {one['tool']}: {one['text']}{page}")
        brought = f"{one['found']} found, {one['new']} new, {one['kept']} kept"
        if one["status"] not in ("ok", "empty"):
            brought = one["status"].replace("_", " ")
        parent = first.get(one["text"], "Q") if one["tool"] != "search" else "Q"
        lines.append(f'  {one["id"]}["{title}<br/>{brought}"]')
        lines.append(f"  {parent} -->|round {one['step']}| {one['id']}")
        for id in one["ids"]:
            first.setdefault(id, one["id"])
    return "\n".join(lines) + "\n"


def _label(text: str) -> str:
    line = " ".join(text.split())
    line = line if len(line) <= _LABEL else f"{line[:_LABEL].rstrip()} ..."
    for letter, code in (("#", "#35;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;")):
        line = line.replace(letter, code)
    return line
