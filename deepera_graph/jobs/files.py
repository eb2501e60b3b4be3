"""What `deepera rerank` writes: output lines, and the manifest from which a run is resumed."""

import json
import re
from collections.abc import Iterator, Mapping, Set
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

from deepera_graph.agents.journal import find_differences
from deepera_graph.agents.run import versions
from deepera_graph.errors import InputError, SettingsError
from deepera_graph.export import describe_result
from deepera_graph.jobs.lines import BadLine, DoneLine, QuestionLine, QuestionStats, hash_line
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.result import RerankResult
from deepera_graph.text.jsonl import RawLine, format_json, parse_object, replacing, writing_alone


def to_output_line(line: QuestionLine, result: RerankResult) -> bytes:
    """Return one line of JSON in UTF-8, with its line feed; equal judgements give equal bytes."""
    # A lone surrogate, which UTF-8 has no bytes for, is written as its JSON escape, and so is what
    # a terminal obeys.
    fields = {"id": line.id, **describe_result(result)}
    if line.metadata:
        fields["metadata"] = line.metadata
    text = format_json(fields, indent=None, allow_nan=False)
    return text.encode("utf-8", "backslashreplace")


_SECRET_PARTS_OF_URL = re.compile(r"(?<=://)[^/@\s]*@|\?\S*")


def describe_run(reranker: EvidenceReranker) -> dict[str, Any]:
    """Return backend, model, prompts, settings and versions, as JSON values without secrets."""
    # A backend made from live objects cannot be told from others: a `SettingsError`.
    backend = reranker.backend
    run = {
        "backend": backend.name,
        **backend.about,
        "spec": _remove_secrets(backend.fingerprint()["spec"]),
        "settings": reranker.effective_settings.to_dict(),
        "versions": dict(versions()),
    }
    plain: dict[str, Any] = json.loads(json.dumps(run, default=str))
    return plain


def _remove_secrets(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _remove_secrets(part) for key, part in value.items()}
    if isinstance(value, str) and "://" in value:
        return _SECRET_PARTS_OF_URL.sub("", value)
    return value


class PlainOutput:
    """Output lines without a manifest, for stdout and devices; None drops them."""

    manifest: dict[str, Any] | None = None

    def __init__(self, out: IO[bytes] | None) -> None:
        self._out = out

    def find_done(self, line: RawLine) -> None:
        """Know of no line that is done."""

    def add(self, line: QuestionLine, data: bytes, stats: QuestionStats) -> None:
        """Write an output line, and hand it over at once."""
        if self._out is not None:
            self._out.write(data)
            self._out.flush()

    def add_bad(self, line: BadLine) -> None:
        """Write nothing."""

    def finish(self) -> None:
        """Miss nothing."""


_FORMAT = 2
_BUDGET_STOP = "budget_stop"  # a question that another run may do better


class _Place(NamedTuple):
    """Where a line's entry begins in the manifest; where its output line is, and its size."""

    entry: int
    start: int = 0
    size: int = 0


class ResumableOutput:
    """Output lines and a manifest of what is done beside them; use it in a `with` block.

    Both files are only added to. An entry of the manifest names a line of the input, and its output
    line, by their hashes, so that a resume finds them in any order; a resume that filled gaps puts
    the output in the order of the input at its end. No file is touched before there is a line to
    write.

    Entering raises a `SettingsError` if *out* is to be resumed but is not of *run*, which is what
    `describe_run` says, or was changed since, or is being written.
    """

    def __init__(
        self, out: Path, manifest: Path, run: Mapping[str, Any], *, resume: bool, overwrite: bool
    ) -> None:
        self._out, self._path, self._run = out, manifest, run
        self._resumes = resume and out.exists() and out.stat().st_size > 0
        self._may_replace = resume or overwrite
        self._lock = ExitStack()
        self._places: dict[int, _Place] = {}
        self._n_done = self._n_met = 0
        self._end_of_out = self._end_of_manifest = 0
        self._earlier: IO[bytes] | None = None
        self._files: tuple[IO[bytes], IO[bytes]] | None = None

    def __enter__(self) -> Self:
        if self._resumes:
            self._lock.enter_context(writing_alone(self._out))
            try:
                self._load()
            except BaseException:
                self._close()
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        """Close all files; if all went well, even an empty output is there."""
        try:
            if kind is None and not self._resumes:
                self._begin()
            if self._resumes and (kind is None or self._files is not None):
                self._close_files()
                self._put_in_order()
        finally:
            self._close()

    @property
    def manifest(self) -> dict[str, Any]:
        """What ran, as the report has it."""
        return {name: value for name, value in self._run.items() if name != "spec"}

    def find_done(self, line: RawLine) -> DoneLine | None:
        """Return a line as done, if it is; a bad line that was mended is not."""
        place = self._places.get(line.number)
        if place is None or self._earlier is None:
            return None
        self._n_met += 1
        self._earlier.seek(place.entry)
        entry = json.loads(self._earlier.readline())
        if entry["digest"] == hash_line(line.text):
            return DoneLine(line.number, line.end, entry["id"], entry["stats"], entry["error"])
        if entry["stats"] is None:
            del self._places[line.number]
            return None
        raise SettingsError(
            f"line {line.number} is not the one that {str(self._out)!r} was made from; "
            "lines may be added at the end, but those that are done must stay as they are"
        )

    def add(self, line: QuestionLine, data: bytes, stats: QuestionStats) -> None:
        """Write an output line."""
        self._append(line, data, {"output": _hash(data), "stats": stats, "error": ""})

    def add_bad(self, line: BadLine) -> None:
        """Note a line that has no output line."""
        self._append(line, b"", {"output": "", "stats": None, "error": line.error})

    def finish(self) -> None:
        """Raise `SettingsError` unless every line that was done has been met again."""
        if self._n_met < self._n_done:
            raise SettingsError(
                f"{str(self._out)!r} was made from more lines than there are now "
                f"({self._n_done}, found {self._n_met}); is the input, or --limit, shorter?"
            )

    def _load(self) -> None:
        """Match the lines of the output with the entries of the manifest."""
        try:
            self._earlier = self._path.open("rb")
        except FileNotFoundError as error:
            message = f"nothing to go on from: no manifest {str(self._path)!r}"
            raise SettingsError(message) from error
        latest: dict[int, tuple[int, str]] = {}  # where a line's entry begins, and its output
        known = set[str]()
        for start, entry in self._read_entries(self._earlier):
            known.add(entry["output"])
            latest[entry["line"]] = (start, entry["output"])
            if entry["stats"] and entry["stats"]["outcome"] == _BUDGET_STOP:
                del latest[entry["line"]]
        self._places = {n: _Place(start) for n, (start, output) in latest.items() if not output}
        strangers = self._find_outputs(latest, known)
        self._n_done = len(self._places)
        if strangers:
            missing = [start for n, (start, _) in latest.items() if n not in self._places]
            self._refuse_changed(self._earlier, missing, strangers)

    def _read_entries(self, manifest: IO[bytes]) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield every entry and where it begins, if the manifest is of such a run."""
        try:
            head = json.loads(manifest.readline())
            found = find_differences(head["ran"], self._run)
            if head["format"] != _FORMAT:
                raise ValueError
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise SettingsError(
                f"{str(self._path)!r} is not a manifest that can be read"
            ) from error
        if found:
            raise SettingsError(f"{str(self._out)!r} cannot be continued: {'; '.join(found)}")
        self._end_of_manifest = manifest.tell()
        for start, text in _read_whole_lines(manifest):
            try:
                entry = json.loads(text)
            except ValueError as error:
                raise SettingsError(f"{str(self._path)!r} is damaged at byte {start}") from error
            self._end_of_manifest = start + len(text)
            yield start, entry

    def _find_outputs(self, latest: Mapping[int, tuple[int, str]], known: Set[str]) -> set[Any]:
        """Find where the output line of every entry is; return the ids of lines of no entry."""
        numbers = {output: number for number, (_, output) in latest.items() if output}
        strangers = set()
        with self._out.open("rb") as out:
            for start, text in _read_whole_lines(out):
                output = _hash(text)
                if output in numbers:
                    number = numbers[output]
                    self._places[number] = _Place(latest[number][0], start, len(text))
                elif output not in known:
                    strangers.add(_read_id(text))
        return strangers

    def _refuse_changed(self, manifest: IO[bytes], missing: list[int], strangers: set[Any]) -> None:
        """Refuse an output in which a line that is done reads otherwise now."""
        for start in missing:
            manifest.seek(start)
            name = json.loads(manifest.readline())["id"]
            if name in strangers or None in strangers:
                raise SettingsError(
                    f"{str(self._out)!r} was changed since: it has another line for {name!r}; "
                    "without that line it can be continued"
                )

    def _begin(self) -> tuple[IO[bytes], IO[bytes]]:
        """Open both files for adding; cut torn last lines, or what is to be replaced."""
        if self._files is not None:
            return self._files
        if self._resumes:
            self._put_in_order()
        else:
            self._lock.enter_context(writing_alone(self._out))
        exists = self._may_replace and self._out.exists()
        out = self._out.open("r+b" if exists else "xb")
        manifest = self._path.open("r+b" if self._resumes else "wb")
        self._files = out, manifest
        for file, end in ((out, self._end_of_out), (manifest, self._end_of_manifest)):
            file.truncate(end)
            file.seek(end)
        if not self._resumes:
            _add_line(manifest, _to_json({"format": _FORMAT, "ran": self._run}))
        return self._files

    def _append(self, line: QuestionLine | BadLine, data: bytes, entry: dict[str, Any]) -> None:
        out, manifest = self._begin()
        names = {"line": line.number, "id": line.id, "digest": line.digest}
        if self._resumes:
            self._places[line.number] = _Place(0, out.tell(), len(data))
        _add_line(manifest, _to_json({**names, **entry}))
        _add_line(out, data)

    def _put_in_order(self) -> None:
        """Write the output anew, if its lines are not in order, or not all of them are needed."""
        lines = [(number, place) for number, place in sorted(self._places.items()) if place.size]
        starts = [place.start for _, place in lines]
        self._end_of_out = sum(place.size for _, place in lines)
        if starts == sorted(starts) and self._end_of_out == self._out.stat().st_size:
            return
        with replacing(self._out) as new, self._out.open("rb") as out:
            for number, place in lines:
                self._places[number] = place._replace(start=new.tell())
                out.seek(place.start)
                new.write(out.read(place.size))

    def _close_files(self) -> None:
        for file in (self._earlier, *(self._files or ())):
            if file is not None:
                file.close()

    def _close(self) -> None:
        self._close_files()
        self._lock.close()


def _read_whole_lines(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield lines with where they begin, up to a torn last one."""
    start = file.tell()
    while (text := file.readline()).endswith(b"\n"):
        yield start, text
        start += len(text)


def _add_line(file: IO[bytes], data: bytes) -> None:
    """Add to a file, and hand it over to the system."""
    file.write(data)
    file.flush()


def _read_id(text: bytes) -> Any:
    """Return the id of an output line; None if it cannot be read."""
    try:
        return parse_object(text).get("id")
    except InputError:
        return None


def _to_json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def _hash(data: bytes) -> str:
    return sha256(data).hexdigest()[:16]
