"""From the options of a command to what it works with: judge, settings, cache, store, engine."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from functools import partial
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import typer

from deepera_graph.budget import Budget
from deepera_graph.cli import options
from deepera_graph.cli.console import MOST_TOLD, OK, SOME_FAILED, progress_bar, say
from deepera_graph.errors import MissingStoreError, SettingsError, StoreError
from deepera_graph.judges import NAMED, load_backend, parse_name
from deepera_graph.packages import call_foreign
from deepera_graph.settings import Preset, Settings, check_at_least, preset, suggest_value
from deepera_graph.thresholds import check_share

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings

    from deepera_graph.cache.store import JudgementCache
    from deepera_graph.jobs.ray import RayEngine
    from deepera_graph.multihop.graph import NeighbourGraph
    from deepera_graph.reranker import EvidenceReranker
    from deepera_graph.retrieval.collection import Mode
    from deepera_graph.retrieval.skipped import Skipped, SkippedKind
    from deepera_graph.retrieval.store import PassageStore
    from deepera_graph.retrieval.word_index import WordIndex
    from deepera_graph.schema import Backend
    from deepera_graph.thresholds import PerIntent, Threshold

T = TypeVar("T")
NO_PRESET = Preset(name="", about="")
_NAMES = (*NAMED, "llm", "encoder:MODEL")
_PLAIN_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,39}")
_KEY_VARIABLE = "OPENAI_API_KEY"
_SERVER_KEY_VARIABLE = "QDRANT_API_KEY"
_SENTENCES = "sentence-transformers"
_LOCAL_EMBEDDINGS = "langchain_deepera:EvidenceEmbeddings"
_NEIGHBOURS = "neighbours"
_WAIT = 2.0  # seconds that a server may need for a search, before it lets go of a folder
_MOST_KEPT = 1000  # records that could not be used
_MAX_WORKERS = 16  # as many calls as are in flight by default
_THRESHOLDS = "a number from 0 to 1, gap[:FLOOR], quantile:SHARE[:FLOOR] or KIND=T,...,default=T"


def judge_kind(judge: options.JudgeOptions) -> str:
    """Return ``local``, ``llm``, ``encoder`` or ``factory``."""
    for_llm = [name for name in options.given(judge) if name not in options.FOR_ALL_JUDGES]
    name = judge.backend or ("llm" if for_llm else "local")
    if name == "llm":
        if not judge.model:
            raise SettingsError("--backend llm needs --model, e.g. --model openai:gpt-5-mini")
        return name
    if for_llm:
        option = f"--{for_llm[0].replace('_', '-')}"
        raise SettingsError(f"{option} goes with --backend llm, not with {name!r}")
    return _parse_kind(name)


def _parse_kind(name: str) -> str:
    try:
        kind = parse_name(name).kind
    except SettingsError as error:
        raise SettingsError(
            f"--backend must be {', '.join(map(repr, _NAMES))} or "
            f"'package.module:factory', got {name!r}{suggest_value(name, _NAMES)}"
        ) from error
    if kind == "llm":  # chat models are named by --model, so this is a module without a dot
        return "factory"
    return "local" if kind == "rules" else kind


def open_judge(judge: options.JudgeOptions, keep: Mapping[str, Any] | None = None) -> Backend:
    """Build the backend; *keep* says where a local judge keeps vectors, see `keep_with`."""
    local = {"kind": "local", **(keep or {})}
    kind, name = judge_kind(judge), judge.backend or "local"
    if kind == "llm":
        n_best = cascade_of(judge)
        backend = chat_backend(judge, domain=judge.domain, **call_options(judge))
        if n_best is None:
            return backend
        from deepera_graph.judges.cascade import cascade_backend

        return cascade_backend(load_backend(local), backend, n_best)
    if name == "local":
        return load_backend(local)
    if kind != "factory":
        return load_backend(name)
    return _load_foreign(
        f"--backend {name}", lambda: load_backend({"kind": "factory", "path": name})
    )


def chat_backend(chat: options.ChatOptions, **how: Any) -> Backend:
    """Build the backend of a chat model; *how* are more options of `llm_backend`."""
    name = str(chat.model)
    check_server(chat)
    if chat.base_url is not None:
        name = "openai:" + name.removeprefix("openai:")
    elif ":" not in name:
        raise SettingsError(
            f"--model must be 'provider:model', e.g. openai:{name}, got {name!r}; "
            "with --base-url the bare name is enough"
        )
    from deepera_graph.judges.llm.backend import llm_backend

    return _load_foreign(
        f"--model {name}",
        lambda: llm_backend(
            name, base_url=chat.base_url, api_key_env=chat.api_key_env, limits=rates_of(chat), **how
        ),
    )


def check_server(chat: options.ServerOptions) -> None:
    """Raise `SettingsError` unless the address is one, and the variable holds a key."""
    variable = chat.api_key_env
    if variable is not None:
        _check_variable(variable)
        if not os.environ.get(variable):
            raise SettingsError(
                f"no API key: the environment variable {variable} (--api-key-env) is not set"
            )
    of_openai = (chat.model or "").startswith("openai:") and chat.base_url is None
    if of_openai and variable is None and not os.environ.get(_KEY_VARIABLE):
        raise SettingsError(
            f"no API key: set the environment variable {_KEY_VARIABLE}, or give --base-url for a "
            "server that needs none"
        )
    if chat.base_url is not None:
        _check_url(chat.base_url)


def _check_url(url: str) -> None:
    if not re.match(r"https?://[^/]", url):
        raise SettingsError(f"--base-url must start with http:// or https://, got {url!r}")


def _check_variable(name: str) -> None:
    """Raise `SettingsError`, without the name, if the key itself may have been given in its place.

    A name that is not written like one, as `MY_KEY` is, counts if there is such a variable.
    """
    if not _PLAIN_VARIABLE.fullmatch(name) and not os.environ.get(name):
        raise SettingsError(
            "no API key: --api-key-env takes the name of an environment variable that is set, "
            "not the key itself"
        )


def rates_of(chat: options.ChatOptions) -> dict[str, float]:
    """Return the limits a minute that were given."""
    rates = {"requests_per_minute": chat.requests_per_minute}
    rates["tokens_per_minute"] = chat.tokens_per_minute
    return {name: value for name, value in rates.items() if value is not None}


def call_options(judge: options.JudgeOptions) -> dict[str, Any]:
    """Return what one call does, as far as that was said: options of `llm_backend`."""
    chosen = {"mode": judge.mode, "group_size": judge.group_size}
    explicit = {name: value for name, value in chosen.items() if value is not None}
    return {**_preset_of(judge).backend, **explicit}


def cascade_of(judge: options.JudgeOptions) -> int | None:
    """Return how many passages of a question the chat model reads; None is all."""
    return judge.cascade or _preset_of(judge).cascade


def _preset_of(judge: options.JudgeOptions) -> Preset:
    return NO_PRESET if judge.preset is None else preset(judge.preset)


def _load_foreign(what: str, build: Callable[[], T]) -> T:
    """Call the user's code with the current directory on the path; its errors get one line."""
    search_here()
    return call_foreign(f"{what} cannot be built", build)


def search_here() -> None:
    """Put the current directory on the path, where modules of the user's are looked for too."""
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)


def settings_of(
    judge: options.JudgeOptions,
    kept: options.FilterOptions,
    budget: options.BudgetOptions | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Return the settings that were given, over those of a preset."""
    chosen = options.given(kept) | {name: value for name, value in more.items() if value}
    if judge.max_concurrency is not None:
        chosen["max_concurrency"] = judge.max_concurrency
    if budget is not None and options.given(budget):
        chosen["budget"] = options.given(budget)
    return {**_preset_of(judge).settings, **_with_threshold(chosen)}


def _with_threshold(chosen: dict[str, Any]) -> dict[str, Any]:
    """Read the threshold from its text, or draw it on a curve if one is given."""
    curve, probability = chosen.pop("curve", None), chosen.pop("probability", None)
    if curve is None:
        if probability is not None:
            raise SettingsError("--probability goes with --curve")
        if "threshold" in chosen:
            chosen["threshold"] = read_threshold(chosen["threshold"])
        return chosen
    if "threshold" in chosen:
        raise SettingsError("give --threshold or --curve, not both")
    from deepera_graph.thresholds import Calibrated, Curve

    given = {} if probability is None else {"probability": probability}
    return {**chosen, "threshold": Calibrated(curve=Curve.load(curve), **given)}


def read_threshold(text: str) -> Threshold:
    """Read ``0.8``, ``gap:0.5``, ``quantile:0.1:0.5`` or ``mechanism=0.7,default=0.8``."""
    from deepera_graph.thresholds import Gap, Quantile

    name, *numbers = text.split(":")
    if "=" in text:
        return _read_per_intent(text)
    if name == "gap" and len(numbers) < 2:
        return Gap(**_read_numbers(text, ("floor",), numbers))
    if name == "quantile" and 1 <= len(numbers) < 3:
        return Quantile(**_read_numbers(text, ("share", "floor"), numbers))
    return _read_number(text, text)


def _read_per_intent(text: str) -> PerIntent:
    from deepera_graph.thresholds import PerIntent

    pairs = (part.partition("=") for part in text.split(","))
    values: dict[Any, float] = {kind.strip(): _read_number(text, value) for kind, _, value in pairs}
    default = {"default": values.pop("default")} if "default" in values else {}
    return PerIntent(values=values, **default)


def _read_numbers(text: str, names: tuple[str, ...], numbers: list[str]) -> dict[str, float]:
    pairs = zip(names, numbers, strict=False)
    return {name: _read_number(text, number) for name, number in pairs}


def _read_number(text: str, number: str) -> float:
    try:
        return float(number)
    except ValueError as error:
        raise SettingsError(f"--threshold must be {_THRESHOLDS}, got {text!r}") from error


def check_option(name: str, value: Any) -> None:
    """Raise `SettingsError` if an option cannot have this value, whatever others have.

    It is what the command says that works with it; packages, files and servers that a value names
    are not looked for.
    """
    if check := _CHECKS.get(name):
        check(value)
    elif name in {one.name for one in fields(options.FilterOptions)} - {"curve"}:
        kept = options.FilterOptions(**{name: value})
        Settings.of(settings_of(options.JudgeOptions(), kept))
    elif name in {one.name for one in fields(options.BudgetOptions)}:
        prices = {"input_price": 0.0, "output_price": 0.0} if name == "max_cost" else {}
        Budget(**{**prices, name: value})


def _check_rate(name: str, value: float) -> None:
    if not value > 0:
        raise SettingsError(f"{name} must be > 0, got {value!r}")


@contextmanager
def judgements_of(backend: Backend, where: str | None) -> Iterator[JudgementCache | None]:
    """Open the cache that a backend is to use, and close it again.

    The local backend has none. Left to itself (*where* is None), a backend has one if a chat model
    judges and its spec tells it from all others; code that is known by its name alone may change
    between two runs, so it has one only if a folder is named.
    """
    from deepera_graph.cache.store import open_cache

    kinds = set(_kinds(backend.spec))
    if where is not None:
        cache = open_cache(where) if kinds - {"local"} else None
    else:
        cache = default_cache() if "llm" in kinds and "factory" not in kinds else None
    try:
        yield cache
    finally:
        if cache is not None:
            cache.close()


def default_cache() -> JudgementCache | None:
    """Open the default cache; one that nobody asked for is no error if it cannot be opened."""
    from deepera_graph.cache.store import open_cache

    try:
        return open_cache()
    except StoreError as error:
        say(f"going on without a cache: {error}")
        return None


def _kinds(spec: Any) -> Iterator[str]:
    """Yield what kinds of backends a spec is made of."""
    if not isinstance(spec, Mapping):
        return
    if isinstance(spec.get("kind"), str):
        yield spec["kind"]
    for part in spec.values():
        yield from _kinds(part)


def open_collection(
    store: options.StoreOptions, *, mode: Mode | None = None, must_exist: bool
) -> PassageStore:
    """Open the collection."""
    if not store.collection:
        given = "" if store.collection is None else ", got ''"
        raise SettingsError(f"--collection must name a collection{given}")
    place = place_of(store)
    from deepera_graph.retrieval.store import open_store

    by_default = must_exist and "embeddings" in options.taken
    return open_store(
        store.collection,
        **place,
        mode=mode,
        embeddings=None if by_default else find_embeddings(store.embeddings),
        find_embeddings=partial(find_recorded, store),
        must_exist=must_exist,
        wait=_WAIT,
    )


def find_collection_folder(store: options.StoreOptions) -> Path | None:
    """Return the folder of a local collection; None if there is none yet, or it is on a server."""
    from deepera_graph.retrieval import find_folder

    path = place_of(store)["path"]
    return None if path is None or store.collection is None else find_folder(path, store.collection)


def keep_with(folder: Path | None, keep: options.KeepOptions) -> dict[str, Any]:
    """Return where the local judge keeps vectors, as `local_backend` takes it; nothing if off."""
    given = keep.keep_vectors
    if given is not None and given != "off" and not (given.isdecimal() and int(given) >= 1):
        raise SettingsError(f"--keep-vectors must be a whole number >= 1 or 'off', got {given!r}")
    if folder is None or given == "off":
        return {}
    return {"keep_in": str(folder), **({} if given is None else {"keep_mb": int(given)})}


def keep_embedded(opened: PassageStore, keep: options.KeepOptions) -> Callable[[list[str]], None]:
    """Return what keeps vectors of texts that the local judge has just embedded for a store."""
    how = keep_with(opened.folder, keep)
    if not how or opened.embeddings_name != _LOCAL_EMBEDDINGS.partition(":")[2]:
        return lambda _: None
    from deepera_graph.judges.trained.backend import local_model

    return local_model(**how).encoder.keep_held


def neighbours_of(place: options.PlaceOptions, collection: str) -> Path:
    """Return the folder of a collection's neighbours: beside it, or for a server's one here."""
    name = quote(collection, safe="")
    if place.qdrant_url is None:
        return Path(place.path or options.data_folder()) / _NEIGHBOURS / name
    server = re.split("//|@", place.qdrant_url)[-1].rstrip("/")  # without a login
    return options.data_folder() / _NEIGHBOURS / quote(server, safe="") / name


def load_neighbours(store: options.StoreOptions) -> NeighbourGraph:
    """Open the neighbours of a collection."""
    from deepera_graph.multihop.graph import NeighbourGraph

    folder = neighbours_of(store, store.collection or "")
    if not folder.is_dir():
        raise MissingStoreError(
            f"collection {store.collection!r} has no neighbours yet: "
            f"deepera index SOURCE --collection {store.collection} --neighbours 16"
        )
    return NeighbourGraph.load(folder)


def place_of(store: options.PlaceOptions) -> dict[str, Any]:
    """Return folder, address and key of a store, as `open_store` takes them."""
    if store.path == ":memory:":
        raise SettingsError("--path must be a folder; ':memory:' ends with this command")
    on_server = store.qdrant_url is not None
    return {
        "path": store.path if on_server else store.path or options.data_folder(),
        "url": store.qdrant_url,
        "api_key": server_key() if on_server else None,
    }


def find_recorded(store: options.StoreOptions, recorded: str) -> Embeddings | None:
    """Return the embeddings that a collection was made with: ours, or those that are configured."""
    if store.embeddings is None and recorded != _LOCAL_EMBEDDINGS.partition(":")[2]:
        kind, _, model = recorded.partition(":")
        known = {"OpenAIEmbeddings": "openai", "SentenceEmbeddings": _SENTENCES}
        of_known = f"{known[kind]}:{model}" if kind in known and model else ""
        name = of_known or "MODULE:FACTORY, a function that makes them"
        raise SettingsError(
            f"collection {store.collection!r} was made with {recorded}: give --embeddings {name}"
        )
    return find_embeddings(store.embeddings or "local")


class Source:
    """The passages of a file or folder, read one by one, and what of it could not be used.

    Attributes:
        passages: Each is read when it is asked for.
        skipped: Records and files that could not be used, the first 1000.
        forms: How many files of each form, such as ``.pdf``, have passages, as far as read.
    """

    def __init__(self, *paths: str, reading: options.ReadOptions, verbose: bool) -> None:
        from deepera_graph.retrieval.sources import read_passages

        self._paths, self._verbose = paths, verbose
        self.forms = Counter[str]()
        self._failed = False
        self._kinds: dict[str, SkippedKind] = {}
        self._n_skipped = 0
        self.skipped: list[Skipped] = []
        self.passages = read_passages(
            paths,
            max_words=read_max_words(reading.max_words),
            pdf_reader=reading.pdf_reader,
            on_skip=self._note,
            on_read=self._note_bytes,
            on_file=self._note_file,
        )
        self._n_read: int | None = None  # bytes
        self._n_bytes: int | None = None  # of all files

    @property
    def exit_code(self) -> int:
        """What a command that was done otherwise ends with.

        Files of other kinds are no failure, nor are papers without an abstract.
        """
        return SOME_FAILED if self._failed else OK

    def fill(
        self,
        store: PassageStore | WordIndex,
        *,
        quiet: bool,
        embedded: Callable[[list[str]], None] | None = None,
        **how: Any,
    ) -> int:
        """Index all passages under a progress bar, as *how* says; return how many.

        *embedded* is told of each batch the texts that were embedded as the local judge reads them:
        those of passages without a title, with which they would be embedded together.
        """
        texts: list[str] = []
        passages = self.passages if embedded is None else self._collect_plain(texts)
        with progress_bar("indexing", hidden=quiet) as bar:

            def watch(n: int) -> None:
                bar.move(to=self._n_read, total=self._n_bytes, count=n)
                if embedded is not None:
                    embedded(texts)
                    texts.clear()

            return store.add(passages, on_progress=watch, **how)

    def _note_file(self, form: str) -> None:
        self.forms[form] += 1

    def describe_files(self) -> str:
        """Return ``, from 3 .pdf, 1 .bib and 1 .ris``; nothing of one file."""
        *others, last = [f"{n} {form}" for form, n in self.forms.most_common()] or [""]
        named = f"{', '.join(others)} and {last}" if others else last
        return f", from {named}" if self.forms.total() > 1 else ""

    def _note_bytes(self, n_read: int, n_bytes: int) -> None:
        self._n_read, self._n_bytes = n_read, n_bytes

    def tell(self) -> None:
        """Say on stderr what was left out: a line a reason, or a line each."""
        from deepera_graph.retrieval.skipped import describe_other_kinds

        others = [one for one in self.skipped if one.other_kind]
        bad = [one for one in self.skipped if not one.other_kind]
        if others:
            say(describe_other_kinds(others, most=len(others) if self._verbose else MOST_TOLD))
        told: list[Any] = bad if self._verbose else [*self._kinds.values()][:MOST_TOLD]
        for one in told:
            say(f"skipped {one}")
        n_told = len(others) + (len(bad) if self._verbose else sum(one.n for one in told))
        if self._n_skipped > n_told:
            hint = "" if self._verbose else "; -v names them"
            say(f"skipped {self._n_skipped - n_told} more{hint}")
        if not self._verbose and any(one.n > len(one.first) for one in told):
            say("-v names each of them, and why")

    def check(self) -> None:
        """Read the first passage, and put it back; if there is none, say why and leave."""
        first = next(self.passages, None)
        if first is None:
            self.tell()
            say(f"there is no passage in {', '.join(map(repr, self._paths))}")
            raise typer.Exit(SOME_FAILED)
        self.passages = chain([first], self.passages)

    def _collect_plain(self, texts: list[str]) -> Iterator[Document]:
        for passage in self.passages:
            if not passage.metadata.get("title"):
                texts.append(passage.page_content)
            yield passage

    def _note(self, skipped: Skipped) -> None:
        from deepera_graph.retrieval.skipped import SkippedKind, kind_of

        self._n_skipped += 1
        if len(self.skipped) < _MOST_KEPT:
            self.skipped.append(skipped)
        if skipped.other_kind:
            return
        self._failed |= not skipped.without_text
        kind = kind_of(skipped)
        if kind in self._kinds or len(self._kinds) < _MOST_KEPT:
            self._kinds.setdefault(kind, SkippedKind()).add(skipped)


def read_max_words(text: str | None) -> int | None:
    """Return the most words of a passage; None if texts are not to be cut."""
    from deepera_graph.retrieval.cutting import MAX_WORDS

    if text is None:
        return MAX_WORDS
    if text == "off":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise SettingsError(f"--max-words must be a whole number >= 1 or 'off', got {text!r}")
    return int(text)


def find_embeddings(embeddings: str | None) -> Embeddings | None:
    """Build the embeddings that `--embeddings` names; None if it was not given."""
    if embeddings is None:
        return None
    head, tail = _split_embeddings(embeddings)
    if head == "openai":
        return _openai_embeddings(tail)
    if head == _SENTENCES:
        from deepera_graph.retrieval.sentence_embeddings import SentenceEmbeddings

        return SentenceEmbeddings(tail)
    from langchain_core.embeddings import Embeddings

    what = f"--embeddings {embeddings}"
    made = _load_foreign(what, partial(_call_factory, head, tail))
    if not isinstance(made, Embeddings):
        raise SettingsError(f"{what} must return LangChain Embeddings, got {made!r:.80}")
    return made


def _split_embeddings(embeddings: str) -> tuple[str, str]:
    from deepera_graph.retrieval import SHORT_NAMES

    name = _LOCAL_EMBEDDINGS if embeddings == "local" else embeddings
    if name in SHORT_NAMES:
        name = f"{_SENTENCES}:{name}"
    head, colon, tail = name.partition(":")
    if not colon or not head or not tail:
        raise SettingsError(
            "--embeddings must be 'local', 'package.module:factory', 'openai:model', "
            f"'{_SENTENCES}:model' or {', '.join(map(repr, SHORT_NAMES))}, got {embeddings!r}"
        )
    return head, tail


def _call_factory(module: str, factory: str) -> Any:
    return getattr(import_module(module), factory)()


def _openai_embeddings(model: str) -> Embeddings:
    if not os.environ.get(_KEY_VARIABLE):
        raise SettingsError(f"no API key: the environment variable {_KEY_VARIABLE} is not set")
    from langchain_openai import OpenAIEmbeddings  # takes a second

    return OpenAIEmbeddings(model=model)


def check_engine(engine: options.EngineOptions) -> None:
    """Raise `SettingsError` if options do not go together, or Ray is not installed."""
    if engine.engine == "local":
        for option, value in {
            "--workers": engine.workers,
            "--ray-address": engine.ray_address,
        }.items():
            if value is not None:
                raise SettingsError(f"{option} goes with --engine ray")
        return
    from deepera_graph.jobs.ray import check_address, find_ray

    check_address(engine.ray_address)
    if engine.ray_address is not None and engine.workers is None:
        raise SettingsError("--ray-address needs --workers: how many the cluster has room for")
    find_ray(alone=engine.ray_address is None)


def open_engine(
    engine: options.EngineOptions, reranker: EvidenceReranker, cache: JudgementCache | None
) -> RayEngine | None:
    """Return the engine for work that is done in other processes; None for this one."""
    if engine.engine == "local":
        return None
    from deepera_graph.jobs.ray import JudgingWork, RayEngine

    work = JudgingWork.of(reranker, cache)
    return RayEngine(work, n_workers=count_workers(engine), address=engine.ray_address)


def count_workers(engine: options.EngineOptions) -> int:
    """Return how many workers there are to be on Ray."""
    return engine.workers or min(os.cpu_count() or 1, _MAX_WORKERS)


def server_key() -> str | None:
    """Return the key of a Qdrant server, from the environment."""
    return os.environ.get(_SERVER_KEY_VARIABLE)


_CHECKS: Mapping[str, Callable[[Any], object]] = {
    "api_key_env": _check_variable,
    "backend": _parse_kind,
    "base_url": _check_url,
    "cascade": partial(check_at_least, "cascade", least=1),
    "embeddings": _split_embeddings,
    "group_size": partial(check_at_least, "group_size", least=2),
    "max_concurrency": partial(check_at_least, "max_concurrency", least=1),
    "preset": preset,
    "probability": partial(check_share, "probability"),
    "requests_per_minute": partial(_check_rate, "requests_per_minute"),
    "tokens_per_minute": partial(_check_rate, "tokens_per_minute"),
    "workers": partial(check_at_least, "workers", least=1),
}
