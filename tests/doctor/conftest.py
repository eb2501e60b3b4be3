"""A cache of the test's own, and no keys or proxies of the machine's."""

import shutil
import subprocess

import pytest

VARIABLES = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "QDRANT_API_KEY")
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def bare(tmp_path, monkeypatch):
    for name in VARIABLES + PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """A file with a key and a certificate that nobody has signed but itself."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    file = tmp_path_factory.mktemp("tls") / "own.pem"
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(file), "-out", str(file.with_suffix(".crt"))]
    subprocess.run([openssl, "req", "-x509", *key, *names, *files], check=True, capture_output=True)
    file.write_bytes(file.read_bytes() + file.with_suffix(".crt").read_bytes())
    return file
