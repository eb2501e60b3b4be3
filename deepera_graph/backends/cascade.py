"""A cascade: a cheap judge reads all passages, and a careful one the best of them alone."""

from deepera_graph.backends.cascade_groups import build_cascade_judge
from deepera_graph.backends.cascaded_judge import LLM, LOCAL
from deepera_graph.backends.joint_survey import joint_surveyor
from deepera_graph.backends.pick import Picker
from deepera_graph.backends.written import written
from deepera_graph.errors import SettingsError
from deepera_graph.roles import Backend

KEEP = 30


def cascade_judge(local: Backend, llm: Backend, keep: int = KEEP) -> Backend:
    """Let *local* judge all passages of a question, and *llm* the best *keep* of them.

    Made for 100 to 1,000 passages: *llm* is asked about *keep* distinct texts, however many there
    are. What it does not read has a tenth of the score of *local*: at most 0.1, lower than any
    threshold worth setting, and in the order of *local*. Intent, summaries and answers are those of
    *llm*. To ask about all that is not ruled out, instead, there is `screened_backend`.

    If the survey fails, which is where *local* judges, the cost stays bounded: *local* alone judges
    each passage, its scores stand as they are, and every reason says so. *llm* is not asked then.
    The same holds for a single passage that *local* failed on. A passage that *llm* fails on has
    failed; the score of *local* does not take its place.

    Args:
        local: Any backend that may judge everything, e.g. `local_backend`, with its surveyor.
        llm: Any backend that judges the best.
        keep: Most distinct texts that *llm* judges, >= 1.

    Raises:
        SettingsError: *keep* is no whole number >= 1.
    """
    asked: object = keep
    if isinstance(asked, bool) or not isinstance(asked, int) or asked < 1:
        raise SettingsError(f"keep must be a whole number >= 1, got {keep!r}")
    parts = {LOCAL: local, LLM: llm}
    spec = written("cascade", parts)
    picker = Picker(local.surveyor, local.judge, keep)
    return Backend(
        name=f"{local.name}>{llm.name}",
        intent=llm.intent,
        judge=build_cascade_judge(local.judge, llm.judge, keep),
        summarizer=llm.summarizer,
        answerer=llm.answerer,
        surveyor=joint_surveyor({LOCAL: picker, LLM: llm.surveyor}),
        needs_evidence=llm.needs_evidence,
        about={"cascade": {"backend": local.name, "keep": keep, **local.about}, **llm.about},
        spec=None if spec is None else {**spec, "keep": keep},
    )
