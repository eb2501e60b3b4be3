"""What a check of a manuscript found: a verdict on every pair of a claim and a reference."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self, get_args

from deepera_graph.evidence.check.citing import Claim
from deepera_graph.evidence.check.library import CitedWork
from deepera_graph.evidence.check.manuscript import Manuscript
from deepera_graph.evidence.check.verdict import Decision, Verdict
from deepera_graph.evidence.plain import PlainRecord
from deepera_graph.literature.citation import Citation
from deepera_graph.result import RerankResult
from deepera_graph.usage import Usage

_FREE = Usage()
_AGAINST = ("contradicts", "no_difference")
BAD: tuple[Verdict, ...] = ("contradicted", "retracted")
DOUBTFUL: tuple[Verdict, ...] = ("not_found", "missing", "unavailable", "not_judged", "partly")
_NAMES: Mapping[Verdict, str] = {
    "supported": "supported",
    "partly": "partly supported",
    "contradicted": "contradicted",
    "not_found": "not found",
    "unavailable": "unavailable",
    "retracted": "retracted",
    "missing": "missing reference",
    "method": "method",
    "not_judged": "not judged",
}


def name_verdict(verdict: Verdict) -> str:
    """Return a verdict in words, e.g. ``not found``."""
    return _NAMES[verdict]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """The best other study of the library for a claim that nothing cited supports.

    Attributes:
        source: How it is cited, in a line.
        link: Where it can be looked up; empty if not known.
        quote: Its sentence that says so.
        page: That the sentence stands on, if known.
        score: In [0, 1].
    """

    source: str
    link: str
    quote: str
    page: str
    score: float

    @classmethod
    def of(cls, result: RerankResult) -> Self | None:
        """Return the best study that was kept, is not against the claim and was not retracted."""
        kept = result.kept if result.fallback is None else ()
        for one in kept:
            if one.direction in _AGAINST or one.paper_status == "retracted":
                continue
            source = result.cite(one)
            return cls(
                source=str(source),
                link=source.link,
                quote=one.quote or one.text,
                page=one.quote_page,
                score=one.score or 0.0,
            )
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedPair(PlainRecord):
    """A claim, a reference that it cites, and the verdict.

    Attributes:
        claim: The claim.
        key: Of the reference.
        reference: As it is printed; empty if the list does not have it.
        source: How the work that was read is cited; empty if there was none.
        link: Where it can be looked up; empty if not known.
        read: ``abstract`` or ``full text``, of which the verdict was drawn; else empty.
        verdict: ``supported``, ``partly``, ``contradicted``, ``not_found``; ``unavailable``: there
            was nothing to read; ``retracted``; ``missing``: the list does not have it; ``method``:
            nothing is to be proven; ``not_judged``: the judge failed.
        score: Of what decides, in [0, 1]; None if nothing was judged.
        quote: The sentence that decides, in the words of the work.
        page: That it stands on, if known.
        notes: What else is to be known, a sentence each.
        other: The best other study, where nothing that the claim cites supports it.
    """

    claim: Claim
    key: str
    reference: str
    source: str
    link: str
    read: str
    verdict: Verdict
    score: float | None
    quote: str
    page: str
    notes: tuple[str, ...]
    other: Alternative | None = None

    @classmethod
    def of(cls, claim: Claim, key: str, found: Decision, **about: str) -> Self:
        """Join a claim with a decision."""
        plain: dict[str, Any] = {"reference": "", "source": "", "link": "", "read": "", **about}
        plain |= {name: getattr(found, name) for name in Decision.__dataclass_fields__}
        return cls(claim=claim, key=key, **plain)


def settle_pair(
    claim: Claim, key: str, reference: Mapping[str, Any] | None, work: CitedWork | None
) -> CheckedPair | None:
    """Return the verdict that needs no judge, if there is one."""
    text = "" if reference is None else reference["text"]
    about = {"reference": text, **({} if work is None else describe_work(work))}
    if reference is None:
        note = f"the list of references has no {key!r}"
        return CheckedPair.of(claim, key, Decision(verdict="missing", notes=(note,)))
    if work is None:
        source = Citation(**{**reference["source"], "authors": ()})
        gone = source.status == "retracted"
        note = "it is in no place that was searched, or has no abstract there"
        verdict = Decision(verdict="retracted" if gone else "unavailable", notes=(note,))
    elif claim.purpose == "method":
        gone = work.status == "retracted"
        verdict = Decision(verdict="retracted" if gone else "method")
    else:
        return None
    if claim.purpose == "method" and verdict.verdict == "unavailable":
        verdict = Decision(verdict="method")
    return CheckedPair.of(claim, key, verdict, **about)


def describe_work(work: CitedWork) -> dict[str, str]:
    """Return how a work is cited, where it can be looked up, and what was read of it."""
    source = replace(work.source, status=work.status)
    return {"source": str(source), "link": source.link, "read": work.extent}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport(PlainRecord):
    """Everything that a check of a manuscript found.

    Attributes:
        manuscript: What was read.
        pairs: In the order of the manuscript.
        notes: What holds for all of it, a sentence each.
        usage: What the judge cost.
        judge: Who judged.
    """

    kind = "check"
    manuscript: Manuscript
    pairs: tuple[CheckedPair, ...]
    notes: tuple[str, ...] = ()
    usage: Usage = _FREE
    judge: str = ""

    @property
    def counts(self) -> dict[Verdict, int]:
        """How many pairs have each verdict; those that do not occur are left out."""
        found = Counter(one.verdict for one in self.pairs)
        return {one: found[one] for one in get_args(Verdict) if found[one]}

    @property
    def has_errors(self) -> bool:
        """Whether a claim is contradicted, or rests on a retracted work."""
        return any(one.verdict in BAD for one in self.pairs)

    def describe_counts(self) -> str:
        """Return e.g. ``3 supported, 1 contradicted``."""
        return ", ".join(f"{n} {name_verdict(one)}" for one, n in self.counts.items())

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data that `from_dict` reads, with the counts."""
        plain = PlainRecord.to_dict(self)
        return (
            {one: plain[one] for one in ("format", "manuscript")} | {"counts": self.counts} | plain
        )
