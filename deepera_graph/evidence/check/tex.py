"""LaTeX as text: its headings, its citations as ``[@key; @key]``, and its list of references."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from deepera_graph.errors import InputError
from deepera_graph.retrieval.documents.article import Block, decode, join_words
from deepera_graph.text.bibtex import write_plain

_COMMENT = re.compile(r"(?<!\\)%.*")
_INPUT = re.compile(r"\\(?:input|include)\s*\{([^{}]+)\}")
_BODY = re.compile(r"\\begin\{document\}(.*?)(?:\\end\{document\}|\Z)", re.DOTALL)
_BIB = re.compile(r"\\(?:bibliography|addbibresource)(?:\[[^\]]*\])?\{([^{}]+)\}")
_PRINTED = re.compile(
    r"\\begin\{thebibliography\}(?:\{[^{}]*\})?(.*?)\\end\{thebibliography\}", re.DOTALL
)
_ITEM = re.compile(r"\\bibitem(?:\[[^\]]*\])?\{([^{}]+)\}")
_UNREAD = re.compile(
    r"\\begin\{(equation|align|gather|eqnarray|multline|tabular|verbatim|lstlisting|tikzpicture"
    r"|filecontents)(\*?)\}.*?\\end\{\1\2\}",
    re.DOTALL,
)
_DISPLAYED = re.compile(r"\\\[.*?\\\]|\$\$.*?\$\$", re.DOTALL)
_CITE = re.compile(r"\\(?:no)?(?:[a-zA-Z]*cite[a-zA-Z]*)\*?\s*((?:\[[^\]]*\]\s*){0,2})\{([^{}]+)\}")
_CITES = re.compile(  # ``\parencites(see)[2]{key}[3]{other}``
    r"\\([a-zA-Z]*cites)\*?(?:\s*\([^()]*\)){0,2}((?:\s*(?:\[[^\]]*\]\s*){0,2}\{[^{}]+\})+)"
)
_NAME_AND_YEAR = re.compile(
    r"\\[cC]iteauthor\*?\s*\{([^{}]+)\}(?:['’]s)?[\s~]*"
    r"(?:\(\s*\\citeyear\*?\s*(?:\[[^\]]*\]\s*){0,2}\{\1\}[^()]*\)|\\citeyearpar\*?\s*(?:\[[^\]]*\]\s*){0,2}\{\1\})"
)
_AS_WORD = re.compile(r"\\(?:citet|textcite|citeauthor|Citet|Textcite|citealt)\b")
_HEADING = re.compile(r"\\(part|chapter|section|subsection|subsubsection)\*?\s*(?:\[[^\]]*\])?\{")
_LEVELS = ("part", "chapter", "section", "subsection", "subsubsection")
_DROPPED = re.compile(
    r"\\(?:label|ref|eqref|autoref|cref|Cref|includegraphics|vspace|hspace|bibliographystyle"
    r"|bibliography|addbibresource|author|affil|date|thanks|input|include|pagestyle|begin|end)"
    r"\*?\s*(?:\[[^\]]*\])?\{[^{}]*\}(?:\[[^\]]*\])?"
)
_COMMAND = re.compile(r"\\([a-zA-Z]+)\*?(?:\[[^\]]*\])?\s*")
_GIVEN = re.compile(
    r"\\[a-zA-Z]{3,}\*?(?:\[[^\[\]]*\])?(?=\{[^{}])"
)  # of what it is given all stays
_BEHIND = re.compile(r"\\(?:footnote|footnotetext|sidenote|marginpar)\b")
_BLANK = re.compile(r"\\[,;: ]|~|\\\\")
_POWER = re.compile(r"(?<=[A-Za-z])\$?\^\{?([-−]?\d)\}?")  # ``cm^2``
_TITLE = re.compile(r"\\title(?:\[[^\]]*\])?\{")
_DEEPEST = 5  # files that name each other


class TexText(NamedTuple):
    """What a manuscript in LaTeX holds."""

    title: str
    blocks: list[Block]
    printed: list[tuple[str, str]]  # keys and texts of a list of references in the file itself
    bibliographies: list[Path]  # files that it names


def read_tex(path: Path) -> TexText:
    """Read a manuscript with the files that it takes in; comments and formulas are left out."""
    whole = _load(path, path.parent)
    bibliographies = [
        path.parent / (name if Path(name).suffix else f"{name}.bib")
        for found in _BIB.finditer(whole)
        for name in (part.strip() for part in found[1].split(","))
    ]
    body = _BODY.search(whole)
    text = body[1] if body else whole
    printed = [one for found in _PRINTED.finditer(text) for one in _read_items(found[1])]
    title = _TITLE.search(whole)
    text = _DISPLAYED.sub(" ", _UNREAD.sub(" ", _PRINTED.sub(" ", text)))
    blocks = list(_read_blocks(mark_citations(text)))
    if not any(not block.level for block in blocks):
        raise InputError(f"{path}: has no text")
    return TexText(
        to_plain(_take_braces(whole, title.end())) if title else "", blocks, printed, bibliographies
    )


def _load(path: Path, folder: Path, depth: int = 0) -> str:
    """Return a file without comments, with those in its folder that it takes in."""
    text = _COMMENT.sub("", decode(path.read_bytes(), path).replace("\r\n", "\n"))

    def take(found: re.Match[str]) -> str:
        name = found[1].strip()
        other = folder / (name if name.endswith(".tex") else f"{name}.tex")
        inside = folder.resolve() in other.resolve().parents
        if depth >= _DEEPEST or not inside or not other.is_file():
            return " "
        return _load(other, folder, depth + 1)

    return _INPUT.sub(take, text)


def mark_citations(text: str) -> str:
    """Return a text with commands such as ``\\cite{key}`` as Markdown has citations."""
    text = _NAME_AND_YEAR.sub(r"\\citet{\1}", text)
    return _CITE.sub(_mark_citation, _CITES.sub(_join_keys, text))


def _join_keys(found: re.Match[str]) -> str:
    return f"\\{found[1]}{{{','.join(re.findall(r'{([^{}]+)}', found[2]))}}}"


def _mark_citation(found: re.Match[str]) -> str:
    """Return a citation as Markdown has it."""
    if found[0].startswith("\\nocite"):
        return " "
    keys = [key.strip() for key in found[2].split(",") if key.strip()]
    if _AS_WORD.match(found[0]) and len(keys) == 1:
        return f"@{{{keys[0]}}}"
    return f"[{'; '.join(f'@{key}' for key in keys)}]"


def _read_blocks(text: str) -> Iterator[Block]:
    end = 0
    for found in _HEADING.finditer(text):
        yield from _read_paragraphs(text[end : found.start()])
        heading = _take_braces(text, found.end())
        yield Block(to_plain(heading), _LEVELS.index(found[1]) + 1)
        end = found.end() + len(heading) + 1
    yield from _read_paragraphs(text[end:])


def _read_paragraphs(text: str) -> Iterator[Block]:
    for part in re.split(r"\n\s*\n|\\item\b(?:\[[^\]]*\])?", text):
        if plain := to_plain(part):
            yield Block(plain)


def _take_braces(text: str, start: int) -> str:
    """Return what stands from a place to the brace that closes it."""
    depth = 1
    for place in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if not depth:
            return text[start:place]
    return text[start:]


def _read_items(text: str) -> Iterator[tuple[str, str]]:
    marks = list(_ITEM.finditer(text))
    ends = [one.start() for one in marks[1:]] + [len(text)]
    for mark, end in zip(marks, ends, strict=True):
        yield mark[1].strip(), to_plain(text[mark.end() : end].replace("\\newblock", " "))


def to_plain(text: str) -> str:
    """Return TeX in one line of plain text: commands go, what they are given stays."""
    text = _BLANK.sub(" ", _BEHIND.sub(r" \g<0>", _DROPPED.sub(" ", text)))
    kept = re.split(r"(\[@[^\]]*\]|@\{[^}]*\})", text)
    plain = [
        part if place % 2 else _COMMAND.sub(" ", _write(part)).replace("$", "")
        for place, part in enumerate(kept)
    ]
    return re.sub(r"\s+([.,;:)])|(\()\s+", r"\1\2", join_words(" ".join(plain)))


def _write(text: str) -> str:
    return _POWER.sub(r"\1", write_plain(_GIVEN.sub("", text)))
