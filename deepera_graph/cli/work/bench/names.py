"""Names with commas between them."""

from deepera_graph.errors import SettingsError


def split_names(option: str, text: str) -> tuple[str, ...]:
    """Return the names that an option was given.

    Raises:
        SettingsError: One is blank.
    """
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise SettingsError(f"{option} must be names with commas between them, got {text!r}")
    return names
