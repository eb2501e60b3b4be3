"""What a build would ask of a model, without asking it."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from statistics import fmean

from deepera_graph.backends.llm.counting import CHARS_PER_TOKEN
from deepera_graph.bench.build.corpus import Corpus, check_not_empty
from deepera_graph.bench.build.generators import check_generators
from deepera_graph.bench.build.guidance import N_SHOWN
from deepera_graph.bench.build.guided import EXTRACT, GuidedGenerator
from deepera_graph.bench.build.lmqg import PassageGenerator
from deepera_graph.bench.build.plan import BuildPlan
from deepera_graph.bench.build.prompts import PACKAGE
from deepera_graph.usage import Usage

_QUESTION = 150  # characters of a question
_NOTES = 600  # characters of notes on methods, results, significance
_PAIRS = 400  # characters of the pairs of one document
_GUIDE = 350  # characters of one guide


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildEstimate:
    """The calls of a build in which every reply can be used at once.

    Attributes:
        n_documents: Documents with a text, >= 0.
        n_questions: Questions of all data sets, >= 0.
        usage: Calls and tokens of each step; a token is taken for 4 characters.
        most_calls: Calls if every distractor takes all its attempts. Documents that give no
            question come on top.
    """

    n_documents: int
    n_questions: int
    usage: dict[str, Usage]
    most_calls: int

    @property
    def total(self) -> Usage:
        """All steps together."""
        return sum(self.usage.values(), Usage())


def estimate(corpus: Corpus, plan: BuildPlan, generators: Sequence[str]) -> BuildEstimate:
    """Count the calls of a build.

    Args:
        corpus: Documents before any is left out; not empty.
        plan: What to make.
        generators: As `build` takes them.

    Raises:
        SettingsError: A generator is unknown.
        DatasetError: There is no document.
    """
    check_generators(generators)
    check_not_empty(corpus)
    chunk = round(fmean(len(one.text) for one in corpus))
    whole = round(fmean(len(one.text) for one in corpus.documents.values()))
    n = min(plan.n_questions, len(corpus.documents) * plan.per_document)
    n_asked = -(-n // plan.per_document)
    usage: dict[str, Usage] = {}
    if PassageGenerator.name in generators:
        usage["lmqg"] = _usage("lmqg", n_asked, chunk, _PAIRS)
    if GuidedGenerator.name in generators:
        usage[EXTRACT] = _usage("extract", n_asked, whole, _NOTES)
        usage["guided"] = _usage("guided", n_asked, chunk + _NOTES, _PAIRS)
    n_questions = n * len(generators)
    n_written = 0
    if "ssli" in plan.settings:
        n_written = n_questions * plan.n_distractors
        shown = _QUESTION + N_SHOWN * chunk
        usage["guidance"] = _usage("guidance", n_questions, shown, _GUIDE * plan.n_distractors)
        usage["distractor"] = _usage("distractor", n_written, shown + _GUIDE, chunk)
    n_calls = sum(one.calls for one in usage.values())
    return BuildEstimate(
        n_documents=len(corpus.documents),
        n_questions=n_questions,
        usage=usage,
        most_calls=n_calls + n_written * (plan.attempts - 1),
    )


def _usage(prompt: str, n_calls: int, n_given: int, n_said: int) -> Usage:
    """Calls and tokens of a step; lengths in characters a call."""
    folder = files(PACKAGE)
    template = sum(
        len(folder.joinpath(f"{prompt}.{role}.md").read_text(encoding="utf-8"))
        for role in ("system", "user")
    )
    return Usage(
        calls=n_calls,
        input_tokens=n_calls * -(-(template + n_given) // CHARS_PER_TOKEN),
        output_tokens=n_calls * -(-n_said // CHARS_PER_TOKEN),
    )
