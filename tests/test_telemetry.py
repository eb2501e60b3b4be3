"""Packages below us send nothing about their use."""

import os
import subprocess
import sys

import pytest

from deepera_graph.packages import send_nothing

CODE = """
from pathlib import Path
from deepera_graph.judges.cross_encoder.onnx import OnnxModel
from deepera_graph.errors import SettingsError
try:
    OnnxModel(Path("nowhere/model.onnx"))
except SettingsError:
    import os, sys
    print("onnxruntime" in sys.modules, os.environ["ORT_DISABLE_TELEMETRY"])
"""


@pytest.mark.full
def test_onnxruntime_is_told_to_send_nothing_and_leaves_no_identifier(tmp_path):
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    given = {**kept, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", CODE], env=given, check=True, capture_output=True, text=True
    )
    assert done.stdout.split() == ["True", "1"]
    assert list(tmp_path.rglob("*")) == []


def test_what_the_user_has_set_stays(monkeypatch):
    monkeypatch.setenv("ORT_DISABLE_TELEMETRY", "0")
    send_nothing()
    assert os.environ["ORT_DISABLE_TELEMETRY"] == "0"
