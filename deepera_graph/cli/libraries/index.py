"""`deepera index` and `library remove`: what libraries hold of files."""

from __future__ import annotations

import builtins
import shlex
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from deepera_graph.cli.libraries.library import DeleteOptions, Name
from deepera_graph.cli.opening.neighbours import drop_neighbours, find_neighbours
from deepera_graph.cli.opening.sources import PassageSource, batches
from deepera_graph.cli.opening.stores import (
    find_papers,
    keep_embedded,
    keep_with,
    mark_of,
    open_collection,
    store_of,
)
from deepera_graph.cli.shared import options, places
from deepera_graph.cli.shared.console import say, tell_done
from deepera_graph.cli.shared.declaring import arg, opt
from deepera_graph.errors import SettingsError
from deepera_graph.text.plain import count

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepera_graph.papers.library.building import NamedPapers
    from deepera_graph.papers.library.writing import Writer
    from deepera_graph.retrieval.collections.passage_store import PassageStore

DAILY = {
    "index": (
        "library", "path", "qdrant_url", "mode", "embeddings", "neighbours", "max_words",
        "verbose", "as_json", "quiet",
    ),
}  # fmt: skip
_store = partial(opt, panel="Store")
_MOST_MISSING = 12  # files, named in a command


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
        read.compare(opened)
        file.parent.mkdir(parents=True, exist_ok=True)
        mark = mark_of(store, store.library or "")
        mark.touch()
        n_indexed = _fill(opened, read, store, keep, mark, quiet=output.quiet)
        writer = open_.enter_context(Writer(file, merge="titles"))
        known = noted.papers.ids()
        noted.papers.put(writer)
        n_removed = _remove(opened, read.list_stale(), writer, known)
        if (own := opened.vectorstore.embeddings) is not None:
            embed_papers(writer, own)
        n_papers = count_papers(writer.db)
        n_in_all, mode = opened.count(), opened.mode
        graph = find_neighbours(
            opened,
            store,
            store.library or "",
            wanted=store.neighbours,
            by=store.neighbours_by,
            quiet=output.quiet,
        )
    mark.unlink(missing_ok=True)
    read.tell()
    if missing := read.list_missing():
        say(_describe_missing(store.library or "", missing))
    plain: dict[str, Any] = {
        "mode": mode,
        "indexed": n_indexed,
        "replaced": read.replaced.total(),
        "removed": n_removed,
        "missing": missing,
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
            f"{count(n_indexed, 'passage')} indexed in {store.library!r} ({mode})"
            + (f", {n_removed} removed that the source has no more; " if n_removed else "; ")
            + f"it holds {n_in_all} now{of_papers}{read.describe_files()}"
            + (
                f"; {count(graph.k, 'neighbour')} of each by {graph.kind}"
                if graph is not None
                else ""
            )
        ),
    )
    raise typer.Exit(read.exit_code)


def _fill(
    opened: PassageStore,
    read: PassageSource,
    store: NewStoreOptions,
    keep: places.KeepOptions,
    mark: Path,
    *,
    quiet: bool,
) -> int:
    """Index all passages; of a break say how to go on."""
    how = batches(opened.embeddings_name)
    embedded = keep_embedded(opened, keep)
    try:
        return read.fill(opened, quiet=quiet, embedded=embedded, files=read.origins, **how)
    except BaseException as error:
        n_kept = opened.count()
        opened.drop_if_new()
        if not n_kept:
            mark.unlink(missing_ok=True)
        if isinstance(error, KeyboardInterrupt) and n_kept:
            kept = f"{store.library!r} holds {count(n_kept, 'passage')}"
            say(f"{kept}; the same command again adds the rest")
        raise


def _remove(
    opened: PassageStore, ids: Sequence[str], writer: Writer | None, noted: Iterable[str] = ()
) -> int:
    """Remove passages, and the papers that no other passage names; return how many passages."""
    from deepera_graph.papers.library.building import remove_papers

    gone = opened.fetch(ids)
    opened.remove(ids)
    if gone and writer is not None:
        remove_papers(writer, gone, (one.passage for one in opened.scan()), noted)
    return len(gone)


def _describe_missing(library: str, missing: Sequence[str]) -> str:
    names = shlex.join(missing[:_MOST_MISSING])
    one = len(missing) == 1
    are, it = ("file is", "it") if one else ("files are", "them")
    more = f" and {len(missing) - _MOST_MISSING} more" if len(missing) > _MOST_MISSING else ""
    return (
        f"{len(missing)} {are} gone from the source; {library!r} still has what was indexed of "
        f"{it}; to remove {it}: deepera library remove {shlex.quote(library)} {names}{more}"
    )


def remove(
    name: Name,
    source: Annotated[
        builtins.list[str],
        arg("SOURCE", "Files or folders, there or gone, or ids of passages."),
    ],
    *,
    place: places.PlaceOptions,
    asking: DeleteOptions,
    output: options.OutputOptions,
) -> None:
    """Remove from a library what was indexed of files, or passages by their ids."""
    from deepera_graph.papers.library.writing import Writer
    from deepera_graph.retrieval.kept_files import KeptFiles

    file = Path(find_papers(place, name))
    with (
        open_collection(store_of(place, name), must_exist=True, to_search=False) as opened,
        ExitStack() as open_,
    ):
        held = KeptFiles(opened.scan_files())
        found = [(one, held.list_passages(one)) for one in source]
        if unknown := [one for one, ids in found if not ids]:
            raise SettingsError(
                f"{name!r} has nothing of {', '.join(map(repr, unknown))}; deepera library show "
                f"{shlex.quote(name)} lists its sources"
            )
        ids = [*dict.fromkeys(id for _, ids in found for id in ids)]
        if not asking.yes:
            what = count(len(ids), "passage")
            typer.confirm(f"Remove {what} from {name!r}?", abort=True, err=True)
        writer = open_.enter_context(Writer(file)) if file.is_file() else None
        n_removed = _remove(opened, ids, writer)
        drop_neighbours(opened, place, name)
        n_left = opened.count()
    tell_done(
        output,
        {"library": name, "removed": n_removed, "passages": n_left},
        lambda: f"{count(n_removed, 'passage')} removed; {name!r} holds {n_left} now",
    )
