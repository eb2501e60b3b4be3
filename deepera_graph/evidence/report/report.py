"""What a report is: paragraphs of checked sentences, the studies, and what is missing."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deepera_graph.agents.run import AgentResult
from deepera_graph.evidence.plain import PlainRecord
from deepera_graph.evidence.report.studies import ReportStudy
from deepera_graph.usage import Usage


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
class EvidenceReport(PlainRecord, AgentResult):
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

    kind = "report"
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
