"""`deepera index` and `library`: filling libraries; listing, renaming and deleting them."""

from __future__ import annotations

import builtins
import glob
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from deepera_graph.cli.opening.sources import PassageSource, batches
from deepera_graph.cli.opening.stores import (
    data_folder,
    find_collection_folder,
    find_embeddings,
    find_papers,
    keep_embedded,
    keep_with,
    neighbours_of,
    open_collection,
    place_of,
    store_of,
)
from deepera_graph.cli.shared import options, places
from deepera_graph.cli.shared.console import progress_bar, say, tell, tell_done
from deepera_graph.cli.shared.declaring import arg, opt
from deepera_graph.errors import SettingsError
from deepera_graph.text.plain import count

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepera_graph.multihop.passages.graph import NeighbourGraph
    from deepera_graph.papers.library.building import NamedPapers
    from deepera_graph.retrieval import CollectionInfo
    from deepera_graph.retrieval.collections.passage_store import PassageStore
    from deepera_graph.retrieval.collections.store import Catalogue, MetadataSample

DAILY = {
    "index": (
        "library", "path", "qdrant_url", "mode", "embeddings", "neighbours", "max_words",
        "verbose", "as_json", "quiet",
    ),
}  # fmt: skip
_store = partial(opt, panel="Store")
MOST_SHOWN = 40
_EXAMPLE = 50  # characters
_Name = Annotated[str, arg("NAME", "The library.")]


@dataclass(frozen=True, kw_only=True)
class NewStoreOptions(places.StoreOptions):
    """Where passages go."""

    mode: Literal["sparse", "dense", "hybrid"] | None = _store(
        "[b]sparse[/b] finds passages by their words, and needs nothing. [b]dense[/b] finds them "
        "by meaning, [b]hybrid[/b] by both; these need --embeddings.",
        "--search",
        "--mode",
        brief="[b]sparse[/b] finds words; [b]dense[/b] and [b]hybrid[/b] need --embeddings.",
        metavar="HOW",
        shown="hybrid with --embeddings, else sparse",
    )
    neighbours: int | None = _store(
        "Also find the N nearest neighbours of every passage, e.g. 16, for `deepera ask "
        "--adaptive`. A library that has neighbours has them brought up to date whenever "
        "passages are added.",
        brief="Also find the N nearest neighbours of every passage, for `ask --adaptive`.",
        metavar="N",
        least=1,
    )
    neighbours_by: Literal["meaning", "words"] | None = _store(
        "With --neighbours: whether near is what means the same, or what has the same words.",
        metavar="HOW",
        shown="meaning if the library is searched by words, else words",
    )


@dataclass(frozen=True, kw_only=True)
class IndexOutputOptions(options.OutputOptions):
    """What is told."""

    verbose: bool = opt(
        "Name every record and file that was skipped, and why.",
        "--verbose",
        "-v",
        default=False,
    )


class _Noted:
    """The papers that records name; gathered from the first on, as their module takes a while."""

    @cached_property
    def papers(self) -> NamedPapers:
        from deepera_graph.papers.library.building import NamedPapers

        return NamedPapers()

    def note(self, record: Mapping[str, Any]) -> None:
        self.papers.note(record)


def index(
    source: Annotated[
        builtins.list[str], arg("SOURCE", "Files, folders, ZIP archives or patterns.")
    ],
    *,
    store: NewStoreOptions,
    keep: places.KeepOptions,
    reading: places.ReadOptions,
    output: IndexOutputOptions,
) -> None:
    """Put files or folders into a library: their passages, and the papers they are of."""
    keep_with(None, keep)  # says what is wrong with it
    if store.neighbours_by is not None and store.neighbours is None:
        raise SettingsError("--neighbours-by goes with --neighbours")
    noted = _Noted()
    read = PassageSource(*source, reading=reading, verbose=output.verbose, on_record=noted.note)
    read.check()
    from deepera_graph.papers.library import count_papers
    from deepera_graph.papers.library.building import embed_papers
    from deepera_graph.papers.library.writing import Writer

    file = Path(find_papers(store, store.library or ""))
    with open_collection(store, mode=store.mode, must_exist=False) as opened, ExitStack() as open_:
        if opened.embeddings_name and not opened.is_new and store.embeddings is None:
            made_by = f"{store.library!r} was made with embeddings ({opened.embeddings_name})"
            say(f"{made_by}, so these passages are embedded with them, too")
        read.compare_ids(opened)
        embedded = keep_embedded(opened, keep)
        try:
            how = batches(opened.embeddings_name)
            n_indexed = read.fill(opened, quiet=output.quiet, embedded=embedded, **how)
        except BaseException as error:
            n_kept = opened.count()
            opened.drop_if_new()
            if isinstance(error, KeyboardInterrupt) and n_kept:
                kept = f"{store.library!r} holds {count(n_kept, 'passage')}"
                say(f"{kept}; the same command again adds the rest")
            raise
        file.parent.mkdir(parents=True, exist_ok=True)
        writer = open_.enter_context(Writer(file, merge="titles"))
        noted.papers.put(writer)
        if (own := opened.vectorstore.embeddings) is not None:
            embed_papers(writer, own)
        n_papers = count_papers(writer.db)
        n_in_all, mode = opened.count(), opened.mode
        graph = _find_neighbours(opened, store, quiet=output.quiet)
    read.tell()
    plain: dict[str, Any] = {
        "mode": mode,
        "indexed": n_indexed,
        "replaced": read.replaced.total(),
        "passages": n_in_all,
        "papers": n_papers,
    }
    plain["files"] = dict(read.forms.most_common())
    if graph is not None:
        plain["neighbours"] = {"k": graph.k, "by": graph.kind, "passages": len(graph)}
    of_papers = f", of {count(n_papers, 'paper')}" if n_papers else ""
    skipped = [{"place": one.place, "reason": one.reason} for one in read.skipped]
    tell_done(
        output,
        {"library": store.library, **plain, "skipped": skipped},
        lambda: (
            f"{count(n_indexed, 'passage')} indexed in {store.library!r} ({mode}); "
            f"it holds {n_in_all} now{of_papers}{read.describe_files()}"
            + (
                f"; {count(graph.k, 'neighbour')} of each by {graph.kind}"
                if graph is not None
                else ""
            )
        ),
    )
    raise typer.Exit(read.exit_code)


def _find_neighbours(
    opened: PassageStore, store: NewStoreOptions, *, quiet: bool
) -> NeighbourGraph | None:
    """Find the neighbours of what a library holds, or update them; None if unwanted."""
    folder = neighbours_of(store, store.library or "")
    if store.neighbours is None and not folder.is_dir():
        return None
    from deepera_graph.multihop.passages.graph import K, NeighbourGraph

    known, n = NeighbourGraph.load(folder) if folder.is_dir() else None, opened.count()
    own = opened.vectorstore.embeddings
    k = store.neighbours or (known.k if known is not None else K)
    if k >= n:
        has = f"{store.library!r} has {count(n, 'passage')}"
        again = f"give --neighbours {k} again when there are more"
        if n < 2:
            say(f"note: {has}, so it has no neighbours to find; {again}")
            return None
        if not quiet:
            say(f"note: {has}, so each gets {count(n - 1, 'neighbour')}, not {k}; {again}")
        k = n - 1
    with progress_bar("finding neighbours", total=n, hidden=quiet) as bar:

        def watch(n: int) -> None:
            bar.move(to=n, count=n)

        using = None if own is not None else find_embeddings("local")
        by = store.neighbours_by or (known.kind if known is not None else None)
        if known is not None and (k, by) == (known.k, known.kind):
            graph = known.update(opened, using, on_progress=watch)
        else:
            graph = NeighbourGraph.of_store(opened, k, by=by, embeddings=using, on_progress=watch)
    graph.save(folder)
    return graph


@dataclass(frozen=True, kw_only=True)
class DeleteOptions:
    """Whether to ask before."""

    yes: bool = opt("Do not ask whether to delete it.", "--yes", "-y", default=False)


def list(*, place: places.PlaceOptions, output: options.OutputOptions) -> None:
    """List the libraries."""
    where, found = _list(place)
    tell(
        output,
        {"place": where, "libraries": [asdict(one) for one in found]},
        lambda: "\n".join(_describe_all(where, found)),
    )


def show(name: _Name, *, place: places.PlaceOptions, output: options.OutputOptions) -> None:
    """Say what a library holds, and which metadata its passages have."""
    with _open(place) as catalogue:
        info, sample = catalogue.describe(name), catalogue.sample(name)
    tell(
        output,
        {**asdict(info), "sample": asdict(sample)},
        lambda: "\n".join(_describe_one(info, sample)),
    )


def rename(
    name: _Name,
    to: Annotated[str, arg("NEW", "Its new name.")],
    *,
    place: places.PlaceOptions,
    output: options.OutputOptions,
) -> None:
    """Give a library another name."""
    with _open(place) as catalogue:
        n_passages = catalogue.rename(name, to)
    _move_rest(place, name, to)
    tell_done(
        output,
        {"renamed": name, "to": to, "n_passages": n_passages},
        lambda: f"{name!r} is {to!r} now ({count(n_passages, 'passage')})",
    )


def delete(
    name: _Name,
    *,
    place: places.PlaceOptions,
    asking: DeleteOptions,
    output: options.OutputOptions,
) -> None:
    """Delete a library with its passages and papers."""
    with _open(place) as catalogue:
        held = count(catalogue.describe(name).n_passages, "passage")
        if not asking.yes:
            typer.confirm(f"Delete {name!r} with its {held}?", abort=True, err=True)
        n_deleted = catalogue.delete(name)
    _move_rest(place, name, None)
    tell_done(
        output, {"deleted": name, "n_passages": n_deleted}, lambda: f"{name!r} deleted ({held})"
    )


def move(
    name: _Name,
    base: Annotated[str | None, arg("[BASE]", "A file of papers that `papers build` made.")] = None,
    *,
    place: places.PlaceOptions,
    output: options.OutputOptions,
) -> None:
    """Give a library made by 0.9 or before its papers: a base, or those passages name."""
    from deepera_graph.papers.library import check_there, count_papers
    from deepera_graph.papers.library.building import name_papers
    from deepera_graph.papers.library.vectors import vectors_path
    from deepera_graph.papers.library.writing import Writer

    store = store_of(place, name)
    file = Path(find_papers(place, name))
    if base is not None:
        check_there(base)
        if file.exists():
            raise SettingsError(f"library {name!r} has papers already; {base!r} stays where it is")
        file.parent.mkdir(parents=True, exist_ok=True)
        for one in (Path(base), vectors_path(Path(base))):
            if one.exists():
                shutil.move(one, file if one == Path(base) else vectors_path(file))
    n_before = 0
    if base is None or place.qdrant_url or find_collection_folder(store) is not None:
        with open_collection(store, must_exist=True) as opened:
            named = name_papers(one.passage for one in opened.scan())
        file.parent.mkdir(parents=True, exist_ok=True)
        with Writer(file, merge="titles") as writer:
            n_before = count_papers(writer.db)
            named.put(writer)
            n_papers = count_papers(writer.db)
    else:
        with Writer(file) as writer:
            n_papers = n_before = count_papers(writer.db)
    plain = {"library": name, "n_papers": n_papers, "n_of_passages": n_papers - n_before}
    tell_done(output, plain, lambda: f"library {name!r} has {count(n_papers, 'paper')} now")


def _move_rest(place: places.PlaceOptions, name: str, to: str | None) -> None:
    """Have papers and neighbours of a library go where it went; away if that is nowhere."""
    folder, papers = neighbours_of(place, name), Path(find_papers(place, name))
    for one in (folder, *papers.parent.glob(f"{glob.escape(papers.name)}*")):
        if not one.exists():
            continue
        if to is None:
            shutil.rmtree(one) if one.is_dir() else one.unlink()
        elif one == folder:
            folder.replace(neighbours_of(place, to))
        else:
            new = Path(find_papers(place, to))
            one.replace(new.with_name(new.name + one.name.removeprefix(papers.name)))


def _list(place: places.PlaceOptions) -> tuple[str, Sequence[CollectionInfo]]:
    """Return where collections are, and which; none if the usual folder is not there yet."""
    from deepera_graph.retrieval import read_catalogue

    if not place.qdrant_url and place.path != ":memory:":
        folder = Path(place.path or data_folder())
        if not place.path and not (folder / "meta.json").is_file():
            return f"the folder {str(folder)!r}", []
        if (found := read_catalogue(folder)) is not None:
            return f"the folder {str(folder)!r}", found
    with _open(place) as catalogue:
        return catalogue.place, catalogue.list()


def _open(place: places.PlaceOptions) -> Catalogue:
    from deepera_graph.retrieval.collections.store import Catalogue

    return Catalogue(**place_of(place))


def _describe_all(where: str, found: Sequence[CollectionInfo]) -> Sequence[str]:
    if not found:
        return [f"no libraries in {where}; deepera index makes them"]
    width = max(len(one.name) for one in found)
    return [
        f"{one.name:<{width}}  {count(one.n_passages, 'passage'):>15}  {_describe_mode(one)}"
        for one in found
    ]


def _describe_mode(info: CollectionInfo) -> str:
    made_by = f" with {info.embeddings}" if info.embeddings else ""
    return f"{info.mode}{made_by}" if info.mode else "not made by deepera"


def _describe_one(info: CollectionInfo, sample: MetadataSample) -> Sequence[str]:
    head = f"{info.name}: {count(info.n_passages, 'passage')}, {_describe_mode(info)}"
    if not sample.n_passages:
        return [head]
    whole = sample.n_passages == info.n_passages
    of = "" if whole else f" (of the first {sample.n_passages} passages)"
    return [
        head,
        *_describe_counts(f"sources{of}", sample.sources, {}),
        *_describe_counts(f"metadata{of}", sample.fields, sample.examples),
    ]


def _describe_counts(what: str, counts: dict[str, int], examples: dict[str, Any]) -> Sequence[str]:
    lines = [f"{what}:"] if counts else []
    for name in [*counts][:MOST_SHOWN]:
        example = f"  e.g. {examples[name]!r:.{_EXAMPLE}}" if name in examples else ""
        lines.append(f"  {counts[name]:>7}  {name}{example}")
    if len(counts) > MOST_SHOWN:
        lines.append(f"  and {len(counts) - MOST_SHOWN} more")
    return lines
