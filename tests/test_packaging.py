"""What is public, what an import costs, and that every module can be imported."""

import ast
import importlib
import pkgutil
import re
import subprocess
import sys
import tomllib
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

import deepera_graph
import haystack_deepera
import langchain_deepera
import llama_index_deepera

PACKAGES = [deepera_graph, langchain_deepera]
NEIGHBOURS = [haystack_deepera, llama_index_deepera]  # their frameworks are extras
ROOT = Path(__file__).parents[1]
ASK_FOR_EXTRA = ("import_extra", "check_extra", "install_command")
HEAVY = ("langgraph", "openai", "langchain_openai", "qdrant_client", "langchain_qdrant", "typer",
         "rich", "httpx", "numpy", "onnxruntime", "tokenizers", "pytest", "langchain",
         "langchain_classic")  # fmt: skip


def loaded_after(code: str, unwanted: tuple[str, ...]) -> str:
    """Names out of *unwanted* that a fresh interpreter has loaded after *code*."""
    code += f"\nimport sys; print(sorted(set({unwanted!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def modules(package):
    found = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    return [one.name for one in found if not one.name.endswith("__main__")]


@pytest.mark.parametrize("package", PACKAGES)
def test_public_names_are_sorted_unique_and_importable(package):
    assert package.__all__ == sorted(set(package.__all__))
    assert dir(package) == package.__all__
    for name in package.__all__:
        thing = getattr(package, name)
        home = getattr(thing, "__module__", package.__name__)
        owner = "deepera_graph" if name == "EvidenceEmbeddings" else package.__name__
        assert home.startswith(owner), name


def test_the_front_door_is_small():
    assert len(deepera_graph.__all__) <= 60


def test_all_is_complete():
    own = {name for name in langchain_deepera.__all__ if not name.startswith("_")}
    assert own == {*langchain_deepera._HOME, "EvidenceEmbeddings"}  # whose home is the core


def test_a_type_checker_sees_every_public_name():
    tree = ast.parse(Path(langchain_deepera.__file__).read_text(encoding="utf-8"))
    [guarded] = [
        node for node in tree.body if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node)
    ]
    seen = {alias.name for node in guarded.body for alias in getattr(node, "names", [])}
    assert seen == {name for name in langchain_deepera.__all__ if not name.startswith("_")}


def test_an_old_name_of_the_front_door_tells_the_new_place():
    for name, home in deepera_graph._OLD_HOME.items():
        with pytest.warns(DeprecationWarning, match=f"import {name} from {home}; .* ends with"):
            thing = getattr(deepera_graph, name)
        assert thing is getattr(importlib.import_module(home), name)


@pytest.mark.parametrize("package", PACKAGES)
def test_an_unknown_name_is_an_attribute_error(package):
    with pytest.raises(AttributeError, match="has no attribute 'Nonsense'"):
        package.Nonsense  # noqa: B018


@pytest.mark.full
@pytest.mark.parametrize("package", PACKAGES)
def test_every_module_can_be_imported(package):
    broken = {}
    for name in modules(package):
        try:
            importlib.import_module(name)
        except Exception as error:  # noqa: BLE001 -- any of them; all are told at once
            broken[name] = repr(error)
    assert broken == {}


def test_an_import_of_the_package_loads_nothing_heavy():
    assert loaded_after("import deepera_graph", (*HEAVY, "langchain_core", "pydantic")) == "[]"


@pytest.mark.full
@pytest.mark.parametrize(
    "names", ["Settings, Quantile, Usage", "Judgement, Intent", "Backend", "DeepEraError"]
)
def test_plain_nouns_do_not_load_the_graph(names):
    assert loaded_after(f"from deepera_graph import {names}", HEAVY[:5]) == "[]"


@pytest.mark.full
def test_the_local_backend_loads_no_client():
    code = "import deepera_graph; deepera_graph.EvidenceReranker('local')"
    assert loaded_after(code, ("openai", "langchain_openai", "qdrant_client", "torch")) == "[]"


@pytest.mark.full
def test_the_llm_backend_loads_no_store():
    code = (
        "import deepera_graph\n"
        "deepera_graph.llm_backend('openai:m', base_url='http://127.0.0.1:9/v1')"
    )
    assert loaded_after(code, ("qdrant_client", "langchain_qdrant", "langchain_classic")) == "[]"


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_imports_the_integrations_folder(package):
    for path in Path(package.__file__).parent.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"^\s*(?:from|import)\s+integrations\b", text, re.MULTILINE), path


def test_the_core_knows_nothing_of_langchain_deepera():
    for path in Path(deepera_graph.__file__).parent.rglob("*.py"):
        if "cli" not in path.parts and path != Path(deepera_graph.__file__):  # the front door
            text = path.read_text(encoding="utf-8")
            found = re.search(r"^\s*(?:from|import)\s+langchain_deepera\b", text, re.MULTILINE)
            assert not found, path


def test_the_wheel_has_every_file_of_the_packages():
    """Prompts, weights, corpora, pages of help and the type markers: whatever is not code, too."""
    shipped = {one.distribution_path for one in WheelBuilder(str(ROOT)).recurse_included_files()}
    there = {
        path.relative_to(Path(package.__file__).parents[1]).as_posix()
        for package in (*PACKAGES, *NEIGHBOURS)
        for path in Path(package.__file__).parent.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert shipped == there
    assert {
        "deepera_graph/bioasq/phase_b/weights.json",
        "deepera_graph/bioasq/prompts/system.md",
    } < there
    assert {"deepera_graph/prompts/score.system.md", "langchain_deepera/py.typed"} < there
    assert {"deepera_graph/cli/help.txt", "deepera_graph/lab/cli/help.txt"} < there


@pytest.mark.full
def test_an_extra_that_is_named_exists():
    """A message that says ``pip install 'deepera-graph[NAME]'`` names what pip knows."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    named = {}
    for path in Path(deepera_graph.__file__).parent.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if not any(one in text for one in ASK_FOR_EXTRA):
            continue
        for call in ast.walk(ast.parse(text)):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") in ASK_FOR_EXTRA:
                found = [one.value for one in call.keywords if one.arg == "extra"]
                named |= {one.value: path for one in found if isinstance(one, ast.Constant)}
    assert {"bioasq", "train", "ray"} <= set(named)
    assert {name: path for name, path in named.items() if name not in extras} == {}


def test_the_version_is_one_of_semantic_versioning():
    assert re.fullmatch(r"\d+\.\d+\.\d+(?:[.-]?\w+)?", deepera_graph.__version__)


def test_the_docs_say_what_every_package_that_comes_along_is_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = {re.split(r"[<>=]", one)[0] for one in project["dependencies"]}
    text = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
    table = text.partition("| package | is for |")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| `([\w-]+)` \| \S", table, re.MULTILINE)) == needed
    assert len(needed) == 14
    assert "Fourteen packages" in text


def test_what_is_said_to_come_with_another_package_does():
    text = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
    said = re.findall(r"^\| `([\w-]+)` \|.*; (.*) brings? it, too \|$", text, re.MULTILINE)
    assert len(said) == 6
    for name, others in said:
        for other in re.findall(r"`([\w-]+)`", others):
            assert name in _brought_by(other), (name, other)


def _brought_by(package, seen=None):
    """Names of what a package needs, and what that needs, without extras."""
    seen = set() if seen is None else seen
    for line in requires(package) or ():
        name = re.match(r"[\w.-]+", line)[0].lower().replace("_", "-")
        if "extra ==" not in line and name not in seen:
            seen.add(name)
            with suppress(PackageNotFoundError):  # for another Python or system
                _brought_by(name, seen)
    return seen
