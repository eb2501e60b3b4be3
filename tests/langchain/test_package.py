"""What is public, and what an import costs."""

import subprocess
import sys

import pytest

import langchain_deepera


def test_public_names_are_sorted_and_importable():
    assert langchain_deepera.__all__ == sorted(langchain_deepera.__all__)
    assert dir(langchain_deepera) == langchain_deepera.__all__
    for name in langchain_deepera.__all__:
        home = "deepera_graph." if name == "EvidenceEmbeddings" else "langchain_deepera."
        assert getattr(langchain_deepera, name).__module__.startswith(home)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'DeepEra'"):
        langchain_deepera.DeepEra  # noqa: B018


@pytest.mark.full
@pytest.mark.parametrize(
    ("code", "unwanted"),
    [
        ("import langchain_deepera", ("langgraph", "langchain_core", "pytest")),
        ("from langchain_deepera import *", ("pytest", "qdrant_client", "langchain", "openai")),
    ],
)
def test_an_import_loads_no_more_than_it_needs(code, unwanted):
    code += f"; import sys; print(sorted(set({unwanted!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"
