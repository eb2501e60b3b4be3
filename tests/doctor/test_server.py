"""What the doctor says of a model's server, fine or odd."""

import json
import socket
import ssl
import sys
import time

import pytest

from deepera_graph.doctor import examine
from deepera_graph.doctor.server import explain, proxy_for
from doctor.odd_server import http, odd_server
from support.openai_server import ChatServer, Reply

pytestmark = pytest.mark.full

VERDICT = {"reason": "it says so", "evidence": [2], "score": 0.9}
OFFLINE = {"store": None, "cache": "off"}
KEY = "tmk-0123456789-never-shown"


def look(base_url, **options):
    found = examine(base_url=base_url, **{"timeout": 5, **OFFLINE, **options})
    return {finding.name: finding for finding in found}


def statuses(found):
    names = ("JSON schema", "tool call", "JSON mode", "plain text")
    return [found[f"method: {name}"].status for name in names]


def call_tool(request, arguments):
    [tool] = request.body["tools"]
    function = {"name": tool["function"]["name"], "arguments": json.dumps(arguments)}
    return Reply(tool_calls=[{"id": "c1", "type": "function", "function": function}])


def form_of(request):
    return "tools" if "tools" in request.body else (request.response_format or {}).get("type")


def only_tools(request):
    if form_of(request) == "tools":
        return call_tool(request, VERDICT)
    return Reply(status=400, content="no such form") if form_of(request) else Reply(content="Yes.")


def only_text(request):
    return Reply(status=422, content="unknown field") if form_of(request) else VERDICT


def llama_cpp(request):
    """As llama.cpp's Python server: 500 to a JSON schema, an empty object in JSON mode."""
    if form_of(request) == "json_schema":
        return Reply(status=500, content="1 validation error")
    return {} if form_of(request) == "json_object" else only_tools(request)


def test_a_sound_server_passes_everything_in_five_calls():
    with ChatServer(lambda _: VERDICT) as server:
        found = look(server.base_url)
        assert server.calls == 5
    assert {one.status for one in found.values()} <= {"ok", "skipped"}
    assert found["model"].found.startswith("scripted, the first")
    assert found["structured answers"].found == "JSON schema will be used"
    assert "scores 0.9" in found["judgement of the model"].found


@pytest.mark.parametrize(
    ("answer", "expected", "used", "status"),
    [
        pytest.param(only_tools, ["warn", "ok", "warn", "warn"], "tool call", "ok", id="tools"),
        pytest.param(only_text, ["warn", "warn", "warn", "ok"], "plain text", "warn", id="text"),
        pytest.param(llama_cpp, ["warn", "ok", "warn", "warn"], "tool call", "ok", id="llama.cpp"),
    ],
)
def test_the_methods_that_a_server_supports_are_told_apart(answer, expected, used, status):
    with ChatServer(answer) as server:
        found = look(server.base_url)
    assert statuses(found) == expected
    assert found["structured answers"].found.startswith(used)
    assert found["structured answers"].status == status
    assert found["judgement of the model"].status == "ok"


def test_a_server_that_only_takes_tool_calls_at_all_is_not_given_up():
    with ChatServer(
        lambda r: only_tools(r) if form_of(r) == "tools" else Reply(status=400)
    ) as server:
        found = look(server.base_url)
    assert found["structured answers"].found.startswith("tool call")


def test_a_supported_method_with_a_bad_answer_blames_the_model_not_the_server():
    with ChatServer(
        lambda r: {**VERDICT, "score": 7} if form_of(r) == "json_schema" else "Well."
    ) as server:
        found = look(server.base_url)
    assert "the server supports it" in found["method: JSON schema"].advice
    assert found["structured answers"].status == "warn"
    assert found["judgement of the model"].status == "fail"


def test_a_server_that_never_gives_json_is_a_failure():
    with ChatServer(lambda _: "I would rather not say.") as server:
        found = look(server.base_url)
    assert found["structured answers"].status == "fail"
    assert "judgement of the model" not in found
    methods = [one for name, one in found.items() if name.startswith("method: ")]
    assert len(methods) == 4
    assert {one.advice for one in methods} == {
        "no method gives a usable answer, see structured answers"
    }


def test_a_reply_that_was_cut_off_and_a_refusal_are_told_as_such():
    with ChatServer(lambda _: Reply(content='{"reason": "It', finish_reason="length")) as server:
        cut = look(server.base_url)["method: plain text"].found
    assert "the reply was cut off at its limit of tokens" in cut
    with ChatServer(lambda _: Reply(refusal="I will not.\n" * 100)) as server:
        refused = look(server.base_url)["method: plain text"].found
    assert refused.startswith("the model refused: I will not. I will not.")
    assert "\n" not in refused
    assert len(refused.removeprefix("the model refused: ")) == 200


def test_a_method_that_fails_is_no_matter_if_another_works():
    with ChatServer(only_text) as server:
        found = look(server.base_url)
    assert found["method: tool call"].advice == "no action needed: another method works"


def test_a_model_that_scores_plain_evidence_low_is_a_warning():
    with ChatServer(lambda _: {**VERDICT, "score": 0.1}) as server:
        found = look(server.base_url)
    assert found["judgement of the model"].status == "warn"


def test_no_more_calls_are_made_than_promised_however_bad_the_answers():
    def bad(request):
        return {"score": 7} if form_of(request) == "json_schema" else "no"

    with ChatServer(bad) as server:
        look(server.base_url)
        assert server.calls <= 6


def test_a_refused_key_is_told_and_never_shown(monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)

    def refuse(request):
        assert request.headers["authorization"] == f"Bearer {KEY}"
        return Reply(status=401, content=f"Incorrect API key provided: {KEY}")

    with ChatServer(refuse) as server:
        found = look(server.base_url, api_key_env="MY_KEY")
        assert server.calls == 1
    assert found["key"].found == "MY_KEY is set"
    assert found["model answers"].status == "fail"
    assert "HTTP 401" in found["model answers"].found
    assert KEY not in repr(found)


def test_a_key_that_a_server_echoes_is_taken_out(monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    with ChatServer(lambda _: Reply(status=400, content=f"bad header Bearer {KEY}")) as server:
        found = look(server.base_url, api_key_env="MY_KEY")
    assert found["model answers"].status == "fail"
    assert KEY not in repr(found)


@pytest.mark.parametrize(
    ("value", "status", "words"),
    [
        ("", "fail", "is not set"),
        ("  \n", "fail", "is not set"),
        ("schlüssel-ä", "fail", "no HTTP header"),
        (f'"{KEY}"', "warn", "quotation mark"),
        (f"{KEY}\n", "ok", "is set"),
    ],
)
def test_the_shape_of_a_key_is_looked_at(monkeypatch, value, status, words):
    monkeypatch.setenv("MY_KEY", value)
    with ChatServer(lambda _: VERDICT) as server:
        found = look(server.base_url, api_key_env="MY_KEY")
        assert (server.calls == 0) == (status == "fail")
    assert found["key"].status == status
    assert words in found["key"].found
    assert not value.strip() or value.strip() not in repr(found)


def test_a_key_given_in_place_of_its_variable_is_not_repeated():
    found = look("http://127.0.0.1:9/v1", api_key_env="sk-proj-0123456789abcdef")
    assert found["key"].status == "fail"
    assert "0123456789abcdef" not in repr(found)


def test_a_missing_v1_is_found_and_the_right_address_named():
    with ChatServer(lambda _: VERDICT) as server:
        found = look(server.base_url.removesuffix("/v1"))
        assert server.calls == 0
    assert found["address"].status == "fail"
    assert f"--base-url {server.base_url}," in found["address"].advice
    assert found["judgement of the model"].status == "skipped"


def test_the_address_of_the_chat_route_itself_is_corrected():
    with ChatServer(lambda _: VERDICT) as server:
        found = look(f"{server.base_url}/chat/completions")
    assert f"--base-url {server.base_url}," in found["address"].advice


def test_a_slash_at_the_end_of_an_address_does_no_harm_but_two_do():
    with ChatServer(lambda _: VERDICT) as server:
        found = look(f"{server.base_url}/")
        assert f"--base-url {server.base_url}," in look(f"{server.base_url}//")["address"].advice
    assert found["judgement of the model"].status == "ok"


def test_a_model_that_is_not_listed_is_a_warning():
    with ChatServer(lambda _: VERDICT) as server:
        found = look(server.base_url, model="scriptde")
    assert found["model"].status == "warn"
    assert "scripted" in found["model"].found


def test_an_unknown_model_is_a_failure_with_advice():
    with ChatServer(lambda _: Reply(status=404, content="no such model")) as server:
        found = look(server.base_url, model="other")
        assert server.calls == 1
    assert found["model answers"].status == "fail"
    assert "--model" in found["model answers"].advice


def test_a_hang_ends_in_time_and_stops_the_calls():
    started = time.monotonic()
    with ChatServer(lambda _: Reply(fault="hang")) as server:
        found = look(server.base_url, timeout=0.3)
        assert server.calls == 1
    assert time.monotonic() - started < 5
    assert "within 0.3 s" in found["model answers"].found


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(Reply(status=429, headers={"retry-after": "1"}), id="429"),
        pytest.param(Reply(status=403), id="403"),
        pytest.param(Reply(fault="reset"), id="reset"),
        pytest.param(Reply(fault="half"), id="half"),
    ],
)
def test_what_no_other_method_can_mend_takes_one_call(reply):
    with ChatServer(lambda _: reply) as server:
        found = look(server.base_url)
        assert server.calls == 1
    assert found["model answers"].status == "fail"
    assert found["model answers"].advice


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        pytest.param(http(200, "<html>Welcome</html>"), "a web page", id="html"),
        pytest.param(http(404, "<!doctype html>"), "a web page", id="html-404"),
        pytest.param(b"SSH-2.0-OpenSSH_9.6\r\n", "does not speak HTTP", id="not-http"),
        pytest.param(b"", "does not speak HTTP", id="closes"),
        pytest.param(None, "did not answer within", id="hang"),
    ],
)
def test_what_is_no_model_server_is_told_before_any_chat_call(answer, words):
    with odd_server(answer) as place:
        found = look(f"http://{place}/v1", timeout=0.5)
    assert found["address"].status == "fail"
    assert words in found["address"].found
    assert found["address"].advice
    assert found["model answers"].status == "skipped"


def test_a_server_without_a_list_of_models_needs_a_name():
    with odd_server(http(404, "{}", "application/json")) as place:
        found = look(f"http://{place}/v1")
    assert found["address"].status == "warn"
    assert found["model"].status == "fail"
    assert "--model" in found["model"].advice


def test_a_closed_port_is_told():
    found = look("http://127.0.0.1:9/v1")
    assert found["address"].found == "no server listens at 127.0.0.1:9"


def test_https_to_a_plain_server_is_told():
    with odd_server(http(400, "not in plain")) as place:
        found = look(f"https://{place}/v1")
    assert "does not speak TLS" in found["address"].found
    assert "http://" in found["address"].advice


def test_a_hang_before_the_first_byte_over_tls_is_told_as_a_hang():
    with odd_server(None) as place:
        found = look(f"https://{place}/v1", timeout=0.5)
    assert "did not answer within" in found["address"].found


def test_an_untrusted_certificate_is_told(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with odd_server(http(200, "{}"), context=context) as place:
        found = look(f"https://{place}/v1")
    assert "is not trusted" in found["address"].found
    assert "SSL_CERT_FILE" in found["address"].advice


def test_the_advice_on_an_untrusted_certificate_helps(certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with odd_server(http(404, "{}", "application/json"), context=context) as place:
        found = look(f"https://{place}/v1")
    assert found["address"].status == "warn"


def test_a_proxy_that_does_not_listen_is_named_without_its_password(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://me:hidden-word@127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://me:hidden-word@127.0.0.1:9")
    found = look("http://model.example.org/v1")
    assert found["address"].found.startswith("no server listens at 127.0.0.1:9 (the proxy of http")
    assert "NO_PROXY=model.example.org" in found["address"].advice
    assert "hidden-word" not in repr(found)


def test_a_proxy_that_needs_a_missing_package_is_told(monkeypatch):
    monkeypatch.setenv("all_proxy", "socks5://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "socksio", None)
    found = look("http://model.example.org/v1")
    assert "socksio" in found["address"].found
    assert "pip install socksio" in found["address"].advice


def test_no_proxy_keeps_an_address_off_the_proxy(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "model.example.org")
    assert proxy_for("http://model.example.org/v1") == ""
    assert proxy_for("http://other.example.org/v1") == "127.0.0.1:9"


def test_a_login_in_the_address_is_not_shown():
    found = look("http://me:hidden-word@127.0.0.1:9/v1")
    assert "hidden-word" not in repr(found)


def test_a_name_that_does_not_resolve_is_told():
    error = ConnectionError("failed")
    error.__cause__ = socket.gaierror(-2, "Name or service not known")
    found, advice = explain(error, "http://modle.example.org/v1", 5)
    assert found == "the name in modle.example.org does not resolve"
    assert advice


def test_a_key_that_is_needed_and_missing_stops_before_any_call():
    found = {one.name: one for one in examine(model="openai:gpt-5-mini", **OFFLINE)}
    assert found["key"].status == "fail"
    assert "export OPENAI_API_KEY" in found["key"].advice


def test_a_provider_whose_package_is_missing_is_told():
    found = {one.name: one for one in examine(model="nosuch:model", **OFFLINE)}
    assert found["model"].status == "fail"
