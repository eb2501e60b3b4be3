"""The local backend, which needs no key and no network: its weights, and one judgement."""

from collections.abc import Iterator

from deepera_graph.doctor.finding import Finding
from deepera_graph.doctor.sample import judge_sample
from deepera_graph.errors import SettingsError
from deepera_graph.judges import load_backend

_NAME = "local judgement"
_ADVICE = "pip install --force-reinstall deepera-graph; until then, --backend rules judges"


def look() -> Iterator[Finding]:
    """Yield what the local backend makes of the sample; loading checks the weights."""
    try:
        backend = load_backend("local")
    except SettingsError as error:
        yield Finding(_NAME, "fail", str(error), _ADVICE)
        return
    finding = judge_sample(_NAME, backend)
    if finding.status == "fail":
        yield Finding(_NAME, "fail", finding.found, _ADVICE)
        return
    which = f"{backend.about['judge']} {backend.about['judge_version']}"
    yield Finding(_NAME, finding.status, f"{which}: {finding.found}", finding.advice)
