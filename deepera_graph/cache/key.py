"""The name of a judgement: a hash of everything the judgement depends on."""

import json
import math
from collections.abc import Mapping
from hashlib import sha256

from deepera_graph.errors import SettingsError

_SCALARS = (str, bool, int, type(None))


def cache_key(role: str, task: Mapping[str, object], fingerprint: Mapping[str, object]) -> str:
    """Name the answer of one role to one task; another model, prompt or passage names another.

    The name is the same in every process, on every Python, in any order of the keys. Text counts
    as it is, code point by code point; a float counts as its `repr`; 1, 1.0 and true differ; a
    tuple counts as the list it becomes in JSON. The values themselves cannot be read back.

    Args:
        role: Which role answers, e.g. ``"judge"``.
        task: All that the role is given: question, intent, passage.
        fingerprint: All else that the answer depends on: backend, model, parameters, base URL,
            prompt hash, answer schema, package version.

    Returns:
        64 hexadecimal digits, the SHA-256 of the canonical JSON of the three in UTF-8.

    Raises:
        SettingsError: Something in *task* or *fingerprint* is not a JSON value, or a key is not
            text; the message names its place, never its value.
    """
    whole = {"role": role, "task": task, "fingerprint": fingerprint}
    try:
        text = json.dumps(
            _plain(whole, "cache key"), ensure_ascii=False, sort_keys=True, separators=(",", ":")
        )
    except RecursionError:
        raise SettingsError("cache key: nested too deep, or holds itself") from None
    # A lone surrogate is a code point like any other here, and must not equal half of a pair.
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _plain(value: object, place: str) -> object:
    if isinstance(value, _SCALARS):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        raise SettingsError(f"{place} must be a finite number, got {value!r}")
    if isinstance(value, Mapping):
        return {_text(key, place): _plain(item, f"{place}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, f"{place}[{number}]") for number, item in enumerate(value)]
    raise SettingsError(f"{place} must be a JSON value, got {type(value).__name__}")


def _text(key: object, place: str) -> str:
    if isinstance(key, str):
        return key
    raise SettingsError(f"the keys of {place} must be text, got {key!r}")
