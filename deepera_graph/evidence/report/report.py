"""What a report is: paragraphs of checked sentences, the studies, and what is missing."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from deepera_graph.agents.run import AgentResult
from deepera_graph.evidence.report.studies import ReportStudy
from deepera_graph.usage import Usage

FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSentence:
    """A sentence that was checked.

    Attributes:
        text: Without citation marks; a quote is in quotation marks.
        studies: Numbers of the studies that it cites, each of which says all of it.
        by: ``model``, or ``quote``: the words of the study itself.
    """

    text: str
    studies: tuple[int, ...]
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportParagraph:
    """What some studies found.

    Attributes:
        heading: In fixed words, by what the studies that it cites say to the question.
        lead: Who of them says what, in fixed words; empty for one study, or without directions.
        sentences: At least one.
    """

    heading: str
    lead: str
    sentences: tuple[ReportSentence, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceReport(AgentResult):
    """Several paragraphs on a question, of which every sentence was checked.

    Attributes:
        question: What was asked.
        overview: How many studies there are and what they say, in fixed words, a sentence each.
        paragraphs: Of studies that are evidence, then of possible ones, which say so.
        gaps: What is missing, and what the studies are, in fixed words, a sentence each.
        studies: By their numbers.
        left_out: Why each sentence was left out that no study it cites says; not its words.
        n_rewritten: How many of those shown were written anew, as a study did not say all of them.
        problems: All that went wrong on the way, in words.
        usage: What judging, writing and checking cost, by step.
        seconds: How long writing took.
        manifest: Who judged and who wrote, with settings and versions.
    """

    question: str
    overview: tuple[str, ...]
    paragraphs: tuple[ReportParagraph, ...]
    gaps: tuple[str, ...]
    studies: tuple[ReportStudy, ...]
    left_out: tuple[str, ...]
    n_rewritten: int
    problems: tuple[str, ...]
    usage: Mapping[str, Usage]
    seconds: float
    manifest: Mapping[str, Any]

    @property
    def sentences(self) -> tuple[ReportSentence, ...]:
        """All that is shown but what stands in fixed words."""
        return tuple(one for part in self.paragraphs for one in part.sentences)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data that `from_dict` reads."""
        return {
            "format": FORMAT,
            "question": self.question,
            "overview": list(self.overview),
            "paragraphs": [asdict(one) for one in self.paragraphs],
            "gaps": list(self.gaps),
            "studies": [asdict(one) for one in self.studies],
            "left_out": list(self.left_out),
            "n_rewritten": self.n_rewritten,
            **self.plain_end(),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote.

        Raises:
            ValueError: It was written in another format.
        """
        if plain.get("format") != FORMAT:
            raise ValueError(f"report format must be {FORMAT}, got {plain.get('format')!r}")
        values = {name: value for name, value in plain.items() if name != "format"}
        for name in ("overview", "gaps", "left_out", "problems"):
            values[name] = tuple(values[name])
        values["paragraphs"] = tuple(map(_read_paragraph, values["paragraphs"]))
        values["studies"] = tuple(ReportStudy(**one) for one in values["studies"])
        values["usage"] = {name: Usage.of(used) for name, used in values["usage"].items()}
        return cls(**values)


def _read_paragraph(plain: Mapping[str, Any]) -> ReportParagraph:
    sentences = tuple(
        ReportSentence(**{**one, "studies": tuple(one["studies"])}) for one in plain["sentences"]
    )
    return ReportParagraph(heading=plain["heading"], lead=plain["lead"], sentences=sentences)
