"""`deepera library`: listing, describing, renaming and deleting libraries."""

from __future__ import annotations

import glob
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deepera_graph.cli.opening.stores import (
    data_folder,
    find_collection_folder,
    find_papers,
    list_papers,
    neighbours_of,
    open_collection,
    place_of,
    store_of,
)
from deepera_graph.cli.shared import options, places
from deepera_graph.cli.shared.console import tell, tell_done
from deepera_graph.cli.shared.declaring import arg, opt
from deepera_graph.errors import SettingsError
from deepera_graph.retrieval import CollectionInfo, read_catalogue
from deepera_graph.text.plain import count

if TYPE_CHECKING:
    from deepera_graph.retrieval.collections.store import Catalogue, MetadataSample

MOST_SHOWN = 40
_EXAMPLE = 50  # characters
Name = Annotated[str, arg("NAME", "The library.")]


@dataclass(frozen=True, kw_only=True)
class DeleteOptions:
    """Whether to ask before."""

    yes: bool = opt("Do not ask before.", "--yes", "-y", default=False)


def list(*, place: places.PlaceOptions, output: options.OutputOptions) -> None:
    """List the libraries."""
    where, found = _list(place)
    alone = {name: _count_papers(file) for name, file in _list_alone(place, found).items()}
    papers = [_describe_papers(name, n) for name, n in alone.items()]
    tell(
        output,
        {"place": where, "libraries": [*map(asdict, found), *papers]},
        lambda: "\n".join(_describe_all(where, found, alone)),
    )


def show(name: Name, *, place: places.PlaceOptions, output: options.OutputOptions) -> None:
    """Say what a library holds, and which metadata its passages have."""
    if (n := _find_papers_alone(place, name)) is not None:
        tell(
            output,
            _describe_papers(name, n),
            lambda: f"{name}: {count(n, 'paper')} without passages",
        )
        return
    with _open(place) as catalogue:
        info, sample = catalogue.describe(name), catalogue.sample(name)
    tell(
        output,
        {**asdict(info), "sample": asdict(sample)},
        lambda: "\n".join(_describe_one(info, sample)),
    )


def rename(
    name: Name,
    to: Annotated[str, arg("NEW", "Its new name.")],
    *,
    place: places.PlaceOptions,
    output: options.OutputOptions,
) -> None:
    """Give a library another name."""
    n_passages, n_papers = 0, _find_papers_alone(place, name)
    if n_papers is None:
        with _open(place) as catalogue:
            n_passages = catalogue.rename(name, to)
        held = count(n_passages, "passage")
    else:
        held = count(n_papers, "paper")
        if not to or to in {*list_papers(place), *(one.name for one in _list(place)[1])}:
            problem = "exists already" if to else "is no name"
            raise SettingsError(f"{name!r} cannot be renamed: {to!r} {problem}")
    _move_rest(place, name, to)
    tell_done(
        output,
        {"renamed": name, "to": to, "n_passages": n_passages},
        lambda: f"{name!r} is {to!r} now ({held})",
    )


def delete(
    name: Name,
    *,
    place: places.PlaceOptions,
    asking: DeleteOptions,
    output: options.OutputOptions,
) -> None:
    """Delete a library with its passages and papers."""
    n_papers = _find_papers_alone(place, name)
    with ExitStack() as open_:
        catalogue = open_.enter_context(_open(place)) if n_papers is None else None
        n_deleted = catalogue.describe(name).n_passages if catalogue else 0
        held = count(n_deleted, "passage") if catalogue else count(n_papers or 0, "paper")
        if not asking.yes:
            typer.confirm(f"Delete {name!r} with its {held}?", abort=True, err=True)
        if catalogue:
            n_deleted = catalogue.delete(name)
    _move_rest(place, name, None)
    tell_done(
        output, {"deleted": name, "n_passages": n_deleted}, lambda: f"{name!r} deleted ({held})"
    )


def move(
    name: Name,
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
    if not place.qdrant_url and place.path != ":memory:":
        folder = Path(place.path or data_folder())
        if not place.path and not (folder / "meta.json").is_file():
            return f"the folder {str(folder)!r}", []
        if (found := read_catalogue(folder)) is not None:
            return f"the folder {str(folder)!r}", found
    with _open(place) as catalogue:
        return catalogue.place, catalogue.list()


def _list_alone(place: places.PlaceOptions, found: Sequence[CollectionInfo]) -> dict[str, str]:
    """Return the files of papers of the libraries without passages, by their names."""
    known = {one.name for one in found}
    return {name: file for name, file in list_papers(place).items() if name not in known}


def _count_papers(file: str) -> int:
    from deepera_graph.papers.library import count_papers
    from deepera_graph.stores.sqlite import connect_reader

    with closing(connect_reader(Path(file))) as db:
        return count_papers(db)


def _describe_papers(name: str, n: int) -> dict[str, Any]:
    info = CollectionInfo(name=name, n_passages=0, mode="", embeddings="")
    return {**asdict(info), "n_papers": n}


def _find_papers_alone(place: places.PlaceOptions, name: str) -> int | None:
    """Return how many papers a library without passages has; None for any other name."""
    if name not in list_papers(place):
        return None
    file = _list_alone(place, _list(place)[1]).get(name)
    return None if file is None else _count_papers(file)


def _open(place: places.PlaceOptions) -> Catalogue:
    from deepera_graph.retrieval.collections.store import Catalogue

    return Catalogue(**place_of(place))


def _describe_all(
    where: str, found: Sequence[CollectionInfo], alone: Mapping[str, int]
) -> Sequence[str]:
    if not found and not alone:
        return [f"no libraries in {where}; deepera index makes them"]
    width = max(map(len, (*(one.name for one in found), *alone)))
    rows = [(one.name, count(one.n_passages, "passage"), _describe_mode(one)) for one in found]
    rows += [(name, count(n, "paper"), "without passages") for name, n in alone.items()]
    return [f"{name:<{width}}  {held:>15}  {how}" for name, held, how in rows]


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
