"""`deepera papers`: a base built, searched, shown and followed on the command line."""

import json
import re

import pytest

from papers.world import invent_papers, write_lines

pytestmark = pytest.mark.full


@pytest.fixture
def base(deepera, tmp_path):
    source = write_lines(tmp_path / "p.jsonl", invent_papers(60))
    file = tmp_path / "b.papers"
    result = deepera("papers", "build", str(source), "--library", str(file), "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["added"] == 60
    return str(file)


def test_a_search_shows_papers_and_json_has_all_of_them(deepera, base):
    shown = deepera("papers", "search", "study of sites", "-l", base, "-k", "3")
    assert shown.exit_code == 0
    assert len(shown.stdout.splitlines()) == 3
    found = deepera("papers", "search", "study of sites", "-l", base, "-k", "3", "--json")
    hits = json.loads(found.stdout)["hits"]
    assert all(one["paper"]["id"] in shown.stdout for one in hits)


def test_a_search_says_that_it_reads_no_limits_in_words(deepera, base):
    said = deepera("papers", "search", "kelp, since 2018", "-l", base).stderr
    assert "--where 'year>=2018' leaves papers out" in said
    args = ("papers", "search", "kelp, since 2018", "-l", base)
    assert deepera(*args, "-q").stderr == ""
    assert deepera(*args, "--where", "year>=2018").stderr == ""


def test_a_paper_is_shown_by_id_or_title_and_its_citations_are_followed(deepera, base):
    plain = json.loads(deepera("papers", "show", "w0007", "-l", base, "--json").stdout)
    by_title = deepera("papers", "show", plain["title"].upper(), "-l", base, "--json")
    assert json.loads(by_title.stdout) == plain
    cited = json.loads(deepera("papers", "cite", "w0007", "-l", base, "--json").stdout)
    assert cited["paper"] == plain
    assert {"references", "citations"} < set(cited)
    assert "60 papers" in deepera("papers", "show", "-l", base).stdout


def test_lists_are_written_for_reference_managers_and_spreadsheets(deepera, base):
    query = ("papers", "search", "study of sites", "-l", base, "-k", "3", "--format")
    assert deepera(*query, "bibtex").stdout.count("@article{ames") >= 2
    assert deepera(*query, "ris").stdout.count("ER  -") == 3
    header, first, *rest = deepera(*query, "csv").stdout.splitlines()
    assert header == "rank,id,title,authors,year,venue,doi,url,score,by"
    assert (first.split(",")[0], len(rest)) == ("1", 2)
    assert json.loads(deepera(*query, "json").stdout)["hits"][0]["rank"] == 1
    shown = deepera("papers", "show", "w0007", "-l", base, "--format", "ris").stdout
    assert "ID  - w0007" in shown
    cited = json.loads(deepera("papers", "cite", "w0030", "-l", base, "--json").stdout)
    table = deepera("papers", "cite", "w0030", "-l", base, "--format", "csv").stdout
    assert table.count(",cited by w0030") == len(cited["references"]["papers"]) > 0
    assert table.count(",cites w0030") == len(cited["citations"]["papers"])


def test_lookups_are_named_in_words_and_listed_on_request(deepera, base, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = deepera("papers", "ask", "study of sites", "-l", base, "-k", "3").stdout
    assert "found by search 1" in shown
    assert re.search(r"found by (?:\w+ \d+, ){2}\w+ \d+ and \d+ more", " ".join(shown.split()))
    assert "looked up:" not in shown
    assert max(map(len, shown.splitlines())) <= 80
    told = deepera("papers", "ask", "study of sites", "-l", base, "-k", "3", "-v").stdout
    assert "   - search 1: study of sites (" in told
    assert " lookups in " in told


def test_a_base_is_checked_by_doctor(deepera, base, tmp_path):
    result = deepera("doctor", "--library", base)
    assert (result.exit_code, "60 papers" in result.stdout) == (0, True)
    assert deepera("doctor", "--library", tmp_path / "no.papers").exit_code == 1
    assert deepera("doctor", "--library", "http://127.0.0.1:9").exit_code == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("search", "x", "--json", "--format", "csv"), "give --json or --format csv, not both"),
        (("show", "--format", "ris"), "--format ris is for a paper; name one"),
        (("search", "x", "--venues", "ICR"), "near it: ICRS"),
        (("search", "x", "--mode", "dence"), "did you mean 'dense'?"),
        (("search", "x", "--year-from", "2020", "--year-to", "2010"), "year_from is after year_to"),
        (("show", "w9999"), "has the id or the title 'w9999'"),
    ],
)
def test_a_usage_error_is_one_line(deepera, base, arguments, message):
    result = deepera("papers", *arguments, "-l", base)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


def test_bad_records_are_told_and_the_code_is_1(deepera, tmp_path):
    (tmp_path / "p.jsonl").write_text('{"id": "a", "title": "Tide tables"}\nbroken\n')
    base = str(tmp_path / "b.papers")
    result = deepera("papers", "build", str(tmp_path / "p.jsonl"), "-l", base)
    assert result.exit_code == 1
    assert "p.jsonl, record 2: not JSON" in result.output
    assert "1 bad line" in result.output


def test_a_file_without_a_record_is_told(deepera, tmp_path):
    (tmp_path / "p.ris").write_text("TY  - JOUR\nTI  - Tea\nDO  - 10.5555/tea\nER  - \n")
    base = tmp_path / "b.papers"
    for given in ([], ["--form", "bibtex"]):
        told = deepera("papers", "build", tmp_path / "p.ris", "-l", base, *given)
        assert ("no record was found" in told.output) == bool(given)
    again = deepera("papers", "build", tmp_path / "p.ris", "-l", base)
    assert "1 there before" in again.output


def test_a_missing_base_says_what_makes_one(deepera, tmp_path):
    result = deepera("papers", "search", "x", "-l", str(tmp_path / "no.papers"))
    assert result.exit_code == 2
    assert "deepera papers build makes one" in " ".join(result.output.split())


def test_papers_are_asked_for_with_limits_in_words(deepera, base):
    question = "studies of tide forecasting, excluding graph kernels, before 2015"
    found = deepera("papers", "ask", question, "-l", base, "--json")
    assert found.exit_code == 0
    plain = json.loads(found.stdout)
    assert plain["limits"]["exclude"] == ["graph kernels"]
    assert all((one["paper"]["year"] or 0) < 2015 for one in plain["papers"])
    assert {one["against"] for one in plain["left_out"]} == {"graph kernels", "up to 2014"}
    shown = deepera("papers", "ask", question, "-l", base, "-k", "2")
    assert "limits: exclude graph kernels; year to 2014" in shown.stdout
    drawn = deepera("papers", "ask", question, "-l", base, "--format", "mermaid")
    assert drawn.stdout.startswith("flowchart LR")
    exported = deepera("papers", "ask", question, "-l", base, "-k", "2", "--format", "ris")
    assert exported.stdout.count("ER  -") == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--style", "scout"), "--style scout needs --model"),
        (("--selector", "llm"), "--selector llm needs --model"),
        (("--selector", "deepera", "--judge", "llm"), "--judge llm needs --model"),
        (("--judge", "rules"), "--judge goes with --selector deepera"),
        (("--fit", "0.3"), "--fit goes with --selector deepera"),
        (("--selector", "deepera", "--fit", "3"), "threshold must be"),
        (("--json", "--format", "ris"), "give --json or --format ris, not both"),
        (("--venues", "ICR"), "near it: ICRS"),
    ],
)
def test_options_of_ask_that_do_not_fit_are_told(deepera, base, arguments, message):
    result = deepera("papers", "ask", "tides", "-l", base, *arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


def test_the_evidence_graph_selects_with_the_judge_that_is_named(deepera, base):
    asked = ("papers", "ask", "tide forecasting, excluding graph kernels", "-l", base, "--json")
    result = deepera(*asked, "--style", "sparse", "--selector", "deepera", "--judge", "rules")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    manifest = found["manifest"]
    assert (manifest["selector"], manifest["judge"]) == ("deepera", "rules, threshold 0.5")
    assert any(one["score"] is not None and one["reason"] for one in found["papers"])
    assert {one["against"] for one in found["left_out"]} == {"graph kernels"}


def test_a_model_that_cannot_be_reached_is_told_with_code_3(deepera, base, no_wait):
    server = ("--model", "m", "--base-url", "http://127.0.0.1:9/v1")
    result = deepera("papers", "ask", "tides", "-l", base, *server)
    assert result.exit_code == 3
    assert "cannot be reached" in result.stderr


def test_a_retracted_paper_is_named_so_by_its_notice(deepera, tmp_path):
    title = "Wax coating and the firmness of stored apples"
    about = {"authors": ["Lee, Hana"], "year": 2019}
    works = [
        {"id": "lee", "title": title, "abstract": "Wax kept apples firm.", **about},
        {"id": "note", "title": f"Retraction notice: {title}", "abstract": "Withdrawn.", **about},
        {"id": "roy", "title": "Wax coating of stored pears", "abstract": "Wax slowed pears."},
        {"id": "own", "title": "Ripening", "references": ["lee", "roy"]},
    ]
    source, base = tmp_path / "p.jsonl", str(tmp_path / "b.papers")
    source.write_text("".join(json.dumps(one) + "\n" for one in works))
    deepera("papers", "build", str(source), "--library", base)

    def shown(*arguments):
        return " ".join(deepera("papers", *arguments, "-l", base).stdout.split())

    for command in ("ask", "search"):
        text = shown(command, "wax coating of stored apples")
        assert "RETRACTED: " in text.partition("roy")[0]
        assert text.count("RETRACTED") == 2
    assert f"lee RETRACTED: {title}" in shown("show", "lee")
    assert "RETRACTED" not in shown("show", "roy")
    cited = shown("cite", "own")
    assert f"lee RETRACTED: {title[:20]}" in cited
    assert "roy Wax" in cited
    assert "RETRACTED; cited by own" in shown("cite", "own", "--format", "ris")
    asked = ("ask", "wax coating of stored apples", "--format")
    assert "N1 - RETRACTED; " in shown(*asked, "ris")
    found = json.loads(shown("ask", "wax coating of stored apples", "--json"))["papers"]
    assert {one["paper"]["id"]: one.get("paper_status") for one in found} == {
        "lee": "retracted",
        "note": "retracted",
        "roy": None,
        "own": None,
    }
    listed = json.loads(shown("cite", "own", "--json"))["references"]["papers"]
    hits = json.loads(shown("search", "wax coating", "--json"))["hits"]
    [match] = [one["paper"] for one in hits if one["paper"]["id"] == "lee"]
    alone = json.loads(shown("show", "lee", "--json", "--where", "year<=2019"))
    assert {one["id"]: one.get("paper_status") for one in listed} == {
        "lee": "retracted",
        "roy": None,
    }
    assert (match["paper_status"], alone["paper_status"]) == ("retracted", "retracted")
