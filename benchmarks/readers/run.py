"""Every reader of texts over real ones, and over what is repeated without end.

    python benchmarks/readers/run.py corpus.jsonl --most 5000
    python benchmarks/readers/run.py --repeated

A reader raises nothing, whatever it is given, but to say that what it was given is no list, no name
or no query; and it takes time linear in the length. With a corpus (JSON Lines with `title` and
`abstract` or `text`, or with `question` and `contexts`; also .gz) the table has how many texts each
reader read, its exceptions, and its median and slowest time; the slowest text is named. Progress
goes to the standard error output; after Ctrl-C the table has what was read until then. With
`--repeated` each reads texts of one unit repeated, at two lengths of which one is four times the
other: linear is 4, quadratic 16. Times are of the processor, as other work delays the clock, and
without a reader's first call, which loads what is loaded once. What would be the slowest of a
reader is read three times, each time as if for the first, and the least time counts: other work
slows a processor down, too.
"""

import argparse
import gzip
import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from statistics import median
from time import monotonic, process_time
from traceback import extract_tb
from typing import Any

from langchain_core.documents import Document

import deepera_graph
from deepera_graph.bioasq.measures import rouge
from deepera_graph.bioasq.phase_b import extract, replies
from deepera_graph.chat import parsing
from deepera_graph.judges.heuristic import analysis, phrases, roles, topicality
from deepera_graph.judges.llm import prompt
from deepera_graph.judges.trained.direction.model import read_direction
from deepera_graph.judges.trained.reading import vectors
from deepera_graph.lab.bench.realism import shape
from deepera_graph.lab.build import corpus
from deepera_graph.lab.build.writing import answers, faults, gates, questions
from deepera_graph.lab.build.writing.answers import contains_answer
from deepera_graph.lab.build.writing.distractors import QAPair
from deepera_graph.lab.data.pools import turn_changes
from deepera_graph.lab.metrics.answers import token_overlap
from deepera_graph.lab.studies.multihop.answers import cover_match
from deepera_graph.lab.training.lessons.groups import split_abstract
from deepera_graph.literature import paper_keys
from deepera_graph.literature.citation import Citation, find_doi
from deepera_graph.literature.paper_keys import invert_name
from deepera_graph.multihop.passages.expansion import expand_hops
from deepera_graph.multihop.path import normal_form
from deepera_graph.papers import paper
from deepera_graph.papers.agent import planners
from deepera_graph.papers.agent.limits import reading
from deepera_graph.papers.library import words
from deepera_graph.papers.sources.base import SourceQuery
from deepera_graph.pipeline.answer import answer_quotes
from deepera_graph.retrieval.documents import read_document
from deepera_graph.retrieval.documents.article import join_words
from deepera_graph.retrieval.files import cut_text
from deepera_graph.stores.words import count_terms
from deepera_graph.text import bibtex, quotes, terms
from deepera_graph.text import questions as asked
from deepera_graph.text import questions as names
from deepera_graph.text import words as plain
from deepera_graph.text.drift import turned_changes
from deepera_graph.text.plain import clean_markup
from deepera_graph.text.records import read_records
from deepera_graph.text.words import forget_all

PACKAGE = Path(deepera_graph.__file__).parent
INTENT: Any = {
    "topic": "", "entity_type": "", "intent": "comparative", "expected_answer_type": "other",
}  # fmt: skip
FORMS = (".html", ".md", ".txt", ".xml")
UNITS = tuple(
    map(json.loads, (Path(__file__).parent / "units.jsonl").read_text("utf-8").splitlines())
)


@dataclass(slots=True)
class Text:
    """A text that is read, with a short one on the same: its title, which serves as a question."""

    id: str
    title: str
    text: str
    sentence: str = field(default="")

    def __post_init__(self) -> None:
        self.sentence = self.text[len(self.text) // 3 : 2 * len(self.text) // 3]


Reader = Callable[[Text], object]
TEXTS_PER_LINE = 250
WARMING = Text(
    "warming up",
    "Does night frost (NF) harm moths?",
    "Moths [1] were counted in 12 traps in 2010. Night frost (NF) harmed no moths (p < 0.05), and "
    "5 mg/kg of sugar raised their weight by 3 %. We conclude that NF does not harm moths.",
)


def _task(one: Text) -> Any:
    return {"question": one.title, "intent": INTENT, "text": one.text, "title": "", "section": ""}


def _answer(kind: str) -> Reader:
    def read(one: Text) -> object:
        snippets = [one.text, one.sentence]
        task: Any = {"type": kind, "question": one.title, "snippets": snippets, "exact": None}
        if kind != "summary":
            task["exact"] = extract.extract_exact(task).names or None
        return task["exact"], extract.extract_ideal(task)

    return read


def _hop(one: Text) -> object:
    found = [Document(one.text, metadata={"title": one.title}), Document(one.sentence)]
    return expand_hops(one.title or "which", lambda query, k: found[:k])


def _document(form: str) -> Reader:
    def read(one: Text) -> object:
        return [*read_document(Path("file"), io.BytesIO(one.text.encode()), form)]

    return read


def _records(suffix: str) -> Reader:
    return lambda one: [*read_records(io.BytesIO(one.text.encode()), suffix)]


def _citation(one: Text) -> object:
    fields = {"authors": one.sentence, "title": one.title, "venue": one.text, "doi": one.text}
    return str(Citation.of(fields, "1")), find_doi(one.text), invert_name(one.sentence)


@cache
def _prose() -> faults.ProseModel:
    return faults.ProseModel.fit(["The moths were counted in every trap, and weighed."] * 9)


def _gates(one: Text) -> object:
    kept = (one.sentence,)
    return gates.failed_gates(
        gates.CandidateDistractor(
            text=one.text, gold_answer=one.sentence, question=one.title, others=kept, golden=kept
        )
    )


READERS: Mapping[str, Reader] = {
    "text: words": lambda one: plain.words(one.text),
    "text: stems": lambda one: plain.stems(one.text),
    "text: content words": lambda one: plain.content_words(one.text),
    "text: language": lambda one: plain.looks_english(one.text),
    "text: sentences": lambda one: plain.split_sentences(one.text),
    "text: names": lambda one: [*names.find_names(one.text)],
    "text: names, loose": lambda one: [*names.find_names(one.text, loose=True)],
    "text: names of a question": lambda one: names.question_names(one.text),
    "text: brackets": lambda one: names.without_brackets(one.text),
    "text: quote": lambda one: quotes.find_quote(one.text, one.sentence),
    "text: quote, changed": lambda one: quotes.find_quote(one.text, f"{one.sentence}X"),
    "text: drift": lambda one: terms.missing_terms(one.sentence, one.text),
    "text: changes": lambda one: turned_changes(one.sentence, one.text),
    "text: turning": lambda one: turn_changes(one.text),
    "text: claim or question": lambda one: (
        asked.looks_like_claim(one.text), asked.asks_yes_or_no(one.text)),
    "text: BibTeX": lambda one: [*bibtex.read_entries(one.text)],
    "text: authors of BibTeX": lambda one: bibtex.split_authors(one.text),
    **{f"text: records {one}": _records(one) for one in (".ris", ".nbib", ".bib", ".csv", ".json")},
    "build: quantities": lambda one: faults.read_quantities(one.text),
    "build: without quantities": lambda one: faults.without_quantities(one.text),
    "build: answer": lambda one: contains_answer(one.text, one.sentence, one.title),
    "build: verdict": lambda one: contains_answer(one.text, "yes", f"Does {one.title}?"),
    "build: gates": _gates,
    "build: word order": lambda one: _prose().measure_order(one.text),
    "build: overlap": lambda one: answers.resemblance(one.text, one.sentence),
    "build: chunks": lambda one: corpus.cut_chunks(one.text),
    "build: tokens": lambda one: corpus.count_tokens(one.text),
    "build: problem": lambda one: questions.find_problem(
        QAPair(one.title, one.sentence, corpus.Chunk("1", one.text, "1"))),
    "bench: shape": lambda one: shape(one.text),
    "bench: answer tokens": lambda one: token_overlap(one.text, one.sentence),
    "bench: cover match": lambda one: cover_match(one.text, [one.sentence]),
    "rules: intent": lambda one: roles.recognize_intent({"question": one.text, "problem": ""}),
    "rules: entities": lambda one: roles.find_entities(one.text),
    "rules: names": lambda one: topicality.find_names(one.text),
    "rules: phrases": lambda one: phrases.list_phrases(one.text),
    "rules: sentences": lambda one: analysis.read_sentences(one.text, "result"),
    "rules: acronyms": lambda one: [
        topicality.spell_out(name, one.text) for name in topicality.find_acronyms(one.text)[:9]],
    "rules: question terms": lambda one: topicality.read_question_terms(one.text, one.title),
    "rules: judgement": lambda one: roles.judge(_task(one)),
    "rules: summary": lambda one: roles.summarize(_task(one)),
    "local: tokens": lambda one: vectors.tokenize(one.text),
    "local: likeness": lambda one: (
        vectors.tokenize(one.title),
        vectors.count_shared_numbers([one.text, one.sentence]),
        vectors.measure_shared_abbreviations([one.text, one.sentence])),
    "local: direction": lambda one: read_direction(one.title, one.text),
    "local: direction, long question": lambda one: read_direction(one.text, one.sentence),
    "local: parts of abstracts": lambda one: split_abstract(one.text),
    **{f"bioasq: {one}": _answer(one) for one in ("yesno", "factoid", "list", "summary")},
    "bioasq: sentences": lambda one: extract.rank_sentences(one.title, [one.text, one.sentence]),
    "bioasq: ROUGE": lambda one: rouge(one.text, [one.sentence]),
    "bioasq: written list": lambda one: replies.read_list(one.text),
    "bioasq: written yes or no": lambda one: replies.read_yes_no(one.text),
    "bioasq: written names": lambda one: replies.read_names(one.text),
    "bioasq: written answer": lambda one: replies.read_ideal(one.text),
    "bioasq: written parts": lambda one: (
        replies.fit_ideal(one.text), replies.split_synonym(one.text), replies.clean_name(one.text)),
    "chat: JSON": lambda one: parsing.extract_json(one.text),
    "chat: reply": lambda one: parsing.parse_reply(one.text, replies.NamesReply),
    "chat: sanitized": lambda one: (parsing.sanitize(one.text), parsing.sanitize_line(one.text)),
    "chat: spaces": lambda one: parsing.remove_spaces(one.text),
    "prompt: marker": lambda one: prompt.marker(one.text, one.title),
    "prompt: plain": lambda one: (prompt.plain(one.text), prompt.one_line(one.text)),
    "papers: limits": lambda one: reading.read_limits(one.text, venues=("ACL",)),
    "papers: phrases": lambda one: reading.split_phrases(one.text),
    "papers: subject": lambda one: planners.subject_of(one.text),
    "papers: labels": lambda one: planners.find_labels([one.text, one.sentence]),
    "papers: ids and titles": lambda one: (
        paper_keys.normalize_id(one.text), paper_keys.title_key(one.text),
        paper_keys.main_title(one.text),
        paper.venue_key(one.text)),
    "papers: clean text": lambda one: paper_keys.clean_text(one.text),
    "papers: words": lambda one: (words.split_words(one.text), words.search_words(one.text)),
    "papers: markup": lambda one: clean_markup(one.text),
    "papers: query of a service": lambda one: SourceQuery.of(one.title),
    "multihop: expansion": _hop,
    "multihop: forms of an answer": lambda one: normal_form(one.text),
    "citation": _citation,
    "quotes of an answer": lambda one: answer_quotes(f"{one.text} [1]", [("1", one.sentence)]),
    "store: passages": lambda one: cut_text(one.text),
    "store: terms": lambda one: count_terms(one.text),
    "documents: joined words": lambda one: join_words(one.text),
    **{f"documents: {one}": _document(one) for one in FORMS},
}  # fmt: skip


@dataclass(slots=True)
class Figures:
    """What a reader took, in milliseconds, and what it raised."""

    times: list[float] = field(default_factory=list)
    slowest_ms: float = 0.0
    slowest: str = ""
    raised: list[str] = field(default_factory=list)

    def add(self, reader: Reader, one: Text) -> None:
        """Let a reader read a text, three times if it would be the slowest."""
        took, error = _time(reader, one)
        if error is not None and not _is_refusal(error):
            self.raised.append(f"{one.id}: {type(error).__name__}: {error}"[:200])
        for _ in range(2):
            if took > self.slowest_ms:
                forget()
                took = min(took, _time(reader, one)[0])
        if took > self.slowest_ms:
            self.slowest_ms, self.slowest = took, one.id
        self.times.append(took)


def _time(reader: Reader, one: Text) -> tuple[float, Exception | None]:
    """Return the milliseconds that a reader took, and what it raised."""
    began, raised = process_time(), None
    try:
        reader(one)
    except Exception as error:  # noqa: BLE001 - whatever a reader raises is counted
        raised = error
    return 1000 * (process_time() - began), raised


def forget() -> None:
    """Empty what remembers texts; stems of words stay, as words come again and texts do not."""
    forget_all()
    for one in _remembering():
        one.cache_clear()


@cache
def _remembering() -> list[Any]:
    """Return the caches of the package that hold more than what is loaded once."""
    modules = [one for name, one in sys.modules.items() if name.startswith("deepera_graph.")]
    return [
        one
        for one in {id(one): one for module in modules for one in vars(module).values()}.values()
        if isinstance(one, type(plain.stem))
        and one is not plain.stem
        and (one.cache_parameters()["maxsize"] or 1) > 1
    ]


def _is_refusal(error: Exception) -> bool:
    """Tell whether the package raised an error on purpose."""
    last = extract_tb(error.__traceback__)[-1]
    return PACKAGE in Path(last.filename).parents and (last.line or "").startswith("raise ")


def read_texts(path: Path) -> Iterator[Text]:
    """Yield the texts of a file of JSON Lines."""
    opened: Any = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            row = json.loads(line)
            for one in row.get("contexts") or [row]:
                text = one.get("abstract") or one.get("text") or ""
                text = " ".join(text) if isinstance(text, list) else text
                title = row.get("question") or one.get("title") or text[:80]
                if text:
                    yield Text(f"line {number}", str(title), text)


def warm_up(readers: Mapping[str, Reader]) -> None:
    """Let readers load what they load once."""
    for reader in readers.values():
        Figures().add(reader, WARMING)


def measure(texts: Iterable[Text], readers: Mapping[str, Reader] = READERS) -> dict[str, Figures]:
    """Let every reader read every text, until Ctrl-C."""
    found = {name: Figures() for name in readers}
    began = monotonic()
    try:
        warm_up(readers)
        for number, one in enumerate(texts, start=1):
            for name, reader in readers.items():
                found[name].add(reader, one)
            if not number % TEXTS_PER_LINE:
                sys.stderr.write(f"{number} texts, {monotonic() - began:.0f} s\n")
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
    return found


def measure_growth(reader: Reader, unit: str, length: int) -> tuple[float, float, list[str]]:
    """Return the milliseconds for a unit repeated to a length and to four times it, and errors."""
    figures = Figures()
    for size in (length, 4 * length):
        many = (unit * (size // len(unit) + 1))[:size]
        figures.add(reader, Text(repr(unit), many[: min(size, 300)], many))
    return figures.times[0], figures.times[1], figures.raised


def list_growths(length: int, least_ms: float, readers: Mapping[str, Reader]) -> Iterator[str]:
    """Yield what grows faster than its text, or raises."""
    warm_up(readers)
    for name, reader in readers.items():
        for unit in UNITS:
            short, long, raised = measure_growth(reader, unit, length)
            if not raised and long > max(least_ms, 8 * short):  # said twice, as one may be delayed
                short, long, raised = measure_growth(reader, unit, length + 1)
            if raised or long > max(least_ms, 8 * short):
                said = raised[0] if raised else f"{short:.1f} ms, {long:.1f} ms"
                yield f"{name}: {unit!r}: {said}"


def choose_readers(parts: list[str], without: list[str]) -> dict[str, Reader]:
    """Return the readers whose names have one of the parts, and none of others."""
    return {
        name: one
        for name, one in READERS.items()
        if any(part in name for part in parts) and not any(part in name for part in without)
    }


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("corpus", nargs="*", type=Path, help="files of texts")
    parser.add_argument("--most", type=int, help="texts read of each file (default: all)")
    parser.add_argument("--readers", default="", help="parts of readers' names (A,B; default: all)")
    parser.add_argument("--without", default="\0", help="parts of the names of others (A,B)")
    parser.add_argument("--repeated", action="store_true", help="read repeated units instead")
    parser.add_argument("--length", type=int, default=4000, help="characters (default: 4000)")
    parser.add_argument("--least-ms", type=float, default=20.0, help="faster passes (default: 20)")
    chosen = parser.parse_args()
    readers = choose_readers(chosen.readers.split(","), chosen.without.split(","))
    if chosen.repeated:
        for line in list_growths(chosen.length, chosen.least_ms, readers):
            print(line, flush=True)  # noqa: T201
        return
    texts = (one for path in chosen.corpus for one in islice(read_texts(path), chosen.most))
    lines: list[str] = [
        "| reader | texts | exceptions | median ms | slowest ms | of |",
        "|---|---|---|---|---|---|",
    ]
    for name, one in measure(texts, readers).items():
        if one.times:
            lines.append(
                f"| {name} | {len(one.times)} | {len(one.raised)} | {median(one.times):.2f} "
                f"| {one.slowest_ms:.1f} | {one.slowest} |"
            )
        for line in one.raised[:5]:
            sys.stderr.write(f"{name}: {line}\n")
    sys.stdout.write("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
