"""Papers by what a base calls them, whatever kind of id names them in queries and runs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from deepera_graph.errors import InputError
from deepera_graph.lab.studies.papers.runs import PaperQuery, QueryRun, Run
from deepera_graph.literature.paper_keys import normalize_id
from deepera_graph.papers.base import PaperBase
from deepera_graph.text.plain import count, name_some


@dataclass(frozen=True, slots=True)
class KnownPapers:
    """The papers that queries name, as far as a base has them."""

    own_ids: Mapping[str, str]  # what the base calls a paper, by each of its ids
    n_answers: int
    missing: Sequence[str]  # answers that the base does not have

    @classmethod
    def of(cls, queries: Sequence[PaperQuery], base: PaperBase | None) -> "KnownPapers":
        """Ask a base for each paper that is an answer, breaks a limit or is hidden."""
        if base is None:
            return cls({}, 0, ())
        own_ids: dict[str, str] = {}
        named = chain.from_iterable((*one.gold, *one.violating, *one.hidden) for one in queries)
        for name in dict.fromkeys(named):
            if paper := base.get(name):
                names = filter(None, (name, paper.id, paper.doi, paper.arxiv))
                own_ids |= dict.fromkeys(map(normalize_id, names), normalize_id(paper.id))
        gold = {own_ids.get(paper, paper) for one in queries for paper in one.gold}
        return cls(own_ids, len(gold), sorted(gold.difference(own_ids)))

    def _settle(self, ids: Iterable[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.own_ids.get(one, one) for one in ids))

    def in_query(self, query: PaperQuery) -> PaperQuery:
        """Return a query in the ids of the base."""
        gold, violating = frozenset(self._settle(query.gold)), self._settle(query.violating)
        if both := sorted(gold.intersection(violating)):
            raise InputError(f"query {query.id!r}: {both[0]!r} is in 'gold' and in 'violating'")
        hidden = self._settle(query.hidden)
        return replace(query, gold=gold, violating=frozenset(violating), hidden=hidden)

    def in_run(self, run: Run) -> dict[str, QueryRun]:
        """Return a run in the ids of the base; those that no query names are as they were."""
        return {
            name: replace(
                one,
                ranked=self._settle(one.ranked),
                kept=None if one.kept is None else self._settle(one.kept),
                calls=one.calls
                and tuple(replace(call, found=self._settle(call.found)) for call in one.calls),
            )
            for name, one in run.items()
        }

    def describe_missing(self) -> Iterator[str]:
        """Say which answers the base does not have, if it does not have all."""
        if self.missing:
            which = f"{len(self.missing):,} of {count(self.n_answers, 'answer')}"
            why = "not in the base, and can only be missed in it"
            yield f"{which} are {why}: {name_some(self.missing)}."
