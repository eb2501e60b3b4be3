"""What is wrong with a base of papers, and what to do about it: lines of `deepera doctor`."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from deepera_graph.doctor.checks import Finding
from deepera_graph.errors import DeepEraError
from deepera_graph.judges.embeddings import LOCAL, EvidenceEmbeddings
from deepera_graph.papers.base import PaperBase
from deepera_graph.papers.library import PAPERS, PaperFile, describe_file, read_about
from deepera_graph.papers.library.vectors import (
    VectorsInfo,
    check_embeddings,
    open_rows,
    vectors_path,
)
from deepera_graph.papers.library.vectors_kept import open_server

BASE, SERVER = "base of papers", "server of papers"
VECTORS, VECTORS_SERVER = "vectors of papers", "server of vectors"
_TIMEOUT = 10.0


def check_base(base: str) -> Iterator[Finding]:
    """Yield findings on a base: whether it can be read, what it holds, whether its vectors fit."""
    if base.startswith(("http://", "https://")):
        yield _check_address(base)
        return
    try:
        with closing(PaperFile(base)) as file, file.reading() as db:
            about, vectors = dict(describe_file(db)), read_about(db, "vectors")
    except DeepEraError as error:
        yield Finding(
            BASE, "fail", str(error), "deepera papers build FILES --library FILE makes one"
        )
        return
    found = f"{_counted(about)} in {base} (format {PAPERS.form})"
    if about["unfinished"]:
        names = ", ".join(about["unfinished"])
        advice = "run the same deepera papers build again, which goes on"
        yield Finding(BASE, "warn", f"{found}, not read to the end of {names}", advice)
    else:
        yield Finding(BASE, "ok", found)
    if vectors:
        yield _check_vectors(Path(base), VectorsInfo.from_json(vectors), about)
    else:
        advice = f"deepera papers build --library {base} --embeddings local makes them"
        yield Finding(VECTORS, "skipped", "none: the base is searched by words", advice)


def _check_address(url: str) -> Finding:
    try:
        with PaperBase.connect(url, timeout=_TIMEOUT) as base:
            return Finding(SERVER, "ok", f"{_counted(base.describe())} at {url}")
    except DeepEraError as error:
        return Finding(SERVER, "fail", str(error), "see whether deepera papers serve runs there")


def _counted(about: dict[str, Any]) -> str:
    return f"{about['papers']} papers, {about['references']} references"


def _check_vectors(path: Path, info: VectorsInfo, about: dict[str, Any]) -> Finding:
    name = VECTORS_SERVER if info.url else VECTORS
    try:
        if info.url:
            open_server(info, about["vectors"]).close()
        else:
            open_rows(vectors_path(path), info)
        if info.embeddings == LOCAL:
            check_embeddings(info, EvidenceEmbeddings(), str(path))
    except DeepEraError as error:
        advice = "build the base again with its embeddings; words are searched without vectors"
        return Finding(name, "fail", str(error), advice)
    found = f"{about['vectors']} by {info.embeddings}, {info.dimensions} dimensions"
    found += f", on {info.url}" if info.url else ""
    if missing := about["papers"] - about["vectors"]:
        advice = f"deepera papers build --library {path} with the same --embeddings makes them"
        return Finding(name, "warn", f"{found}; {missing} papers have none", advice)
    return Finding(name, "ok", found)
