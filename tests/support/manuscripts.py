"""Twelve small manuscripts in four forms, with planted errors of eight kinds.

A sentence cites works by their keys, as in ``{lund2018}``; ``{lund2018 mori2019}`` is one mark.
"""

import io
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from docx import Document

from support.pdfs import write_pdf

LIBRARY = Path(__file__).parents[1] / "evidence" / "library.jsonl"
ABSENT = "grey1999"  # cited, and in no list
WORKS = {one["id"]: one for one in map(json.loads, LIBRARY.read_text("utf-8").splitlines())}

RIGHT = {
    "lund2018": "Wax coating keeps apples firmer than no coating in storage",
    "mori2019": "Night cooling lowers the sugar content of pears",
    "tanaka2020": "Green tea lowered fasting glucose in adults",
    "okafor2021": "Afternoon naps improved memory of word lists in students",
    "silva2016": "Kelp forests reduced the height of waves at the coast",
    "weber2022": "White street lamps decreased the feeding activity of bats",
    "ivanov2015": "Fly ash increased the compressive strength of concrete after one year",
    "nguyen2019": "Zinc lozenges shortened the duration of colds in adults",
    "garcia2018": "Clover strips raised the number of wild bee species on farms",
    "adams2020": "Readers understand long texts better on paper than on screens",
}
INVERTED = {
    "mori2019": "Night cooling raised the sugar content of pears",
    "tanaka2020": "Green tea increased fasting glucose in adults",
    "okafor2021": "Afternoon naps worsened the memory of word lists in students",
    "silva2016": "Kelp forests increased the height of waves at the coast",
    "weber2022": "White street lamps increased the feeding activity of bats",
    "ivanov2015": "Fly ash decreased the compressive strength of concrete after one year",
    "garcia2018": "Clover strips lowered the number of wild bee species on farms",
    "adams2020": "Readers understand long texts worse on paper than on screens",
}
POPULATION = {
    "tanaka2020": "Green tea lowered fasting glucose in children",
    "nguyen2019": "Zinc lozenges shortened the duration of colds in infants",
}
METHOD = (
    "Firmness was measured using the press of Berg {berg2014}",
    "Fruit was tested as described previously {berg2014}",
    "All samples were handled according to the protocol of Berg {berg2014}",
)
REVIEW = "Reading on paper and on screens is reviewed in {adams2020}"
LATE_PLUMS = f"Frost delays the flowering of plums in the north {{{ABSENT}}}"
BEFORE = "Plants, tea and sleep were looked at before"
MOSS = "Moss extract increased the growth of lettuce {dahl2017}"


@dataclass(frozen=True)
class Planted:
    """A manuscript: its sentences, and for each planted error its kind and its sentence from 1."""

    name: str
    sentences: tuple[str, ...]
    errors: tuple[tuple[str, int], ...]
    duplicate: str = ""  # a work that is in the list twice

    @property
    def keys(self) -> list[str]:
        """The works of its list, in the order they are cited; what is absent is in none."""
        found = [
            key for one in self.sentences for mark in _MARK.findall(one) for key in mark.split()
        ]
        listed = [key for key in dict.fromkeys(found) if key != ABSENT]
        return [*listed, self.duplicate] if self.duplicate else listed


_MARK = re.compile(r"\{([^{}]+)\}")


def _cite(text: str, *keys: str) -> str:
    return f"{text} {{{' '.join(keys)}}}"


def plant(
    name: str,
    right: Sequence[str],
    *,
    wrong: tuple[str, str],
    inverted: str,
    population: str = "",
    method: int | None = None,
    kinds: Sequence[str] = (),
    duplicate: str = "",
) -> Planted:
    """Return a manuscript: right sentences, one with the wrong reference, one inverted, and more.

    *kinds* may be retracted, missing, range, and review, which is no error.
    """
    more = {
        "wrong reference": _cite(RIGHT[wrong[0]], wrong[1]),
        "inverted": _cite(INVERTED[inverted], inverted),
        "population": _cite(POPULATION[population], population) if population else "",
        "retracted": MOSS if "retracted" in kinds else "",
        "missing": LATE_PLUMS if "missing" in kinds else "",
        "method": "" if method is None else METHOD[method],
        "range": _cite(BEFORE, *right[:3]) if "range" in kinds else "",
    }
    added = [(kind, sentence) for kind, sentence in more.items() if sentence]
    errors = [(kind, len(right) + n) for n, (kind, _) in enumerate(added, start=1)]
    plain = [_cite(RIGHT[one], one) for one in right]
    sentences = [*plain, *(sentence for _, sentence in added), *[REVIEW] * ("review" in kinds)]
    return Planted(name, tuple(sentences), tuple(errors), duplicate)


PLANTED = (
    plant("one.docx", ("lund2018", "tanaka2020", "silva2016"), wrong=("okafor2021", "weber2022"),
          inverted="mori2019", population="nguyen2019", duplicate="lund2018",
          kinds=("range",)),
    plant("two.docx", ("mori2019", "garcia2018"), wrong=("lund2018", "ivanov2015"),
          inverted="weber2022", method=0,
          kinds=("retracted", "missing")),
    plant("three.docx", ("okafor2021", "weber2022", "adams2020"), wrong=("silva2016", "tanaka2020"),
          inverted="garcia2018", method=1,
          kinds=("range", "review")),
    plant("four.tex", ("ivanov2015", "nguyen2019", "lund2018"), wrong=("garcia2018", "mori2019"),
          inverted="tanaka2020",
          kinds=("retracted", "missing", "range")),
    plant("five.tex", ("silva2016", "mori2019"), wrong=("tanaka2020", "garcia2018"),
          inverted="okafor2021", population="nguyen2019", method=2, duplicate="silva2016"),
    plant("six.tex", ("weber2022", "garcia2018", "tanaka2020"), wrong=("nguyen2019", "silva2016"),
          inverted="ivanov2015", method=0,
          kinds=("retracted", "range")),
    plant("seven.md", ("adams2020", "lund2018"), wrong=("weber2022", "okafor2021"),
          inverted="silva2016", population="tanaka2020", duplicate="adams2020",
          kinds=("missing",)),
    plant("eight.md", ("tanaka2020", "ivanov2015", "okafor2021"), wrong=("mori2019", "nguyen2019"),
          inverted="adams2020", method=1,
          kinds=("retracted", "range")),
    plant("nine.md", ("garcia2018", "silva2016"), wrong=("adams2020", "lund2018"),
          inverted="mori2019", population="nguyen2019",
          kinds=("missing", "review")),
    plant("ten.pdf", ("lund2018", "weber2022", "ivanov2015"), wrong=("tanaka2020", "silva2016"),
          inverted="garcia2018", method=2,
          kinds=("retracted", "range")),
    plant("eleven.pdf", ("mori2019", "okafor2021"), wrong=("ivanov2015", "adams2020"),
          inverted="tanaka2020", population="nguyen2019", duplicate="mori2019",
          kinds=("missing",)),
    plant("twelve.pdf", ("nguyen2019", "adams2020", "garcia2018"), wrong=("lund2018", "weber2022"),
          inverted="silva2016", method=0,
          kinds=("retracted", "missing", "range")),
)  # fmt: skip


def write_manuscript(one: Planted, folder: Path) -> Path:
    """Write a manuscript in the form of its name; return its path."""
    path = folder / one.name
    _WRITERS[path.suffix](one, path)
    return path


def entry(key: str) -> str:
    """Return a work as a list of references has it."""
    work = WORKS[key]
    names = [name.split(", ") for name in work["authors"].split("; ")]
    authors = ", ".join(f"{family} {given[0]}" for family, given in names)
    title = work["title"].removeprefix("RETRACTED: ")
    return f"{authors}. {title}. {work['journal']}. {work['year']}."


def _numbered(one: Planted, sentence: str) -> str:
    keys = one.keys

    def mark(found: re.Match[str]) -> str:
        numbers = [keys.index(key) + 1 if key in keys else 99 for key in found[1].split()]
        in_row = len(numbers) > 2 and numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        return f"[{numbers[0]}-{numbers[-1]}]" if in_row else f"[{', '.join(map(str, numbers))}]"

    return _MARK.sub(mark, sentence) + "."


def _write_docx(one: Planted, path: Path) -> None:
    document = Document()
    document.add_heading("On fruit and others", 0)
    document.add_heading("Introduction", 1)
    paragraph = document.add_paragraph()
    for sentence in one.sentences:
        text, _, mark = _numbered(one, sentence).rpartition(" [")
        paragraph.add_run(f"{text}." if one.name == "three.docx" else f"{text} [{mark} ")
        if one.name == "three.docx":  # raised numbers behind the full stop
            paragraph.add_run(mark.rstrip("].")).font.superscript = True
            paragraph.add_run(" ")
    document.add_heading("References", 1)
    for number, key in enumerate(one.keys, start=1):
        document.add_paragraph(f"{number}. {entry(key)}")
    held = io.BytesIO()
    document.save(held)
    path.write_bytes(held.getvalue())


def _write_tex(one: Planted, path: Path) -> None:
    text = "\n".join(
        _MARK.sub(lambda found: rf"\cite{{{','.join(found[1].split())}}}", sentence) + "."
        for sentence in one.sentences
    )
    path.write_text(
        "\\documentclass{article}\n\\title{On fruit}\n\\begin{document}\n\\maketitle\n"
        f"% a comment \\cite{{nobody}}\n\\section{{Introduction}}\n{text}\n"
        "\\bibliography{works}\n\\end{document}\n",
        encoding="utf-8",
    )
    entries = []
    for place, key in enumerate(one.keys):
        work, name = WORKS[key], key if place == one.keys.index(key) else f"{key}again"
        title = work["title"].removeprefix("RETRACTED: ")
        authors = " and ".join(work["authors"].split("; "))
        entries.append(
            f"@article{{{name},\n title={{{title}}},\n author={{{authors}}},\n"
            f" year={{{work['year']}}},\n journal={{{work['journal']}}}\n}}\n"
        )
    (path.parent / "works.bib").write_text("".join(entries), encoding="utf-8")


def _write_markdown(one: Planted, path: Path) -> None:
    if one.name == "eight.md":  # names and years
        text, lines = (
            "\n".join(_named(sentence) for sentence in one.sentences),
            map(entry, one.keys),
        )
    else:
        text = "\n".join(_numbered(one, sentence) for sentence in one.sentences)
        lines = (f"{number}. {entry(key)}" for number, key in enumerate(one.keys, start=1))
    listed = "\n\n".join(lines)
    path.write_text(
        f"# On fruit\n\n## Introduction\n\n{text}\n\n## References\n\n{listed}\n", "utf-8"
    )


def _named(sentence: str) -> str:
    def mark(found: re.Match[str]) -> str:
        works = [WORKS[key] for key in found[1].split()]
        return f"({'; '.join(map(_name_work, works))})"

    return _MARK.sub(mark, sentence) + "."


def _name_work(work: dict[str, str]) -> str:
    families = [name.split(",")[0] for name in work["authors"].split("; ")]
    named = f"{families[0]} et al." if len(families) > 2 else " and ".join(families)
    return f"{named}, {work['year']}"


def _write_pdf(one: Planted, path: Path) -> None:
    body = [line for sentence in one.sentences for line in _wrap(_numbered(one, sentence))]
    listed = [
        line
        for number, key in enumerate(one.keys, start=1)
        for line in _wrap(f"[{number}] {entry(key)}")
    ]
    half = len(body) // 2
    path.write_bytes(
        write_pdf(["Introduction", *body[:half]], [*body[half:]], ["References", *listed])
    )


def _wrap(text: str) -> list[str]:
    words, lines = text.split(), [""]
    for word in words:
        if len(lines[-1]) + len(word) > 70:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


_WRITERS: dict[str, Callable[[Planted, Path], None]] = {
    ".docx": _write_docx,
    ".tex": _write_tex,
    ".md": _write_markdown,
    ".pdf": _write_pdf,
}
