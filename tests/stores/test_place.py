"""Where the cache is."""

from pathlib import Path

import pytest

from deepera_graph.errors import SettingsError, StoreError
from deepera_graph.stores.judgements import default_cache_folder, open_cache


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    return tmp_path


def test_the_cache_is_in_the_home_folder(home):
    assert default_cache_folder() == home / ".cache" / "deepera"


def test_the_cache_folder_of_the_system_is_respected(home, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "x"))
    assert default_cache_folder() == home / "x" / "deepera"


@pytest.mark.parametrize("senseless", ["", "relative/folder"])
def test_a_senseless_cache_folder_of_the_system_is_ignored(home, monkeypatch, senseless):
    monkeypatch.setenv("XDG_CACHE_HOME", senseless)
    assert default_cache_folder() == home / ".cache" / "deepera"


def test_no_home_folder_is_an_error_that_says_what_to_do(home, monkeypatch):
    def nowhere():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nowhere)
    with pytest.raises(SettingsError, match="set XDG_CACHE_HOME"):
        default_cache_folder()


def test_off_is_no_cache(home):
    assert open_cache("off") is None
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("kind", [str, Path])
def test_a_folder_is_made_and_holds_the_file(home, kind):
    with open_cache(kind(home / "a" / "b")):
        assert (home / "a" / "b" / "judgements.sqlite3").is_file()


def test_nothing_said_is_the_default_folder(home):
    with open_cache():
        assert (home / ".cache" / "deepera" / "judgements.sqlite3").is_file()


def test_a_tilde_is_the_home_folder(home):
    with open_cache("~/mine"):
        assert (home / "mine" / "judgements.sqlite3").is_file()


def test_an_empty_name_is_refused(home):
    with pytest.raises(SettingsError, match="got ''"):
        open_cache("")


def test_a_folder_that_cannot_be_made_is_an_error(home):
    (home / "file").write_text("")
    with pytest.raises(StoreError, match="file"):
        open_cache(home / "file")
