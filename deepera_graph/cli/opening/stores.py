"""The library that is searched or filled: its collection of passages, and what lies beside it."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import typer

from deepera_graph.cli.opening.judges import search_here
from deepera_graph.cli.opening.sources import check_literature, open_literature
from deepera_graph.cli.shared import places
from deepera_graph.cli.shared.console import INTERRUPTED, go_on_command, say
from deepera_graph.cli.shared.declaring import opt
from deepera_graph.cli.shared.values import EMBEDDINGS
from deepera_graph.errors import MissingStoreError, SettingsError
from deepera_graph.settings.ranges import suggest_value

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from deepera_graph.agents.journal import Journal
    from deepera_graph.multihop.passages.graph import NeighbourGraph
    from deepera_graph.papers import PaperBase
    from deepera_graph.papers.sources import SourceAnswer
    from deepera_graph.retrieval.collections.collection import Mode
    from deepera_graph.retrieval.collections.passage_store import PassageStore


@dataclass(frozen=True, kw_only=True)
class BaseOptions(places.PlaceOptions, places.LibraryOption):
    """Which library."""

    embeddings: str | None = opt(
        "Embeddings its papers were indexed with, unless these are [b]local[/b]; see `deepera "
        "index --help`.",
        metavar="NAME",
    )


@dataclass(frozen=True, kw_only=True)
class SearchedOptions(places.LiteratureOptions, BaseOptions):
    """Which library, or which services of literature."""


@contextmanager
def going_on(describe: Callable[[], str], *more: str) -> Iterator[None]:
    """Say after Ctrl-C what is done, and how to go on: with the same command and *more*."""
    # Where nothing is done yet, and so *describe* is empty, the interrupt is passed on.
    try:
        yield
    except KeyboardInterrupt as error:
        if not (done := describe()):
            raise
        say(f"interrupted; {done}")
        say(f"go on with: {go_on_command(*more, without=['--overwrite'])}")
        raise typer.Exit(INTERRUPTED) from error


@contextmanager
def open_journal(
    out: Path, suffix: str, ran: Mapping[str, Any], *, resume: bool
) -> Iterator[Journal]:
    """Open the journal beside a result; after an interrupt, say which command goes on with it."""
    from deepera_graph.agents.journal import Journal

    journal = Journal(out.with_name(out.name + suffix), ran)

    def describe() -> str:
        return f"what is done is kept in {journal.path}" if journal.entries else ""

    with journal.open(resume=resume), going_on(describe, "--resume"):
        yield journal


def find_embeddings(embeddings: str | None) -> Embeddings | None:
    """Build the embeddings that `--embeddings` names; None if it was not given."""
    if embeddings is None:
        return None
    from deepera_graph.judges import embeddings as named

    search_here()
    return named.find_embeddings(embeddings, what=EMBEDDINGS)


def find_recorded(store: places.StoreOptions, recorded: str) -> Embeddings | None:
    """Return the embeddings that a collection was made with: ours, or those that are configured."""
    from deepera_graph.judges.embeddings import LOCAL, name_recorded

    name = name_recorded(recorded)
    if store.embeddings is None and name != LOCAL:
        shown = name or "MODULE:FACTORY, a function that makes them"
        raise SettingsError(
            f"library {store.library!r} was made with {recorded}: give {EMBEDDINGS} {shown}"
        )
    return find_embeddings(store.embeddings or LOCAL)


_SERVER_KEY_VARIABLE = "QDRANT_API_KEY"
_NEIGHBOURS, _PAPERS = "neighbours", "papers"  # folders beside that of collections
_MOST_NAMED = 12  # libraries, in a message
_WAIT = 2.0  # seconds that a server may need for a search, before it lets go of a folder


def open_collection(
    store: places.StoreOptions,
    *,
    mode: Mode | None = None,
    must_exist: bool,
    to_search: bool = True,
) -> PassageStore:
    """Open the passages of a library; needs no embeddings unless it is searched or filled."""
    if not store.library:
        given = "" if store.library is None else ", got ''"
        raise SettingsError(f"--library must name a library{given}")
    place = place_of(store)
    if must_exist:
        check_library(store)
        if to_search and mark_of(store, store.library).is_file():
            say(f"warning: {describe_unfinished(store.library)}")
    from deepera_graph.retrieval.collections.store import open_store

    by_default = must_exist and "embeddings" in store.configured
    return open_store(
        store.library,
        **place,
        mode=mode,
        embeddings=None if by_default else find_embeddings(store.embeddings),
        find_embeddings=partial(find_recorded, store),
        must_exist=must_exist,
        to_search=to_search,
        wait=_WAIT,
    )


def place_of(store: places.PlaceOptions) -> dict[str, Any]:
    """Return folder, address and key of a store, as `open_store` takes them."""
    if store.path == ":memory:":
        raise SettingsError("--path must be a folder; ':memory:' ends with this command")
    on_server = store.qdrant_url is not None
    return {
        "path": store.path if on_server else store.path or data_folder(),
        "url": store.qdrant_url,
        "api_key": server_key() if on_server else None,
    }


def data_folder() -> Path:
    """Return the folder of local libraries, by the XDG base directory specification."""
    home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(home) / "deepera"


def server_key() -> str | None:
    """Return the key of a Qdrant server, from the environment."""
    return os.environ.get(_SERVER_KEY_VARIABLE)


def find_collection_folder(store: places.StoreOptions) -> Path | None:
    """Return the folder of a local collection; None if there is none yet, or it is on a server."""
    from deepera_graph.retrieval import find_folder

    path = place_of(store)["path"]
    if path is None or store.library is None or is_address(store.library):
        return None
    return find_folder(path, store.library)


def check_library(store: places.StoreOptions) -> None:
    """Raise `MissingStoreError` for a library that a local folder does not have."""
    path = place_of(store)["path"]
    if not store.library or path is None or not (Path(path) / "meta.json").is_file():
        return  # it is said when the store is opened
    if find_collection_folder(store) is None and not has_papers_alone(store):
        raise _missing(store, store.library)


def is_address(library: str) -> bool:
    """Whether papers are behind an address, and no file."""
    return library.startswith(("http://", "https://"))


def find_papers(place: places.PlaceOptions, library: str) -> str:
    """Return where the papers of a library are or would be: a file, or an address."""
    # What is a file or looks like one, with a folder or a suffix, is taken for one unless there is
    # a library of that name.
    own = beside(place, _PAPERS, library)
    own = own.with_name(f"{own.name}.sqlite")
    looks_so = (
        Path(library).is_file() or bool(Path(library).suffix) or Path(library).name != library
    )
    return library if is_address(library) or (looks_so and not own.is_file()) else str(own)


def mark_of(place: places.PlaceOptions, library: str) -> Path:
    """Return the file that is beside the papers of a library until it is indexed to its end."""
    return Path(f"{find_papers(place, library)}.unfinished")


def describe_unfinished(library: str) -> str:
    """Say what is to be done about a library whose indexing was cut short."""
    return f"{library!r} was not indexed to its end; the same deepera index again adds the rest"


def list_papers(place: places.PlaceOptions) -> dict[str, str]:
    """Return the files of papers of all libraries, by their names."""
    folder = beside(place, _PAPERS, "x").parent
    return {unquote(one.stem): str(one) for one in sorted(folder.glob("*.sqlite"))}


def check_papers(place: places.PlaceOptions, library: str) -> str:
    """Return where the papers of a library are; `MissingStoreError` if there are none."""
    found = find_papers(place, library)
    if is_address(found) or Path(found).is_file():
        return found
    if found == library:
        from deepera_graph.papers.library import check_there

        check_there(found)
    if find_collection_folder(store_of(place, library)) is not None:
        if mark_of(place, library).is_file():
            raise MissingStoreError(describe_unfinished(library))
        raise MissingStoreError(
            f"library {library!r} was made before libraries had papers; give it some: "
            f"deepera library move {shlex.quote(library)}"
        )
    raise _missing(place, library)


def has_papers_alone(store: places.StoreOptions) -> bool:
    """Tell whether a library is searched by its papers, as it has no passages."""
    if not store.library or (
        store.qdrant_url and find_papers(store, store.library) != store.library
    ):
        return False
    if find_collection_folder(store) is not None:
        return False
    found = find_papers(store, store.library)
    return is_address(found) or Path(found).is_file()


@contextmanager
def open_papers(
    place: places.PlaceOptions, library: str, embeddings: str | None = None
) -> Iterator[PaperBase]:
    """Open the papers of a library, and close them in the end."""
    found = check_papers(place, library)
    from deepera_graph.papers import PaperBase

    if is_address(found):
        if embeddings:
            raise SettingsError("--embeddings goes with a file; a server has its own")
        base = PaperBase.connect(found)
    else:
        base = PaperBase.open(found, embeddings=find_embeddings(embeddings))
    with base:
        yield base


@contextmanager
def open_base(where: BaseOptions) -> Iterator[PaperBase]:
    """Open the papers of a command's library, and close them in the end."""
    with open_papers(where, name_library(where), where.embeddings) as base:
        yield base


def name_library(where: places.LibraryOption) -> str:
    """Return the library of a command; `SettingsError` if none was named."""
    if not where.library:
        raise SettingsError("--library must name a library, or a file of papers")
    return where.library


@contextmanager
def open_searched(
    where: SearchedOptions, cache: str | None
) -> Iterator[tuple[PaperBase, set[str]]]:
    """Open the library of a command, or services; return what of these fails meanwhile, too."""
    check_searched(where)
    told_of: set[str] = set()
    failures: set[str] = set()
    if where.library is not None:
        with open_base(where) as base:
            yield base, failures
        return
    if where.embeddings:
        raise SettingsError("--embeddings goes with --library; services are searched by words")
    from deepera_graph.papers.sources import live_base

    def tell(answer: SourceAnswer) -> None:
        if (said := str(answer)) not in told_of:
            told_of.add(said)
            failures.update([] if answer.is_complete else [said])
            say(said)

    with open_literature(where, cache) as literature:
        yield live_base(literature, on_trouble=tell), failures


def check_searched(where: SearchedOptions) -> None:
    """Raise an error unless one library that is there, or services that there are, are named."""
    check_literature(where)
    if (where.library is None) == (where.sources is None):
        told = "neither was given" if where.library is None else "both were given"
        raise SettingsError(f"give --library or --source: {told}")
    if where.library is not None:
        check_papers(where, where.library)


def _missing(place: places.PlaceOptions, library: str) -> MissingStoreError:
    """Return that there is no library of this name, and which there are."""
    from deepera_graph.retrieval import list_collections

    here = [] if place.qdrant_url else list_collections(place_of(place)["path"])
    known = sorted({*here, *list_papers(place)})
    listed = f"; available: {', '.join(map(repr, known[:_MOST_NAMED]))}" if known else ""
    return MissingStoreError(
        f"unknown library {library!r}{listed}; deepera index FILES -l {library} makes it"
        f"{suggest_value(library, known)}"
    )


def store_of(place: places.PlaceOptions, library: str) -> places.StoreOptions:
    """Return the passages of a library, as options name them."""
    return places.StoreOptions(library=library, path=place.path, qdrant_url=place.qdrant_url)


def keep_with(folder: Path | None, keep: places.KeepOptions) -> dict[str, Any]:
    """Return where the local judge keeps vectors, as `local_backend` takes it; nothing if off."""
    given = keep.keep_vectors
    if given is not None and given != "off" and not (given.isdecimal() and int(given) >= 1):
        raise SettingsError(f"--keep-vectors must be a whole number >= 1 or 'off', got {given!r}")
    if folder is None or given == "off":
        return {}
    return {"keep_in": str(folder), **({} if given is None else {"keep_mb": int(given)})}


def keep_embedded(opened: PassageStore, keep: places.KeepOptions) -> Callable[[list[str]], None]:
    """Return what keeps vectors of texts that the local judge has just embedded for a store."""
    from deepera_graph.judges.embeddings import LOCAL, name_recorded

    how = keep_with(opened.folder, keep)
    if not how or name_recorded(opened.embeddings_name or "") != LOCAL:
        return lambda _: None
    from deepera_graph.judges.trained.backend import local_model

    return local_model(**how).encoder.keep_held


def neighbours_of(place: places.PlaceOptions, library: str) -> Path:
    """Return the folder of a library's neighbours."""
    return beside(place, _NEIGHBOURS, library)


def beside(place: places.PlaceOptions, what: str, library: str) -> Path:
    """Return where something of a library is: beside its passages, or for a server's one here."""
    name = quote(library, safe="")
    if place.qdrant_url is None:
        return Path(place.path or data_folder()) / what / name
    server = re.split("//|@", place.qdrant_url)[-1].rstrip("/")  # without a login
    return data_folder() / what / quote(server, safe="") / name


def load_neighbours(store: places.StoreOptions) -> NeighbourGraph:
    """Open the neighbours of a collection."""
    from deepera_graph.multihop.passages.graph import NeighbourGraph

    folder = neighbours_of(store, store.library or "")
    if not folder.is_dir():
        raise MissingStoreError(
            f"library {store.library!r} has no neighbours yet: "
            f"deepera index SOURCE --library {shlex.quote(store.library or '')} --neighbours 16"
        )
    return NeighbourGraph.load(folder)
