"""Options on where passages and papers are: libraries, files and services."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from deepera_graph.cli.shared.declaring import A_KEY, Configurable, Key, opt
from deepera_graph.cli.shared.values import check_name, read_max_words

_store = partial(opt, panel="Store")


@dataclass(frozen=True, kw_only=True)
class LibraryOption(Configurable):
    """The option that comes first."""

    library: str | None = _store(
        "The library that `deepera index` fills, by its name; or a file of papers, or the address "
        "of `deepera papers serve`.",
        "--library",
        "-l",
        brief="The library that `deepera index` fills.",
        metavar="NAME",
        config=Key(yields_to=("source", "sources")),
    )


@dataclass(frozen=True, kw_only=True)
class PlaceOptions:
    """Where libraries are."""

    path: str | None = _store(
        "Folder of local libraries.",
        brief="Folder of local libraries.",
        metavar="FOLDER",
        shown="$XDG_DATA_HOME/deepera or ~/.local/share/deepera",
        config=Key(is_path=True, yields_to=("qdrant_url", "source", "sources")),
    )
    qdrant_url: str | None = _store(
        "A Qdrant server, instead of a folder.",
        metavar="URL",
        config=Key(is_address=True, yields_to=("path", "source", "sources")),
    )


@dataclass(frozen=True, kw_only=True)
class CollectionsOptions(PlaceOptions):
    """Where libraries are, and how they are searched."""

    embeddings: str | None = _store(
        "[b]local[/b]: those of the local judge, no key. [b]openai:MODEL[/b]. [b]bge-large-en[/b] "
        "or [b]sentence-transformers:MODEL[/b] (extra sentence-transformers). "
        "[b]MODULE:FACTORY[/b], a function that returns LangChain Embeddings. A library made "
        "with embeddings is searched with the same ones.",
        brief="[b]local[/b], [b]openai:MODEL[/b], [b]bge-large-en[/b] or a function of yours.",
        metavar="NAME",
        config=Key(harmless=("local",), check=check_name),
    )


@dataclass(frozen=True, kw_only=True)
class WhereOptions:
    """What may be found."""

    where: list[str] | None = opt(
        "Only what meets this: FIELD=VALUE, FIELD!=VALUE, FIELD~WORDS, 'year>=2015' or "
        "'since 2015', in quotes; VALUE may be JSON, such as a list. May be repeated. Passages "
        "have all fields of their metadata, papers and services year, date, journal and id.",
        brief="Only what meets this: 'year>=2015'. May be repeated.",
        metavar="FIELD=VALUE",
    )


_live = partial(opt, panel="Literature")


@dataclass(frozen=True, kw_only=True)
class ManneredOptions(Configurable):
    """How services of literature are asked."""

    contact: str | None = _live(
        "Your address of mail, which services may write to if something goes wrong; they are sent "
        "it with every request.",
        metavar="MAIL",
        shown="none is sent",
        config=Key(harmless=None),
    )
    source_seconds: float | None = _live(
        "Longest time for all services together, with their waits; one that asks to wait longer "
        "is left out, with a remark.",
        metavar="S",
        least=0.1,
        shown="20",
        config=A_KEY,
    )


@dataclass(frozen=True, kw_only=True)
class LiteratureOptions(ManneredOptions):
    """Which services of literature are asked."""

    sources: str | None = _live(
        "Search the world's literature: [b]pubmed[/b], [b]europe_pmc[/b], [b]openalex[/b], "
        "[b]arxiv[/b], [b]semantic_scholar[/b], several with commas between them, or [b]all[/b]. "
        "Keys are read from NCBI_API_KEY, OPENALEX_API_KEY and S2_API_KEY, and never shown.",
        "--source",
        brief="pubmed, openalex, arxiv, ... or all.",
        metavar="NAME,NAME",
    )


@dataclass(frozen=True, kw_only=True)
class StoreOptions(CollectionsOptions, LibraryOption):
    """Where passages are."""


@dataclass(frozen=True, kw_only=True)
class KeepOptions:
    """What is kept with a library."""

    keep_vectors: str | None = _store(
        "The most that the local judge may keep with a local library, in MB: what it needs of a "
        "passage whatever the question, so that none is encoded twice; what was used longest ago "
        "gives way. [b]off[/b] keeps nothing.",
        metavar="MB|off",
        shown="256",
        config=Key(harmless=None),
    )


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How a file or folder is read."""

    max_words: str | None = opt(
        "Longest passage, in words: a longer text is cut between sentences. [b]off[/b] cuts none.",
        brief="Longest passage, in words, or off. [350]",
        metavar="N|off",
        shown="350",
        config=Key(harmless=None, check=read_max_words),
    )
    pdf_reader: Literal["pypdf", "pdfium"] = opt(
        "Who reads PDF files: [b]pypdf[/b], or [b]pdfium[/b] (extra pdfium), which is four times "
        "as fast, and reads some files that the other cannot.",
        metavar="NAME",
        default="pypdf",
        config=A_KEY,
    )


@dataclass(frozen=True, kw_only=True)
class SearchOptions(WhereOptions):
    """What is searched for."""

    retrieve: int = _store(
        "Candidates retrieved.", "--retrieve", "-k", metavar="K", default=30, least=1
    )
    adaptive: bool = _store(
        "Also look at the neighbours of passages that are close to the question, and at theirs: "
        "for questions whose evidence no single search brings together. Needs a library with "
        "--neighbours; those of a SOURCE are found on the spot.",
        brief="Also look at neighbours of what is found.",
        default=False,
    )
    explore: int | None = _store(
        "With --adaptive: most passages compared with the question.",
        metavar="N",
        least=1,
        config=A_KEY,
        shown="50, at least as many as --retrieve",
    )
    retractions: Path | None = opt(
        "CSV of notices, with the columns of Retraction Watch: OriginalPaperDOI, "
        "OriginalPaperPubMedID, RetractionNature. Papers that it names are marked, and retracted "
        "ones count for nothing; so do those whose title or metadata say it.",
        brief="CSV of retracted papers, as of Retraction Watch.",
        metavar="FILE",
    )
    answer: bool = opt("Draw an answer from what is kept.", default=False)
    report: bool = opt(
        "Write several paragraphs on what is kept, with its limits and gaps. With --model the chat "
        "model writes, and no sentence is shown that the studies it cites do not say; without, "
        "every sentence is a quote.",
        brief="Write paragraphs, each sentence checked.",
        default=False,
    )
    per_passage: bool = opt(
        "Show and count every passage by itself. Without it passages of one study stand together, "
        "and count once.",
        brief="Show and count every passage by itself, not by study.",
        default=False,
    )
    dry_run: bool = opt(
        "Search, and say what judging would cost at most; with --report what writing would take, "
        "too. Nothing is judged.",
        brief="Only say what it would cost.",
        default=False,
    )
    format: Literal["text", "markdown", "html", "csv", "json", "bibtex", "ris"] = opt(
        "Form of the output. [b]markdown[/b], [b]html[/b] and [b]csv[/b] are tables of the "
        "evidence: score, source with its DOI, quote, summary; with -v the dropped passages, too "
        "(not html). [b]bibtex[/b] and [b]ris[/b] have the sources of the evidence, [b]json[/b] "
        "everything.",
        brief="markdown, html, csv, json, bibtex or ris.",
        metavar="FORM",
        default="text",
    )
