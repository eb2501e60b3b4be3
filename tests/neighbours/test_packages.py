"""What importing the packages for other frameworks costs, and what they say without them."""

import subprocess
import sys

import pytest

import haystack_deepera
import llama_index_deepera

PACKAGES = [haystack_deepera, llama_index_deepera]


@pytest.mark.parametrize("package", PACKAGES)
def test_the_package_alone_needs_no_framework(package):
    code = f"import sys, {package.__name__} as it; print(dir(it), 'haystack' in sys.modules, "
    code += "'llama_index' in sys.modules, 'langgraph' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == f"{package.__all__} False False False\n"


@pytest.mark.parametrize(
    ("package", "says"),
    [(haystack_deepera, "haystack-ai"), (llama_index_deepera, "llama-index-core")],
)
def test_without_the_framework_it_says_what_to_install(package, says, monkeypatch):
    framework = package.__name__.removesuffix("_deepera")
    home = f"{package.__name__}.{next(iter(package._HOME.values()))}"
    for name in [one for one in sys.modules if one.partition(".")[0] == framework]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, framework, None)
    monkeypatch.delitem(sys.modules, home, raising=False)
    with pytest.raises(ImportError, match=f"pip install {says}"):
        getattr(package, package.__all__[0])


@pytest.mark.parametrize("package", PACKAGES)
def test_an_unknown_name_is_an_attribute_error(package):
    with pytest.raises(AttributeError, match="has no attribute 'Nonsense'"):
        package.Nonsense  # noqa: B018
