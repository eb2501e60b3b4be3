"""Which of several judges to keep: the one that is best on questions held out."""

from collections.abc import Mapping, Sequence

from deepera_graph.errors import SettingsError
from deepera_graph.judge.train.measure import mean_average_precision
from deepera_graph.judge.train.pool import Pool
from deepera_graph.judge.train.scored import Scorer, score


def best(
    candidates: Mapping[str, Scorer], validation: Sequence[Pool]
) -> tuple[str, dict[str, float]]:
    """Return the name of the candidate with the highest MAP@10, and the MAP@10 of all.

    Of equals the first is kept.

    Args:
        candidates: By name, not empty.
        validation: Pools that none of them was trained on.

    Raises:
        SettingsError: There is no candidate.
        InputError: No question has a golden passage.
    """
    if not candidates:
        raise SettingsError("there is no judge to choose from")
    found = {
        name: mean_average_precision(list(score(validation, one)))
        for name, one in candidates.items()
    }
    return max(found, key=lambda name: found[name]), found
