"""`deepera-lab bioasq read` and `deepera-lab bioasq index`: from PubMed's files to a collection."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from deepera_graph.cli.opening.judges import check_engine, count_workers
from deepera_graph.cli.opening.stores import (
    find_collection_folder,
    going_on,
    open_collection,
    place_of,
)
from deepera_graph.cli.shared import options, places
from deepera_graph.cli.shared.bars import progress_bar
from deepera_graph.cli.shared.console import (
    MOST_TOLD,
    OK,
    SOME_FAILED,
    check_input,
    json_bytes,
    may_write,
    say,
    say_some,
    tell_done,
)
from deepera_graph.cli.shared.declaring import arg, opt
from deepera_graph.errors import SettingsError
from deepera_graph.lab.cli.running import check_resume
from deepera_graph.text.plain import count

if TYPE_CHECKING:
    from deepera_graph.bioasq.pubmed.corpus import CorpusProgress, CorpusReport
    from deepera_graph.bioasq.pubmed.index import IndexReport
    from deepera_graph.retrieval.collections.passage_store import PassageStore

_BATCHES_A_WORKER = 3
_store = partial(opt, panel="Store")


@dataclass(frozen=True, kw_only=True)
class CorpusFileOptions:
    """Where the corpus goes."""

    out: Path = opt(
        "Where the corpus goes, as JSON lines; compressed if it ends in .gz.",
        "--out",
        "-o",
        metavar="OUT",
        needed=True,
    )
    report: Path | None = opt(
        "Write what became of all records, by cause, as JSON.", metavar="FILE"
    )
    resume: bool = opt("Add files to a corpus that was read before.", default=False)
    overwrite: bool = opt("Replace OUT, and forget what was read.", default=False)


@dataclass(frozen=True, kw_only=True)
class CorpusOutputOptions(options.OutputOptions):
    """What is reported."""

    verbose: bool = opt(
        "Name every broken record, the first 100 of each file.", "--verbose", "-v", default=False
    )


def read(
    pubmed: Annotated[list[Path], arg("PUBMED...", "Files .xml or .xml.gz, or folders of them.")],
    *,
    files: CorpusFileOptions,
    output: CorpusOutputOptions,
) -> None:
    """Read PubMed's files, and write the records that are left as a corpus."""
    check_resume(resume=files.resume, overwrite=files.overwrite)
    report_to = files.report
    if report_to is not None and not (
        report_to.absolute().parent.is_dir() and may_write(report_to)
    ):
        raise SettingsError(f"--report must be a file that can be written, got {str(report_to)!r}")
    from deepera_graph.bioasq.pubmed.corpus import write_corpus

    with progress_bar("reading", hidden=output.quiet) as bar:

        def watch(step: CorpusProgress) -> None:
            bar.move(to=step.n_bytes, total=step.n_bytes_in_all, count=step.n_records)

        more = ["--resume"] if files.out.exists() else []
        with going_on(lambda: "files that were read whole are not read again", *more):
            report = write_corpus(
                pubmed, files.out, resume=files.resume, overwrite=files.overwrite, on_progress=watch
            )
    if files.report is not None:
        files.report.write_bytes(json_bytes(report.to_dict()))
    _tell_problems(report, verbose=output.verbose)
    tell_done(output, report.to_dict(), lambda: _describe(report, files.out))
    raise typer.Exit(SOME_FAILED if report.problems else OK)


def _tell_problems(report: CorpusReport, *, verbose: bool) -> None:
    """Say on stderr what is wrong with files, and with the first records."""
    told = report.bad_records if verbose else report.bad_records[:MOST_TOLD]
    for one in [*report.bad_files, *told]:
        say(str(one))
    n_more = sum(report.broken.values()) - len(told)
    if n_more > 0:
        say(f"{count(n_more, 'more broken record')}; -v or --report names them")


def _describe(report: CorpusReport, out: Path) -> str:
    before = f", {report.files_before} of them before" if report.files_before else ""
    left_out = {
        "without abstract": report.without_abstract,
        "books": report.books,
        "deleted": report.deleted,
        "replaced by later ones": report.replaced,
        **{f"broken ({fault})": n for fault, n in report.broken.items()},
    }
    lines = [
        f"{count(report.kept, 'record')} in {out} ({report.retracted} of them retracted), "
        f"from {count(report.files, 'file')}{before}",
        *(f"  {n:>9} {what}" for what, n in left_out.items() if n),
    ]
    return "\n".join(lines)


@dataclass(frozen=True, kw_only=True)
class CorpusStoreOptions(places.StoreOptions):
    """Where passages go, and how they are kept."""

    mode: Literal["sparse", "dense", "hybrid"] | None = _store(
        "[b]sparse[/b] finds passages by their words, [b]dense[/b] by meaning, [b]hybrid[/b] by "
        "both. With [b]sparse[/b] nothing is embedded.",
        "--search",
        "--mode",
        metavar="HOW",
        shown="hybrid; an existing library keeps its own",
    )
    int8: bool = _store(
        "With --qdrant-url: keep vectors of one byte a dimension in memory, a quarter, and the "
        "whole ones on the server's disk, from which the best are scored again.",
        default=False,
    )
    batch_size: int = opt(
        "Records embedded and written at once.", metavar="N", default=256, least=1
    )
    prune: bool = opt("Remove passages that CORPUS does not have.", default=False)


def index(
    corpus: Annotated[Path, arg("CORPUS", "What `read` has written.")],
    *,
    store: CorpusStoreOptions,
    engine: options.EngineOptions,
    output: options.OutputOptions,
) -> None:
    """Put a corpus into a collection, one passage a record."""
    _check_corpus(corpus)
    if store.int8 and store.qdrant_url is None:
        raise SettingsError("--int8 goes with --qdrant-url: a local collection is not compressed")
    if engine.engine == "ray" and store.mode == "sparse":
        raise SettingsError("--engine ray embeds, and --mode sparse embeds nothing")
    check_engine(engine)
    with (
        _open(store) as opened,
        going_on(lambda: f"the collection holds {count(opened.count(), 'passage')}"),
    ):
        try:
            report = _fill(corpus, opened, store, engine, quiet=output.quiet)
        except BaseException:
            opened.drop_if_new()
            raise
        n_in_all, mode = opened.count(), opened.mode
        embeddings = opened.embeddings_name
    say_some([f"skipped {one}" for one in report.skipped], "skipped {} more", report.n_skipped)
    plain = {"collection": store.library, "mode": mode, "embeddings": embeddings}
    tell_done(
        output,
        {**plain, "in_collection": n_in_all, **report.to_dict()},
        lambda: _describe_index(report, str(store.library), mode, n_in_all),
    )
    raise typer.Exit(SOME_FAILED if report.n_skipped else OK)


def _check_corpus(corpus: Path) -> None:
    """Raise `SettingsError` for what is no file, or one that `read` is for."""
    if corpus.is_dir() or corpus.name.endswith((".xml", ".xml.gz")):
        what = "is a folder" if corpus.is_dir() else "is a file of PubMed's"
        raise SettingsError(
            f"{str(corpus)!r} {what}, and CORPUS a file that deepera-lab bioasq read has made"
        )
    check_input(corpus)


def _open(store: CorpusStoreOptions) -> PassageStore:
    """Open the collection; a new one has the local judge's embeddings, unless others are named."""
    if store.embeddings is None and store.mode != "sparse" and not _exists(store):
        store = replace(store, embeddings="local")
    return open_collection(store, mode=store.mode, must_exist=False)


def _exists(store: CorpusStoreOptions) -> bool:
    if store.qdrant_url is None:
        return find_collection_folder(store) is not None
    from deepera_graph.retrieval.collections.connection import connect, describe_place, wrap_errors

    place = place_of(store)
    with wrap_errors(describe_place(None, store.qdrant_url)):
        client = connect(None, store.qdrant_url, api_key=place["api_key"], must_exist=False)
        with closing(client):
            return client.collection_exists(store.library or "")


def _fill(
    corpus: Path,
    opened: PassageStore,
    store: CorpusStoreOptions,
    engine: options.EngineOptions,
    *,
    quiet: bool,
) -> IndexReport:
    """Index the corpus; a server builds its graph of vectors once, when all are there."""
    from deepera_graph.bioasq.pubmed.index import index_corpus

    if store.int8:
        opened.compress()
    if opened.is_on_server and opened.is_new:
        opened.defer_links()
    with _embedding(engine, opened) as how, progress_bar("indexing", hidden=quiet) as bar:

        def watch(n: int, n_bytes: int, n_bytes_in_all: int) -> None:
            bar.move(to=n_bytes, total=n_bytes_in_all, count=n)

        report = index_corpus(
            corpus, opened, batch_size=store.batch_size, prune=store.prune, on_progress=watch, **how
        )
    if opened.is_on_server:
        opened.build_links()
    return report


@contextmanager
def _embedding(engine: options.EngineOptions, opened: PassageStore) -> Iterator[dict[str, Any]]:
    """Give who embeds: workers on Ray, or nobody but this process."""
    own = opened.vectorstore.embeddings
    if engine.engine == "local" or own is None:
        yield {}
        return
    from deepera_graph.bioasq.pubmed.index import EmbeddingWork
    from deepera_graph.jobs.ray import RayEngine

    n_workers = count_workers(engine)
    work = EmbeddingWork(pickle.dumps(own))
    with RayEngine(work, n_workers=n_workers, address=engine.ray_address) as workers:
        yield {"embed": workers.start, "ahead": _BATCHES_A_WORKER * n_workers}


def _describe_index(report: IndexReport, collection: str, mode: str, n_in_all: int) -> str:
    parts = {
        "indexed": report.indexed,
        "with new metadata alone": report.updated,
        "there before": report.unchanged,
        "removed": report.removed,
    }
    done = ", ".join(f"{n} {what}" for what, n in parts.items() if n or what == "indexed")
    cut = (
        f"; {count(report.truncated, 'passage')} cut at {report.max_tokens} tokens "
        f"({report.cut_tokens} tokens left out)"
        if report.truncated
        else ""
    )
    return f"{collection!r} ({mode}): {done}{cut}; it holds {count(n_in_all, 'passage')} now"
