"""What the doctor says without a server: versions, extras, the local backend, cache, store."""

import os
import sqlite3
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from deepera_graph import judges, local_backend
from deepera_graph.doctor import checks, examine
from deepera_graph.doctor.checks import Finding, judge_sample
from deepera_graph.errors import AnswerError, CallError
from deepera_graph.retrieval.collections.store import open_store
from deepera_graph.stores.judgements import FILE_NAME, open_cache
from deepera_graph.testing import ScriptedRole
from deepera_graph.text.plain import HIDDEN
from support.list_judges import list_backend

pytestmark = pytest.mark.full


def by_name(**options):
    return {finding.name: finding for finding in examine(**options)}


def test_nothing_fails_and_nothing_is_left_behind_in_a_sound_installation(tmp_path):
    found = examine(store=tmp_path / "data", cache=tmp_path / "judgements")
    assert {one.status for one in found} <= {"ok", "skipped"}
    assert list(tmp_path.iterdir()) == []


def test_without_a_server_no_connection_is_opened(monkeypatch):
    def refuse(*_):
        raise AssertionError("a connection was opened")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("socket.getaddrinfo", refuse)
    assert not [one for one in examine() if one.status == "fail"]


def test_every_failure_and_warning_has_one_line_of_advice(tmp_path):
    (tmp_path / "file").write_text("no folder")
    found = examine(store=tmp_path / "file" / "data", cache=tmp_path / "file")
    failed = [one for one in found if one.status in {"warn", "fail"}]
    assert {one.name for one in failed} >= {"judgement cache", "passage store"}
    for one in failed:
        assert one.advice
        assert "\n" not in one.found + one.advice


def test_a_judge_of_lists_is_tried():
    found = judge_sample("x", list_backend())
    assert (found.status, found.found[:38]) == ("warn", "a passage that is plain evidence score")
    for broken in (lambda batch: AnswerError("torn"), lambda batch: [AnswerError("torn")]):
        assert judge_sample("x", list_backend(broken)).found == "torn"
    assert judge_sample("x", list_backend(lambda batch: [])).status == "fail"


def test_weights_that_cannot_be_loaded_are_a_failure_that_names_the_rules(monkeypatch):
    backend = local_backend("rules")
    monkeypatch.setattr(judges, "load_backend", lambda name: replace(backend, judge=Torn()))
    [found] = checks.check_local()
    assert (found.status, found.found) == ("fail", "encoder.onnx has another checksum")
    assert "--backend rules" in found.advice


class Torn(ScriptedRole):
    """A judge whose weights are damaged."""

    def __init__(self):
        super().__init__(lambda task: CallError("encoder.onnx has another checksum"))


def test_a_cache_in_use_is_counted_and_unchanged(tmp_path):
    with open_cache(tmp_path) as cache:
        cache.put("k", "judge", {"score": 1})
    found = by_name(cache=tmp_path)["judgement cache"]
    assert found.status == "ok"
    assert "1 answers" in found.found
    assert "format 1" in found.found
    with open_cache(tmp_path) as cache:
        assert cache.stats().entries == {"judge": 1}


def test_a_cache_that_is_off_is_not_looked_at():
    assert by_name(cache="off")["judgement cache"].status == "skipped"


def test_a_cache_folder_without_a_name_is_a_failure():
    assert by_name(cache="")["judgement cache"].status == "fail"


def test_a_cache_of_another_format_is_a_failure(tmp_path):
    open_cache(tmp_path).close()
    database = sqlite3.connect(tmp_path / FILE_NAME)
    database.execute("PRAGMA user_version = 99")
    database.close()
    found = by_name(cache=tmp_path)["judgement cache"]
    assert found.status == "fail"
    assert "format 99" in found.found


def test_a_cache_that_is_no_database_is_a_failure(tmp_path):
    (tmp_path / FILE_NAME).write_bytes(b"not a database" * 100)
    assert by_name(cache=tmp_path)["judgement cache"].status == "fail"


def test_a_cache_held_by_another_process_is_a_failure(tmp_path):
    open_cache(tmp_path).close()
    database = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)
    database.execute("BEGIN EXCLUSIVE")
    found = by_name(cache=tmp_path)["judgement cache"]
    database.close()
    assert found.status == "fail"


def test_a_cache_where_no_folder_can_be_made_is_a_failure(tmp_path):
    (tmp_path / "file").write_text("no folder")
    found = by_name(cache=tmp_path / "file" / "cache")["judgement cache"]
    assert found.status == "fail"
    assert "cannot be made" in found.found


def test_a_store_is_opened_and_its_collections_are_counted(tmp_path):
    for name in ("papers", "notes"):
        open_store(name, path=tmp_path, mode="sparse").close()
    found = by_name(store=tmp_path)["passage store"]
    assert found.status == "ok"
    assert "2 libraries" in found.found
    assert "notes, papers" in found.found


def test_a_store_that_another_process_has_open_is_a_failure(tmp_path):
    with open_store("papers", path=tmp_path, mode="sparse"):
        found = by_name(store=tmp_path)["passage store"]
    assert found.status == "fail"
    assert "another process" in found.found
    assert "close" in found.advice


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="needs POSIX users")
def test_a_store_that_cannot_be_written_to_can_be_searched():
    with TemporaryDirectory() as folder:
        open_store("wax", path=folder).close()
        for one in (Path(folder), *Path(folder).rglob("*")):
            one.chmod(0o555 if one.is_dir() else 0o444)
        user = os.geteuid()
        os.seteuid(user or 65534)  # the superuser may write anywhere
        try:
            [found] = checks.check_store(folder, None)
        finally:
            os.seteuid(user)
    assert found.status == "warn"
    assert found.found.endswith("wax; it cannot be written to: Permission denied")
    assert found.advice.startswith("it can be searched")


def test_a_damaged_store_is_a_failure(tmp_path):
    (tmp_path / "meta.json").write_text("{")
    found = by_name(store=tmp_path)["passage store"]
    assert found.status == "fail"
    assert found.advice


def test_a_qdrant_server_that_is_not_there_is_a_failure():
    found = by_name(qdrant_url="http://127.0.0.1:9")["passage store"]
    assert found.status == "fail"
    assert "QDRANT_API_KEY is not set" in found.advice


def test_a_package_out_of_range_is_a_failure_with_the_command_that_mends_it(monkeypatch):
    real = checks.installed_version
    monkeypatch.setattr(
        checks, "installed_version", lambda name: "0.1" if name == "langgraph" else real(name)
    )
    found = by_name()["langgraph"]
    assert found.status == "fail"
    assert "0.1, but " in found.found
    assert found.advice.startswith("pip install 'langgraph")


def test_ranges_come_from_the_metadata_of_those_that_need_a_package():
    assert not checks.allowed_versions("langgraph").contains("0.6.0")
    assert not checks.allowed_versions("openai").contains("0.28.0")
    assert str(checks.allowed_versions("no-such-package")) == ""


def test_packages_that_cannot_be_imported_are_findings_and_the_other_checks_go_on():
    code = """
        import sys

        class Broken:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] in {"qdrant_client", "openai", "langgraph"}:
                    raise ImportError("undefined symbol: moved_away")

        sys.meta_path.insert(0, Broken())
        from deepera_graph.doctor import examine
        for one in examine(base_url="http://127.0.0.1:9/v1", timeout=2):
            print(one.name, one.status, one.found, sep="|")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], check=True, capture_output=True, text=True
    )
    assert not done.stderr
    found = dict(line.split("|", 1) for line in done.stdout.splitlines())
    for name in ("qdrant-client", "openai", "langgraph"):
        assert found[name].startswith("fail|")
        assert "undefined symbol" in found[name]
    assert found["store"].startswith("fail|cannot be checked")
    assert found["local judgement"].startswith("ok|")
    assert found["judgement cache"].startswith("ok|")
    assert found["server"].startswith("fail|cannot be checked")


def test_a_finding_is_one_printable_line_without_secrets():
    told = Finding("x", "fail", "it said\n\x1b[31mkey-of-mine\u202e", "y").without(["key-of-mine"])
    assert told.found == f"it said [31m{HIDDEN}"


def test_a_finding_is_plain_data_too():
    assert Finding("x", "ok", "y").to_dict() == {
        "name": "x",
        "status": "ok",
        "found": "y",
        "advice": "",
    }
