"""Packages that only an extra brings."""

import pytest

from deepera_graph.errors import SettingsError
from deepera_graph.packages import call_foreign, check_extra, import_extra


def test_a_missing_package_is_named_with_the_command_that_installs_it():
    with pytest.raises(SettingsError, match=r"no_such_one .*pip install 'deepera-graph\[bench\]'"):
        import_extra("no_such_one.part", extra="bench")
    with pytest.raises(SettingsError, match=r"drawing needs no_such_one: pip install"):
        check_extra("no_such_one", extra="bench", what="drawing")


def test_a_package_that_fails_to_import_says_why():
    with pytest.raises(SettingsError, match=r"json\.nothing cannot be imported: ModuleNotFound"):
        import_extra("json.nothing", extra="bench")


def test_foreign_errors_become_one_line():
    def work():
        raise KeyError("first\nsecond")

    with pytest.raises(SettingsError, match=r"^reading failed: KeyError: 'first\\nsecond'$"):
        call_foreign("reading failed", work)
