"""What goes out with a release says what is true of the package."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import deepera_graph

ROOT = Path(__file__).parents[1]
WORKFLOWS = ROOT / ".github" / "workflows"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def commands(workflow: str) -> list[str]:
    jobs = yaml.safe_load((WORKFLOWS / workflow).read_text(encoding="utf-8"))["jobs"]
    steps = [step for job in jobs.values() for step in job.get("steps", ())]
    return [step["run"] for step in steps if "run" in step]


def test_the_tests_are_run_as_readme_says() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"<!-- test command -->\n```bash\n(.+)\n```", readme)
    assert found
    assert found[1] in commands("test.yml")


def test_the_tests_are_run_on_every_python_that_is_supported() -> None:
    named = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if "3." in line]
    jobs = yaml.safe_load((WORKFLOWS / "test.yml").read_text(encoding="utf-8"))["jobs"]
    assert jobs["test"]["strategy"]["matrix"]["python"] == named


@pytest.mark.parametrize("workflow", ["test.yml", "docs.yml", "release.yml"])
def test_an_extra_or_a_target_that_a_workflow_asks_for_exists(workflow: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in commands(workflow):
        asked = re.findall(r"\[([\w,-]+)\]'", command)
        assert {one for names in asked for one in names.split(",")} <= set(
            PROJECT["optional-dependencies"]
        ), command
        for target in re.findall(r"\bmake (\w+)", command):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), command


def test_the_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == deepera_graph.__version__
    assert citation["license"] == PROJECT["license"]
    assert citation["title"] == PROJECT["name"]


def test_the_image_installs_extras_that_exist_from_files_that_it_is_given() -> None:
    image = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    found = re.search(r"\.whl\)\[([\w,]+)\]", image)
    assert found
    assert set(found[1].split(",")) <= set(PROJECT["optional-dependencies"])
    given = {
        line[1:]
        for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
        if line.startswith("!")
    }
    assert {"deepera_graph", "integrations", "pyproject.toml", PROJECT["readme"]} <= given
    assert set(PROJECT["license-files"]) <= given
    assert re.search(r"^USER (?!root)\w+$", image, re.MULTILINE)
