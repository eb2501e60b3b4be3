"""Packages that only an extra brings."""

import json

import pytest

from deepera_graph.errors import SettingsError
from deepera_graph.packages import call_foreign, check_extra, import_extra, install_command

SOURCE = "pip install '.[ray]' in the source folder"


def test_a_missing_package_is_named_with_the_command_that_installs_it():
    with pytest.raises(SettingsError, match=r"no_such_one .*pip install '.*\[bench\]'"):
        import_extra("no_such_one.part", extra="bench")
    with pytest.raises(SettingsError, match=r"drawing needs no_such_one: pip install"):
        check_extra("no_such_one", extra="bench", what="drawing")


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, "pip install 'deepera-graph[ray]'"),
        ({"url": "file:///src/x", "dir_info": {"editable": True}}, SOURCE),
        ({"url": "file:///src/x", "dir_info": {}}, SOURCE),
        ({"url": "file:///a%20b/x.whl", "archive_info": {}}, "pip install '/a b/x.whl[ray]'"),
        (
            {"url": "https://example.org/x.git", "vcs_info": {"vcs": "git"}},
            "pip install 'deepera-graph[ray] @ git+https://example.org/x.git'",
        ),
    ],
)
def test_an_extra_is_installed_from_where_the_package_came(origin, command, tmp_path, monkeypatch):
    info = tmp_path / "deepera_graph-9.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: deepera-graph\nVersion: 9\n")
    if origin is not None:
        (info / "direct_url.json").write_text(json.dumps(origin))
    monkeypatch.syspath_prepend(tmp_path)
    assert install_command("ray") == command
    assert install_command(flag="--upgrade") == command.replace("[ray]", "").replace(
        "install", "install --upgrade"
    )


def test_a_package_that_fails_to_import_says_why():
    with pytest.raises(SettingsError, match=r"json\.nothing cannot be imported: ModuleNotFound"):
        import_extra("json.nothing", extra="bench")


def test_foreign_errors_become_one_line():
    def work():
        raise KeyError("first\nsecond")

    with pytest.raises(SettingsError, match=r"^reading failed: KeyError: 'first\\nsecond'$"):
        call_foreign("reading failed", work)
