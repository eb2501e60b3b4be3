"""Options on where passages and papers are: libraries, files and services."""

from dataclasses import dataclass
from functools import partial
from typing import Literal

from deepera_graph.cli.shared.declaring import A_KEY, Key, opt
from deepera_graph.cli.shared.values import check_name, read_max_words

_store = partial(opt, panel="Store")


@dataclass(frozen=True, kw_only=True)
class LibraryOption:
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
class ManneredOptions:
    """How services of literature are asked."""

    contact: str | None = _live(
        "Your address of mail, which services may write to if something goes wrong; they are sent "
        "it with every request.",
        metavar="MAIL",
        shown="none is sent",
        config=Key(harmless=None),
    )
    source_seconds: float | None = _live(
        "Longest time for all services together, with their waits; one that asks to wait for "
        "longer is left out, and said to be.",
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
