"""Measures the size of packages: files, lines, lengths, and how their files import each other.

One column a package. An import counts wherever it stands in a file, within functions too, and so
does a module named in a string in a file that calls `import_module`. What stands under
`TYPE_CHECKING` counts for "imported by one other file" and not for cycles, as it does not run.
A room is a folder directly in the package with all below it, or a loose module.

  python benchmarks/house/size.py
  python benchmarks/house/size.py deepera_graph ../old/deepera_graph
  python benchmarks/house/size.py --list deepera_graph    # names the files behind the counts
"""

import argparse
import ast
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from statistics import median

_FRONT = frozenset({"__init__.py", "__main__.py"})
_Function = ast.FunctionDef | ast.AsyncFunctionDef
Imports = Mapping[str, Set[str]]


@dataclass(frozen=True, slots=True)
class Import:
    """A module that a file may import.

    Attributes:
        target: Its name, or that of something in it.
        runs: Whether it is imported outside of type checking.
        by_string: Whether only a string names it.
    """

    target: str
    runs: bool = True
    by_string: bool = False


@dataclass(frozen=True, slots=True)
class Package:
    """The Python files of a package by module name, parsed."""

    folder: Path
    paths: dict[str, Path]
    sources: dict[str, str]
    trees: dict[str, ast.Module]

    @classmethod
    def read(cls, folder: Path) -> "Package":
        """Read and parse every file of a package."""
        paths = {_module_of(path, folder): path for path in sorted(folder.rglob("*.py"))}
        sources = {name: path.read_text(encoding="utf-8") for name, path in paths.items()}
        trees = {name: ast.parse(source) for name, source in sources.items()}
        return cls(folder, paths, sources, trees)

    def find_imports(self, *, running: bool, by_string: bool = True) -> Imports:
        """Return the modules of this package that each module imports.

        Args:
            running: Leave out those under `TYPE_CHECKING`.
            by_string: Take those that only a string names, too.
        """
        return {
            name: {
                module
                for one in self._imports_of(name)
                if (one.runs or not running) and (by_string or not one.by_string)
                for module in self._resolve(one.target)
                if module != name
            }
            for name in self.trees
        }

    def _imports_of(self, name: str) -> Iterator[Import]:
        tree = self.trees[name]
        yield from _find_imports(tree, name, is_package=self._is_package(name))
        if "import_module" in self.sources[name]:
            texts = (one.value for one in ast.walk(tree) if isinstance(one, ast.Constant))
            named = {text for text in texts if isinstance(text, str) and text in self.paths}
            yield from (Import(text, by_string=True) for text in sorted(named))

    def _is_package(self, name: str) -> bool:
        return self.paths[name].name == "__init__.py"

    def _resolve(self, target: str) -> list[str]:
        """Return the module a dotted name begins with: ``pkg.x`` of ``pkg.x.Name``; or nothing."""
        parts = target.split(".")
        names = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
        return [name for name in names if name in self.paths][:1]


def find_sole_importers(imports: Imports) -> dict[str, str]:
    """Return the modules that exactly one other file imports, each with that file."""
    importers: dict[str, list[str]] = {}
    for name, targets in imports.items():
        for target in targets:
            importers.setdefault(target, []).append(name)
    return {name: found[0] for name, found in sorted(importers.items()) if len(found) == 1}


def find_cycles(imports: Imports) -> list[list[str]]:
    """Return the strongly connected components of two or more modules, largest first.

    Source:
        Kosaraju's algorithm; Cormen et al. (2009), Introduction to Algorithms, 22.5.
    """
    backward: dict[str, set[str]] = {name: set() for name in imports}
    for name, targets in imports.items():
        for target in targets:
            backward[target].add(name)
    seen: set[str] = set()
    finished = [one for name in imports for one in _walk(name, imports, seen)]
    seen = set()
    components = [sorted(_walk(name, backward, seen)) for name in reversed(finished)]
    return sorted((one for one in components if len(one) > 1), key=lambda one: (-len(one), one))


def find_rooms(imports: Imports) -> Imports:
    """Return the rooms that each room imports."""
    rooms: dict[str, set[str]] = {_room_of(name): set() for name in imports}
    for name, targets in imports.items():
        rooms[_room_of(name)].update(map(_room_of, targets))
    return {name: targets - {name} for name, targets in rooms.items()}


def _room_of(name: str) -> str:
    return ".".join(name.split(".")[:2])


def _walk(start: str, graph: Imports, seen: set[str]) -> list[str]:
    """Return what can be reached and was not seen, in the order of leaving."""
    left: list[str] = []
    stack = [(start, False)]
    while stack:
        name, is_done = stack.pop()
        if is_done:
            left.append(name)
        elif name not in seen:
            seen.add(name)
            stack.append((name, True))
            stack.extend((one, False) for one in sorted(graph[name]))
    return left


def _find_imports(
    node: ast.AST, module: str, *, is_package: bool, runs: bool = True
) -> Iterator[Import]:
    """Yield every imported name of a tree: ``pkg.x.y`` for ``from pkg.x import y``."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (Import(alias.name, runs) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            base = _base_of(child, module, is_package=is_package)
            yield from (Import(f"{base}.{alias.name}", runs) for alias in child.names)
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            yield from _find_imports(child, module, is_package=is_package, runs=False)
        else:
            yield from _find_imports(child, module, is_package=is_package, runs=runs)


def _base_of(node: ast.ImportFrom, module: str, *, is_package: bool) -> str:
    """Return the absolute name of what ``from ... import`` names, relative or not."""
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    kept = parts[: len(parts) - node.level + is_package]
    return ".".join([*kept, *filter(None, [node.module])])


def _module_of(path: Path, folder: Path) -> str:
    parts = [folder.name, *path.relative_to(folder).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def measure(folder: Path) -> dict[str, str]:
    """Return the figures of a package, by name."""
    package = Package.read(folder)
    lengths = [len(source.splitlines()) for source in package.sources.values()]
    functions = [
        (node.end_lineno or node.lineno) - node.lineno + 1
        for tree in package.trees.values()
        for node in ast.walk(tree)
        if isinstance(node, _Function)
    ]
    imports = package.find_imports(running=False)
    hidden = package.find_imports(running=False, by_string=False)
    sole = find_sole_importers(imports)
    running = package.find_imports(running=True)
    cycles, circles = find_cycles(running), find_cycles(find_rooms(running))
    per_folder = Counter(path.parent for path in package.paths.values() if path.name not in _FRONT)
    return {
        "files": _number(len(lengths)),
        "lines": _number(sum(lengths)),
        "loose modules": _number(len(find_loose(folder))),
        "folders": _number(len({path.parent for path in package.paths.values()}) - 1),
        "folders of more than 10 modules": _number(sum(n > 10 for n in per_folder.values())),
        "file length, median": _number(median(lengths)),
        "file length, 90th percentile": _number(percentile(lengths, 90)),
        "functions": _number(len(functions)),
        "function length, median": _number(median(functions)),
        "function length, 90th percentile": _number(percentile(functions, 90)),
        "files imported by one other file": _number(len(sole)),
        "lines of those": _number(sum(len(package.sources[name].splitlines()) for name in sole)),
        "imports between files": _number(sum(map(len, imports.values()))),
        "of them by string alone": _number(sum(len(imports[one] - hidden[one]) for one in imports)),
        "cycles of files": _number(len(cycles)),
        "files in cycles": _number(sum(map(len, cycles))),
        "cycles of rooms": _number(len(circles)),
        "rooms in cycles": _number(sum(map(len, circles))),
    }


def find_loose(folder: Path) -> list[Path]:
    """Return the modules that stand directly in a package."""
    return sorted(path for path in folder.glob("*.py") if path.name not in _FRONT)


def percentile(values: Sequence[int], percent: float) -> int:
    """Return the smallest value that *percent* of the values do not exceed (nearest rank)."""
    return sorted(values)[max(0, ceil(len(values) * percent / 100) - 1)]


def list_files(folder: Path) -> Iterator[str]:
    """Yield a line for every loose module, every file with one importer, and every cycle."""
    package = Package.read(folder)
    yield f"{folder}"
    yield from (f"  loose: {path.name}" for path in find_loose(folder))
    for name, importer in find_sole_importers(package.find_imports(running=False)).items():
        yield f"  {name} is imported by {importer} alone"
    running = package.find_imports(running=True)
    yield from _list_cycles("files", running)
    yield from _list_cycles("rooms", find_rooms(running))


def _list_cycles(what: str, imports: Imports) -> Iterator[str]:
    for cycle in find_cycles(imports):
        yield f"  cycle of {len(cycle)} {what}"
        for name in cycle:
            yield f"    {name} imports {', '.join(sorted(imports[name] & set(cycle)))}"


def write_table(names: Sequence[str], columns: Sequence[Mapping[str, str]]) -> str:
    """Return a Markdown table, numbers to the right."""
    rows = [["", *names], *([key, *(column[key] for column in columns)] for key in columns[0])]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join(_write_row(row, widths) for row in [rows[0], rule, *rows[1:]])


def _write_row(cells: Iterable[str], widths: Sequence[int]) -> str:
    first, *rest = zip(cells, widths, strict=True)
    padded = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in rest)]
    return f"| {' | '.join(padded)} |"


def _number(value: float) -> str:
    return f"{value:,g}".replace(",", " ") if value < 1e6 else str(value)


def main() -> None:
    """Read the options, measure, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = Path(__file__).parents[2] / "deepera_graph"
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER", default=[default])
    parser.add_argument("--list", action="store_true", help="name the files behind the counts")
    options = parser.parse_args()
    for folder in options.folders:
        if not (folder / "__init__.py").is_file():
            parser.error(f"{folder} is not a Python package: it has no __init__.py")
    if options.list:
        lines = [line for folder in options.folders for line in list_files(folder.resolve())]
        sys.stdout.write("\n".join(lines) + "\n")
        return
    columns = [measure(folder.resolve()) for folder in options.folders]
    sys.stdout.write(write_table([str(one) for one in options.folders], columns) + "\n")


if __name__ == "__main__":
    main()
