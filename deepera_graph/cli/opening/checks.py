"""Which values an option can have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from typing import Any

from deepera_graph.budget import Budget
from deepera_graph.cli.opening.judges import (
    check_call_timeout,
    check_rate,
    check_url,
    check_variable,
    parse_kind,
)
from deepera_graph.cli.opening.settings import settings_of
from deepera_graph.cli.opening.sources import read_max_words
from deepera_graph.cli.opening.stores import check_name
from deepera_graph.cli.shared import options
from deepera_graph.settings import Settings, check_at_least, preset
from deepera_graph.thresholds import check_share


def check_option(name: str, value: Any) -> None:
    """Raise `SettingsError` if an option cannot have this value, whatever others have.

    It is what the command says that works with it; packages, files and servers that a value names
    are not looked for.
    """
    if check := _CHECKS.get(name):
        check(value)
    elif name in {one.name for one in fields(options.FilterOptions)} - {"curve"}:
        kept = options.FilterOptions(**{name: value})
        Settings.of(settings_of(options.JudgeOptions(), kept))
    elif name in {one.name for one in fields(options.BudgetOptions)}:
        prices = {"input_price": 0.0, "output_price": 0.0} if name == "max_cost" else {}
        Budget(**{**prices, name: value})


_CHECKS: Mapping[str, Callable[[Any], object]] = {
    "api_key_env": check_variable,
    "backend": parse_kind,
    "base_url": check_url,
    "call_timeout": check_call_timeout,
    "cascade": partial(check_at_least, "cascade", least=1),
    "embeddings": check_name,
    "explore": partial(check_at_least, "explore", least=1),
    "group_size": partial(check_at_least, "group_size", least=2),
    "max_concurrency": partial(check_at_least, "max_concurrency", least=1),
    "max_steps": partial(check_at_least, "max_steps", least=1),
    "max_words": read_max_words,
    "preset": preset,
    "probability": partial(check_share, "probability"),
    "samples": partial(check_at_least, "samples", least=2),
    "requests_per_minute": partial(check_rate, "requests_per_minute"),
    "tokens_per_minute": partial(check_rate, "tokens_per_minute"),
    "workers": partial(check_at_least, "workers", least=1),
}
