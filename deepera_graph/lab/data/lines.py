"""Lines of JSON in the form of a dataclass; what is wrong is said with the place and the field."""

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, TypeAdapter, ValidationError

from deepera_graph.errors import InputError

T = TypeVar("T")


def _read_text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"must be a text, got {value!r:.80}")
    return value


def _read_object(value: Any) -> Any:
    if not isinstance(value or {}, Mapping):
        raise ValueError(f"must be an object, got {value!r:.80}")
    return value or {}


def _read_texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value or (), list | tuple):
        raise ValueError(f"must be a list, got {value!r:.80}")
    return tuple(map(str, value or ()))


Text = Annotated[str, BeforeValidator(_read_text)]  # not blank
Plain = Annotated[str, BeforeValidator(lambda one: str(one or ""))]
Object = Annotated[Mapping[str, Any], BeforeValidator(_read_object)]
Texts = Annotated[tuple[str, ...], BeforeValidator(_read_texts)]


def read_line(form: TypeAdapter[T], line: Mapping[str, Any], where: str = "") -> T:
    """Return a line in its form."""
    try:
        return form.validate_python(dict(line))
    except ValidationError as error:
        first = error.errors()[0]
        name = next((one for one in first["loc"] if isinstance(one, str)), "line")
        said = first.get("ctx", {}).get("error")
        why = f" {said}" if said else f": {first['msg']}, got {first['input']!r:.80}"
        why = " must be given" if first["type"] == "missing" else why
        raise InputError(f"{where}{where and ': '}{name!r}{why}") from error
