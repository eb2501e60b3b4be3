"""Words that any question may use, and that say little about what it asks for."""

from deepera_graph.text.words import stem

_GENERAL = """
    effect affect influence impact role relation relationship association difference compare
    comparison study evidence result finding question increase decrease change improve reduce
    cause lead use useful value good better best important possible necessary really still
    determine depend mean kind type happen work show
    """
_STEMS = frozenset(stem(word) for word in _GENERAL.split())


def is_general(word: str) -> bool:
    """Whether a word is a number or common in questions of any science."""
    return word[0].isdigit() or stem(word) in _STEMS
