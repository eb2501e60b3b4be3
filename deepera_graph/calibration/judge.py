"""Have labelled passages judged."""

from collections.abc import Callable, Mapping
from pathlib import Path

from deepera_graph.budget import Meter, with_meter
from deepera_graph.calibration.judged import JudgedQuestion
from deepera_graph.calibration.labelled import Labels, read_questions
from deepera_graph.engines.local import LocalEngine
from deepera_graph.errors import BackendError, DeepEraError, InputError
from deepera_graph.jobs.in_flight import Flight, InFlight
from deepera_graph.jobs.lines import BadLine, QuestionLine
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.result import RerankResult

Watch = Callable[[JudgedQuestion], None]


def judge(
    reranker: EvidenceReranker,
    path: Path,
    labels: Mapping[str, Labels],
    *,
    watch: Watch = lambda question: None,
) -> list[JudgedQuestion]:
    """Score every passage of a file; no summary is made and no answer drawn.

    A long passage of which a window could not be judged counts as failed.

    Args:
        reranker: Whose backend and limits to use; its threshold does not matter.
        path: Questions, as `read_labels` has read them.
        labels: What `read_labels` gave.
        watch: Called with every question that is done.

    Raises:
        InputError: A line cannot be used.
        BackendError: No passage of a question could be judged because the backend cannot be
            reached or refuses the key.
    """
    scoring = reranker.with_settings(
        threshold=1.0,
        content="passage",
        on_empty="empty",
        on_error="keep_last",
        answer=False,
        enough=None,
    )
    config = with_meter({}, Meter(scoring.settings.budget))

    async def rerank(line: QuestionLine) -> RerankResult:
        return await scoring.arerank(line.question, line.passages, config=config)

    judged = []
    engine = LocalEngine(rerank, scoring.questions_at_once)
    with InFlight[RerankResult, BadLine](engine, read_questions(path)) as flights:
        for item in flights:
            judged.append(_taken(item, path, labels))
            watch(judged[-1])
    return judged


def _taken(
    item: Flight[RerankResult] | BadLine, path: Path, labels: Mapping[str, Labels]
) -> JudgedQuestion:
    if isinstance(item, BadLine):
        raise InputError(f"{path}, line {item.number}: {item.error}")
    line = item.line
    try:
        result = item.future.result()
    except DeepEraError as error:
        raise type(error)(f"{path}, line {line.number}: {error}") from error
    if result.backend_failure is not None:
        raise BackendError(f"{path}, line {line.number}: {result.backend_failure}")
    scores = [(passage.id, passage.score) for passage in result.passages]
    return JudgedQuestion.of(line.id, scores, labels[line.id])
