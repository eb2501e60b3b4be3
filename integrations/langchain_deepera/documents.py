"""The kept documents of a result, for callers that see nothing else of it."""

import logging

from langchain_core.documents import Document

from deepera_graph import BackendError, RerankResult

_logger = logging.getLogger(__name__)


def kept_documents(result: RerankResult) -> list[Document]:
    """Return the kept passages as new documents, best first; warn if some could not be judged.

    Raises:
        BackendError: No passage could be judged: an empty list would look like "no evidence".
    """
    check_judged(result)
    if result.failed:
        _logger.warning(
            "%d of %d passages could not be judged, e.g. %r: %s",
            len(result.failed),
            len(result.all_passages),
            result.failed[0].id,
            result.failed[0].reason,
        )
    return result.to_documents()


def check_judged(result: RerankResult) -> None:
    """Raise `BackendError` if there were passages with text and none of them could be judged."""
    readable = [one for one in result.all_passages if one.text.strip()]
    if readable and all(one.score is None for one in readable):
        raise BackendError(f"no passage could be judged: {readable[0].reason}")
