"""`deepera index` and `deepera ask`."""

import json
import re
import socket
import subprocess
import sys

import pytest

from cli.conftest import QUESTION, TEA, line
from deepera_graph import RerankResult
from deepera_graph.cli.judging.candidates import read_conditions
from deepera_graph.errors import SettingsError
from deepera_graph.retrieval.collections.passage_store import PassageStore
from support.openai_server import ChatServer, Reply

pytestmark = pytest.mark.full

ABSTRACTS = [
    {
        "id": "trial",
        "text": "Green tea lowered fasting glucose by 4%.",
        "title": "A trial",
        "year": 2012,
    },
    {"id": "review", "text": "Effects of green tea on fasting glucose are debated.", "year": 2020},
    {"id": "hills", "text": "Kelp grows under water.", "year": 2021},
]
EMBEDDINGS = '''
"""Embeddings for a test."""
from langchain_core.embeddings import DeterministicFakeEmbedding


def build():
    return DeterministicFakeEmbedding(size=8)
'''


@pytest.fixture
def source(questions):
    return questions(*ABSTRACTS, name="papers.jsonl")


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def indexed(deepera, source, store):
    result = deepera("index", source, "--library", "papers", "--path", store)
    assert result.exit_code == 0, result.output
    return store


@pytest.fixture
def ask(deepera):
    def run(*args):
        return deepera("ask", QUESTION, "--backend", TEA, *args)

    return run


def test_index_says_how_many_passages_there_are(deepera, source, store):
    args = ("index", source, "--library", "papers", "--path", store)
    assert deepera(*args).stdout == (
        "3 passages indexed in 'papers' (sparse); it holds 3 now, of 1 paper\n"
    )
    assert json.loads(deepera(*args, "--json").stdout) == {
        "library": "papers",
        "mode": "sparse",
        "indexed": 3,
        "replaced": 0,
        "removed": 0,
        "missing": [],
        "passages": 3,
        "papers": 1,
        "files": {".jsonl": 1},
        "skipped": [],
    }


@pytest.mark.parametrize("option", ["--search", "--mode"])
def test_how_a_collection_is_searched_has_two_names(deepera, source, store, option):
    result = deepera("index", source, "-l", "papers", "--path", store, option, "dense")
    assert result.exit_code == 2
    assert "embeddings" in result.stderr


def test_collections_are_kept_in_the_data_folder(deepera, source, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert deepera("index", source, "-l", "papers").exit_code == 0
    assert (tmp_path / "data" / "deepera").is_dir()
    assert deepera("ask", QUESTION, "-l", "papers", "--json").exit_code == 0


def test_ask_shows_the_evidence_of_a_collection(ask, indexed):
    result = ask("--library", "papers", "--path", indexed)
    assert result.exit_code == 0
    assert "0.93" in result.stdout
    assert "0.93  A trial. 2012" in result.stdout
    assert "Green tea lowered fasting glucose by 4%." in result.stdout
    assert "ok: 1 kept, 1 dropped, 0 failed" in result.stdout


def test_ask_indexes_a_source_in_memory(ask, source):
    result = json.loads(ask(source, "--json").stdout)
    assert [one["id"] for one in result["ranking"]] == ["trial", "review"]
    assert result["ranking"][0]["metadata"]["source"] == str(source)


@pytest.mark.parametrize("args", [(), ("--verbose",), ("--threshold", "0.99"), ("--json",)])
def test_nothing_that_is_shown_moves_the_cursor_or_turns_the_writing(ask, questions, args):
    hidden = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eppa\r"
    about = {"title": f"A trial{hidden}", "authors": [f"Lee{hidden}"], "journal": hidden}
    text = f"Green tea lowered fasting glucose{hidden} in 60 adults."
    source = questions({"id": f"a{hidden}", "text": text, "metadata": about})
    result = ask(source, *args)
    shown = result.stdout + result.stderr
    assert "owned" in result.stdout
    assert [one for one in shown if one != "\n" and not one.isprintable()] == []


def test_a_terminal_has_colours_of_ours_and_no_others(ask, questions, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    text = "Green tea lowered fasting glucose \x1b[5m by 4%."
    shown = ask(questions({"id": "a", "text": text})).stdout
    assert "\x1b[1" in shown
    assert "\x1b[5m" not in shown


def test_ask_takes_conditions(ask, indexed):
    args = ("--library", "papers", "--path", indexed, "--json")
    after = json.loads(ask(*args, "--where", 'year={"gte": 2015}').stdout)
    exactly = json.loads(ask(*args, "--where", "year=2012").stdout)
    shortly = json.loads(ask(*args, "--where", "year > 2012", "--where", "year<=2020").stdout)
    assert [one["id"] for one in after["ranking"]] == ["review"]
    assert [one["id"] for one in shortly["ranking"]] == ["review"]
    assert [one["id"] for one in exactly["ranking"]] == ["trial"]


def test_an_interrupt_of_index_says_what_the_library_holds(deepera, source, tmp_path, monkeypatch):
    index = ("index", source, "--library", "papers", "--path", str(tmp_path / "lib"))
    assert deepera(*index).exit_code == 0

    def interrupt(*args, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr(PassageStore, "add", interrupt)
    result = deepera(*index)
    assert result.exit_code == 130
    assert "'papers' holds 3 passages; the same command again adds the rest" in result.stderr


def test_limits_at_the_end_of_a_question_leave_out_what_is_named(deepera, questions):
    about = {"title": "Green tea and fasting glucose"}
    text = "Green tea lowered fasting glucose in 60 adults."
    source = questions(
        {"id": "old", "text": text, "metadata": {**about, "year": 2012}},
        {"id": "new", "text": text, "metadata": {"title": "Tea", "year": 2019}},
        {"id": "review", "text": text, "metadata": {"title": "Tea: a review", "year": 2019}},
        {"id": "undated", "text": text, "metadata": {"title": "Of tea"}},
    )
    asked = f"{QUESTION.rstrip('?')}, since 2015, excluding reviews?"
    note = (
        "limits of the question (year>=2015, no reviews) leave out 2 of 4 passages: Green tea and "
        "fasting glucose (2012, from 2015 on); Tea: a review (2019, no reviews)"
    )
    shown = deepera("ask", asked, source)
    assert f"note: {note}" in " ".join(shown.stdout.split())
    for more in ("--json", "--quiet", "--dry-run"):
        assert note in deepera("ask", asked, source, more).stderr
    found = json.loads(deepera("ask", asked, source, "--json").stdout)
    assert {one["id"] for one in found["ranking"]} == {"new", "undated"}
    assert (found["question"], found["warnings"][0]) == (QUESTION, note)
    assert note in deepera("table", asked, source).stdout
    alone = deepera("ask", f"{QUESTION.rstrip('?')}, since 2001?", source)
    assert "(year>=2001) leave out none of 4 passages" in " ".join(alone.stdout.split())


def test_limits_of_other_things_are_said_to_leave_nothing_out(deepera, source):
    asked = f"{QUESTION.rstrip('?')}, excluding mice and children?"
    for command in ("ask", "table"):
        said = deepera(command, asked, source).stderr
        assert "(no mice, no children) are judged as words, and leave no paper out" in said
        assert "set them apart" not in said


@pytest.mark.parametrize(
    "said",
    [
        "only cohort studies", "prospective studies only", "only studies in humans",
        "limited to observational studies", "only non-randomised trials",
    ],
)  # fmt: skip
def test_kinds_of_studies_that_are_not_told_are_said_to_leave_nothing_out(deepera, source, said):
    shown = deepera("ask", f"{QUESTION.rstrip('?')}, {said}?", source).stderr
    assert f"({said}) are judged as words, and leave no paper out; only years and kinds" in shown
    assert "of papers do: reviews, meta-analyses, trials, randomised trials" in shown


@pytest.mark.parametrize(
    "asked",
    [
        "Does tea help only if studies are small?", "Does tea lower glucose only in trials?",
        "Does tea help women only?", "Is tea safe, or only coffee?", "Does tea only help?",
    ],
)  # fmt: skip
def test_only_within_a_question_is_no_limit(deepera, source, asked):
    assert "judged as words" not in deepera("ask", asked, source).stderr


def test_all_that_limits_leave_out_is_named_to_programs(deepera, questions):
    source = questions(
        *(
            {"id": f"{n}", "text": f"Tea {n}.", "metadata": {"title": f"Tea {n}", "year": 2000}}
            for n in range(7)
        ),
    )
    asked = "Does tea lower glucose, since 2015?"
    assert "and 2 more: -v names them" in " ".join(deepera("ask", asked, source).stdout.split())
    for more in ("--json", "-v"):
        shown = deepera("ask", asked, source, more)
        assert all(
            f"Tea {n} (2000" in " ".join((shown.stdout + shown.stderr).split()) for n in range(7)
        )


def test_of_like_options_the_nearest_is_named(deepera, source):
    assert "(Possible options: --top-n)" in deepera("ask", QUESTION, source, "--topn", "3").stderr
    assert "Possible options" not in deepera("check", source, source, "--report").stderr


def test_limits_within_a_question_are_said_to_leave_nothing_out(deepera, source):
    asked = f"{QUESTION.rstrip('?')} since 2015?"
    result = deepera("ask", asked, source)
    assert "(year>=2015) are judged as words" in result.stderr
    assert "or take --where 'year>=2015'" in result.stderr
    large = deepera("ask", f"{QUESTION.rstrip('?')} in trials with more than 300 people?", source)
    assert "(trials with more than 300 people) are judged as words" in large.stderr
    assert "limits in the question" not in deepera("ask", QUESTION, source).stderr
    assert "limits in the question" not in deepera("ask", asked, source, "--quiet").stderr


def test_retrieve_limits_the_candidates(ask, source):
    assert len(json.loads(ask(source, "--retrieve", "1", "--json").stdout)["ranking"]) == 1


def test_ask_says_what_to_try_when_nothing_passes(ask, source):
    result = ask(source, "--threshold", "0.99")
    assert result.exit_code == 0
    assert "lower --threshold" in result.stdout
    assert " 1. score 0.93, below the threshold\n    A trial. 2012" in result.stdout
    assert "No evidence: none of 2 passages reaches 0.99." in result.stdout
    assert "[trial] retrieved as number 1" in result.stdout


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ('yaer={"gte": 2015}', "no passage has metadata 'yaer'; did you mean 'year'? known: "),
        ("YEAR=2012", "no passage has metadata 'YEAR'; did you mean 'year'? known: "),
        ("journal.name=x", "no passage has metadata 'journal.name'; known: source, title, year"),
    ],
)
@pytest.mark.parametrize("question", [QUESTION, "zzz"])
def test_a_condition_on_a_field_that_no_passage_has_is_an_error(
    deepera, source, question, where, reason
):
    result = deepera("ask", question, source, "--where", where)
    assert (result.exit_code, result.stdout) == (2, "")
    assert reason in result.stderr


@pytest.mark.parametrize("where", ["year>=2018", "since 2018", "year=2021"])
def test_a_year_that_is_a_text_is_found_and_passages_without_one_are_told(ask, tmp_path, where):
    lines = [
        {"id": "text", "year": "2021"}, {"id": "number", "year": 2021}, {"id": "none"},
        {"id": "day", "year": "2021-05-01"}, {"id": "date", "date": "2021-05-01"},
    ]  # fmt: skip
    (tmp_path / "years.jsonl").write_text(
        "\n".join(json.dumps({**one, "text": f"{QUESTION} {one['id']}"}) for one in lines)
    )
    result = ask(tmp_path / "years.jsonl", "--where", where, "--json")
    told = json.loads(result.stdout)
    assert {one["id"] for one in told["ranking"]} == {"text", "number", "day", "date"}
    assert told["warnings"][0] == "1 passage has no year and was left out"
    assert "1 passage has no year and was left out" in result.stderr


def test_ask_says_which_condition_no_passage_meets(ask, source):
    result = ask(source, "--where", "year=1990")
    assert result.exit_code == 0
    reason = "no passage meets --where year=1990, of 2 that the question would find"
    assert reason in result.stderr
    assert "Nothing was retrieved.\n" in result.stdout


def test_what_on_empty_keeps_is_loudly_below_the_threshold(ask, source, monkeypatch):
    monkeypatch.setenv("DEEPERA_ON_EMPTY", "top1")
    shown = " ".join(ask(source, "--threshold", "0.99").stdout.split())
    assert "BELOW THE THRESHOLD: none of 2 passages reaches 0.99." in shown
    assert "It is not evidence." in shown
    assert "score 0.93, below the threshold A trial" in shown
    assert "no_evidence: 0 kept, 1 shown by on_empty=top1, 1 dropped" in shown


def test_the_reading_of_the_question_and_all_dropped_are_shown_on_request(deepera, source):
    args = ("ask", QUESTION, source, "--threshold", "1")
    assert "read as" not in deepera(*args).stdout
    assert "read as" in deepera(*args, "-v").stdout
    dropped = deepera("ask", QUESTION, source, "--threshold", "0", "--top-n", "1", "-v").stdout
    assert re.search(r"^ 2\. 0\.\d\d  \[review\] ", dropped, re.MULTILINE)


def test_what_passes_and_is_left_out_for_others_is_told_from_what_does_not(deepera, source):
    few = ("ask", QUESTION, source, "--threshold", "0", "--top-n", "1")
    shown = " ".join(deepera(*few).stdout.split())
    assert re.search(r"1 kept(?: \(.*?\))?, 1 dropped \(1 by top_n=1\), 0 failed", shown), shown
    page = deepera(*few, "--format", "html").stdout
    assert "dropped 1 (1 by top_n=1), failed 0" in page
    assert "<h2>Left out, as top_n others are kept</h2>" in page
    assert "Below the threshold" not in page
    for args in (("--threshold", "0", "--top-n", "2"), ("--threshold", "0.99", "--top-n", "1")):
        assert "by top_n" not in deepera("ask", QUESTION, source, *args).stdout


def test_how_few_share_a_word_with_the_question_is_said_where_nothing_is_kept(deepera, source):
    said = deepera("ask", "Does coffee lower anything?", source, "--threshold", "1").stderr
    assert re.search(r"\b1 of \d+ passages shares a word with the question", said), said
    every = deepera("ask", "Does coffee lower anything?", source, "--threshold", "0").stderr
    assert "a word with the question" not in every


def test_evidence_is_cited_by_authors_title_journal_year_and_doi(ask, questions):
    paper = {
        "id": "x", "Title": "A trial", "Author": "Lee, Ada; Roy, Bo", "Publication Year": 2012,
        "journal": "Tea", "DOI": "10.1234/x", "abstract": "Green tea lowered fasting glucose.",
    }  # fmt: skip
    shown = " ".join(ask(questions(paper, name="papers.jsonl")).stdout.split())
    assert "0.93 Lee and Roy. A trial. Tea, 2012. doi:10.1234/x" in shown
    assert "[x] retrieved as number 1" in shown


def test_a_study_is_shown_once_with_its_other_passages_below(ask, questions):
    title = "A trial of green tea"
    texts = ("Green tea lowered fasting glucose.", "Green tea lowered fasting glucose by 5%.")
    records = [
        {"id": f"p{n}", "title": title, "doi": doi, "text": text}
        for n, (doi, text) in enumerate(zip(("10.1234/x", "10.1234/X"), texts, strict=True))
    ]
    shown = " ".join(ask(questions(*records, name="papers.jsonl")).stdout.split())
    assert shown.count(title) == 1
    assert "2. also [p1] (0.93): Green tea lowered fasting glucose by 5%." in shown
    assert "2 kept of 1 study," in shown


def test_every_passage_counts_by_itself_on_request(ask, questions):
    texts = {
        "a": "Green tea lowered fasting glucose.",
        "b": "Green tea lowered fasting glucose by 5%.",
    }
    study = {"title": "A trial of green tea", "doi": "10.1234/x"}
    records = [{"id": id, "text": text, **study} for id, text in texts.items()]
    source = questions(*records, name="twice.jsonl")
    together, apart = ask(source), ask(source, "--per-passage")
    assert ("also [" in together.stdout, "also [" in apart.stdout) == (True, False)
    assert [line[:4] for line in apart.stdout.splitlines() if line[2:3] == "."] == [" 1. ", " 2. "]
    table = ask(source, "--per-passage", "--format", "csv").stdout
    assert len(table.splitlines()) == 3
    assert ask(source, "--per-passage", "--report").exit_code == 2


def test_a_source_stands_below_the_score_however_long_its_label_is(ask, questions, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    title = "A trial of green tea and fasting glucose in adults who fast"
    source = questions({**ABSTRACTS[0], "title": title}, name="long.jsonl")
    lines = ask(source).stdout.splitlines()
    [head] = [place for place, one in enumerate(lines) if one.startswith(" 1. ")]
    assert lines[head + 1].startswith("    ")
    assert lines[head + 1][4] != " "


def test_a_file_of_notices_marks_a_retracted_paper(ask, questions, tmp_path):
    notices = tmp_path / "notices.csv"
    notices.write_text("OriginalPaperDOI,RetractionNature\n10.1234/X,Retraction\n")
    paper = {"id": "x", "doi": "10.1234/x", "text": "Green tea lowered fasting glucose."}
    source = questions(paper, name="papers.jsonl")
    assert "RETRACTED" not in ask(source).stdout
    shown = " ".join(ask(source, "--retractions", notices).stdout.split())
    assert "0.93 RETRACTED: doi:10.1234/x" in shown
    assert "note: 1 passage that was kept is of a retracted paper" in shown
    missing = ask(source, "--retractions", tmp_path / "gone.csv")
    assert missing.exit_code == 2
    assert "gone.csv: cannot be read" in missing.stderr


@pytest.mark.parametrize(
    ("form", "beginning"),
    [
        ("csv", "decision,rank,score,direction,title"),
        ("markdown", f"# {QUESTION}"),
        ("html", "<!doctype html>"),
        ("bibtex", "@misc{2012trial,"),
        ("ris", "TY  - GEN\nTI  - A trial\n"),
        ("json", "{\n"),
    ],
)
def test_the_evidence_is_written_in_a_format(ask, source, form, beginning):
    result = ask(source, "--format", form)
    assert result.exit_code == 0
    assert result.stdout.startswith(beginning)
    assert "A trial" in result.stdout
    assert result.stderr == ""


def test_json_is_a_format_and_has_the_names_of_rerank(deepera, ask, source, questions, read):
    found = ask(source, "--format", "json").stdout
    plain = json.loads(found)
    again = {**json.loads(ask(source, "--json").stdout), "seconds": plain["seconds"]}
    assert again == plain
    out = source.parent / "out.jsonl"
    deepera("rerank", questions(line("q1")), "-o", out, "--backend", TEA)
    [ranked] = read(out)
    assert set(ranked) - {"id"} <= set(plain)
    assert set(ranked["ranking"][0]) <= set(plain["ranking"][0])
    assert set(ranked["usage"]) <= set(plain["usage"])
    assert set(ranked["intent"]) == set(plain["intent"])
    assert RerankResult.from_json(found).kept[0].citation.title == "A trial"


def test_a_degraded_run_leaves_code_1(deepera, source):
    result = deepera("ask", QUESTION, source, "--backend", "support.scripted:broken_backend")
    assert result.exit_code == 1
    assert "degraded: 0 kept" in result.stdout


MESSES = {
    "prose": Reply(content="I would rather talk about tea."),
    "empty": Reply(content=""),
    "html": Reply(raw=b"<html>Log in</html>"),
}


@pytest.mark.parametrize("mess", MESSES)
@pytest.mark.parametrize("form", ["text", "markdown", "csv"])
def test_a_server_that_answers_nonsense_is_never_a_lack_of_evidence(deepera, source, form, mess):
    with ChatServer(lambda _: MESSES[mess]) as server:
        args = ("--base-url", server.base_url, "--model", "m", "--format", form, "--answer")
        result = deepera("ask", QUESTION, source, *args)
    shown = " ".join(result.stdout.split())
    assert result.exit_code == 1
    assert "evidence" not in shown.replace("evidence:", "")
    assert "Nothing could be judged: " in result.stderr
    if form == "csv":
        assert shown.count("failed") >= 2
    else:
        assert "Nothing could be judged: " in shown
    if form == "text":
        assert "the question could not be read: " in shown
        assert "read as" not in shown
        assert "; 0 calls;" not in shown


def test_what_failed_stands_below_its_number_and_one_reason_of_all_stands_once(
    deepera, source, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "24")
    with ChatServer(lambda _: MESSES["prose"]) as server:
        args = ("--base-url", server.base_url, "--model", "m")
        result = deepera("ask", QUESTION, source, *args)
    before, shown = result.stdout.split(" 1. –  ")
    assert " ".join(before.split()).count("could be judged: ") == 1
    wrapped = [one for one in shown.splitlines()[1:] if not one.startswith((" 2. –", "degraded"))]
    assert wrapped[0].startswith("    ")
    assert "(asked twice)" not in shown


def test_what_the_model_of_a_cascade_failed_on_is_shown_with_its_reason(
    deepera, source, monkeypatch
):
    monkeypatch.setenv("DEEPERA_CASCADE", "1")
    with ChatServer(lambda _: MESSES["prose"]) as server:
        args = ("--base-url", server.base_url, "--model", "m")
        result = deepera("ask", QUESTION, source, *args)
    shown = " ".join(result.stdout.split())
    assert "1 of 2 passages could not be judged: " in shown
    assert "The other does not reach 0." in shown
    assert "No evidence" not in shown
    assert "[trial] A trial" in shown


@pytest.mark.parametrize(
    ("limit", "reached"),
    [("MAX_CALLS=1", "1 calls"), ("MAX_SECONDS=0.2", "0.2 seconds")],
)
def test_a_budget_stop_is_told_as_one_and_leaves_code_1_if_nothing_was_judged(
    deepera, source, limit, reached, monkeypatch
):
    monkeypatch.setenv(*f"DEEPERA_{limit}".split("="))
    with ChatServer(lambda _: MESSES["prose"], latency=0.3) as server:
        args = ("--base-url", server.base_url, "--model", "m")
        result = deepera("ask", QUESTION, source, *args)
    shown = " ".join(result.stdout.split())
    stop = f"The budget stopped the run with nothing judged (budget reached: {reached}"
    assert stop in shown
    assert stop in result.stderr
    assert "0 failed, 2 not judged" in shown
    assert "No evidence" not in shown
    assert result.exit_code == 1


@pytest.mark.parametrize(
    ("where", "shown"),
    [
        (["year>2030"], "year>2030"),
        (["year >= 2030", "year<2040"], "year>=2030 and year<2040"),
        (['year={"gt": 2030}'], "year>2030"),
        (["year=[2030, 2031]"], "year=[2030, 2031]"),
        (["journal=Tea Letters"], "journal=Tea Letters"),
        (["open=true"], "open=true"),
    ],
)
def test_conditions_that_nothing_meets_are_told_as_they_were_written(ask, questions, where, shown):
    fields = {"year": 2001, "journal": "Tea", "open": False}
    source = questions({"text": "Green tea lowered fasting glucose.", **fields}, name="one.jsonl")
    result = ask(source, *(part for one in where for part in ("--where", one)))
    assert f"no passage meets --where {shown}, of 1 that" in result.stderr


def test_a_text_that_is_near_is_cut_between_words(ask, questions):
    text = "Growers of tea were asked for opinions. " * 12
    source = questions({"text": text, "title": "Tea"}, name="one.jsonl")
    shown = " ".join(ask(source, "--threshold", "1").stdout.split())
    assert re.search(r" (?:Growers|of|tea|were|asked|for|opinions\.) \.\.\. ", shown)
    assert "set DEEPERA_ON_EMPTY=top1, which keeps the best" in shown


@pytest.mark.parametrize("threshold", ["0", "1"])
def test_quiet_shows_the_result_and_no_remark(deepera, source, threshold):
    args = ("ask", QUESTION, source, "--threshold", threshold)
    loud, quiet = deepera(*args), deepera(*args, "-q")
    assert "judged in" in loud.stdout
    assert loud.stdout.startswith(quiet.stdout)
    for remark in ("judged in", "To see more", "note: "):
        assert remark not in quiet.stdout
    assert quiet.stderr == ""


def test_what_failed_is_told_quietly_too(deepera, source):
    with ChatServer(lambda _: MESSES["prose"]) as server:
        args = ("--base-url", server.base_url, "--model", "m", "-q")
        result = deepera("ask", QUESTION, source, *args)
    assert "Nothing could be judged: " in result.stdout
    assert "Nothing could be judged: " in result.stderr


def test_ask_says_so_when_nothing_is_found(deepera, source):
    for more in ((), ("--model", "m", "--base-url", "http://127.0.0.1:9/v1")):
        result = deepera("ask", "zzz", source, *more)
        assert result.exit_code == 0
        assert "Nothing was retrieved" in result.stdout
        assert "no passage shares a word with the question" in result.stderr
        assert "could not be read" not in result.stdout


def test_an_answer_of_the_local_backend_cites_its_evidence(deepera, questions):
    trial = {"id": "trial", "text": "Green tea lowered fasting glucose by 4% (p < 0.05)."}
    source = questions(trial, *ABSTRACTS[1:])
    args = ("ask", QUESTION, source, "--answer", "--threshold", "0", "--top-n", "1")
    answer = json.loads(deepera(*args, "--json").stdout)["answer"]
    assert answer["status"] == "answered"
    assert answer["citations"]
    shown = deepera(*args).stdout
    assert "cited: 1\n" in shown
    assert f"[{answer['citations'][0]}] retrieved as" in " ".join(shown.split())


def test_an_answer_without_evidence_says_so(deepera, source):
    result = deepera("ask", QUESTION, source, "--answer", "--threshold", "1")
    assert "no answer (insufficient evidence" in result.stdout


def test_embeddings_of_a_factory_make_a_hybrid_collection(deepera, source, monkeypatch):
    (source.parent / "my_embeddings.py").write_text(EMBEDDINGS, encoding="utf-8")
    args = ("--embeddings", "my_embeddings:build", "--library", "papers", "--path", "store")
    monkeypatch.chdir(source.parent)
    monkeypatch.syspath_prepend(source.parent)
    result = deepera("index", source, *args, "--json")
    del sys.modules["my_embeddings"]
    assert json.loads(result.stdout)["mode"] == "hybrid", result.output
    result = deepera("ask", QUESTION, *args, "--json")
    del sys.modules["my_embeddings"]
    assert len(json.loads(result.stdout)["ranking"]) == 3, result.output


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ((), "none was given"),
        (("source", "--library", "papers"), "a SOURCE and --library were given"),
        (("source", "--path", "store"), "--path and --qdrant-url go with --library"),
        (
            ("source", "--where", "year"),
            "in quotes, got 'year'",
        ),
        (("source", "--embeddings", "words"), "--embeddings must be"),
        (("source", "--embeddings", "json:dumps"), "cannot be built"),
        (("source", "--embeddings", "builtins:dict"), "must return LangChain Embeddings"),
        (("source", "--threshold", "7"), "threshold must be in [0, 1], got 7"),
        (("none.jsonl",), "no such file: 'none.jsonl'"),
        (("--library", "c", "--path", ":memory:"), "--path must be a folder"),
    ],
)
def test_options_that_do_not_go_together_are_one_line(ask, source, args, problem):
    result = ask(*(source if one == "source" else one for one in args))
    assert result.exit_code == 2
    assert problem in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_blank_question_is_an_error(deepera, source):
    result = deepera("ask", "  ", source)
    assert result.exit_code == 2
    assert "the question is empty" in result.stderr


def test_a_missing_collection_is_a_usage_error(ask, indexed):
    result = ask("--library", "other", "--path", indexed)
    assert result.exit_code == 2
    assert "unknown library 'other'; available: 'papers'; deepera index" in result.stderr
    near = ask("--library", "papres", "--path", indexed)
    assert "makes it; did you mean 'papers'?" in near.stderr


def test_a_missing_store_is_a_usage_error(ask, tmp_path):
    result = ask("--library", "papers", "--path", tmp_path / "nowhere")
    assert result.exit_code == 2
    assert "no passage store" in result.stderr


def test_a_folder_locked_by_another_process_leaves_code_3(ask, indexed, monkeypatch):
    code = (
        "import sys; from deepera_graph.retrieval.collections.store import open_store\n"
        "with open_store('papers', path=sys.argv[1]):\n"
        "    print('open', flush=True); sys.stdin.read()\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, indexed], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with holder:
        assert holder.stdout.readline() == b"open\n"
        monkeypatch.setattr("deepera_graph.cli.opening.stores._WAIT", 0)
        result = ask("--library", "papers", "--path", indexed)
        holder.stdin.close()
    assert result.exit_code == 3
    assert "another process has the passage store" in result.stderr


def test_an_unreachable_store_leaves_code_3(ask):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    result = ask("--library", "papers", "--qdrant-url", f"http://127.0.0.1:{port}")
    assert result.exit_code == 3
    assert "the Qdrant server at" in result.stderr


def test_an_unreachable_backend_leaves_code_3(deepera, source, no_wait):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/v1"
    result = deepera("ask", QUESTION, source, "--model", "any", "--base-url", url)
    assert result.exit_code == 3
    assert "cannot be reached" in result.stderr


@pytest.fixture
def mixed(tmp_path):
    """A folder with passages, bad records, an empty file and files of other kinds."""
    folder = tmp_path / "mixed"
    folder.mkdir()
    lines = [json.dumps(one) for one in ABSTRACTS]
    (folder / "a.jsonl").write_text("\n".join([lines[0], *["{oops"] * 300, *lines[1:]]))
    (folder / "empty.txt").touch()
    for name in ("lib.enw", "paper.doc"):
        (folder / name).write_bytes(b"x")
    return folder


def test_what_cannot_be_indexed_costs_itself_alone_and_is_named(deepera, mixed, store):
    result = deepera("index", mixed, "--library", "papers", "--path", store)
    assert result.exit_code == 1
    assert result.stdout.startswith("3 passages indexed in 'papers'")
    told = result.stderr.splitlines()
    assert told[0].startswith("deepera: skipped 2 files (1 .doc, 1 .enw): ")
    assert "paper.doc" in told[0]
    places = f"{mixed}/a.jsonl:2, 3, 4, 5, 6 and 295 more"
    assert told[1].startswith("deepera: skipped 300 records (not JSON: ")
    assert told[1].endswith(f": {places}")
    assert told[2:] == [
        f"deepera: skipped {mixed}/empty.txt: the file is empty",
        "deepera: -v names each of them, and why",
    ]


def test_all_that_was_skipped_is_named_on_request(deepera, mixed, store):
    result = deepera("index", mixed, "--library", "papers", "--path", store, "-v")
    told = result.stderr.splitlines()
    assert told[1].startswith(f"deepera: skipped {mixed}/a.jsonl:2: not JSON")
    assert told[300].startswith(f"deepera: skipped {mixed}/a.jsonl:301: not JSON")
    assert len(told) == 302


LIBRARY = "Key,Title,Publication Year,Abstract Note\n"


@pytest.mark.parametrize("n_before", [6, 25])
@pytest.mark.parametrize("command", ["index", "ask"])
def test_papers_without_abstract_are_told_in_one_line_and_are_no_failure(
    deepera, ask, tmp_path, store, command, n_before
):
    library = tmp_path / "library.csv"
    books = "".join(f"B{n},A book,1990,\n" for n in range(n_before))
    library.write_text(f"{LIBRARY}{books}P1,A trial,2012,Green tea lowered fasting glucose.\n")
    index = ("index", library, "--library", "papers", "--path", store)
    result = deepera(*index) if command == "index" else ask(library)
    assert result.exit_code == 0
    told = result.stderr.splitlines()
    which = f"{library}:2, 3, 4, 5, 6 and {n_before - 5} more"
    assert told[0] == f"deepera: skipped {n_before} records without text: {which}"
    assert told[1:] == ["deepera: -v names each of them, and why"]


def test_a_library_without_any_abstract_is_given_up(deepera, tmp_path, store):
    library = tmp_path / "library.csv"
    library.write_text(LIBRARY + "B,A book,1990,\n" * 30)
    result = deepera("index", library, "--library", "papers", "--path", store)
    assert result.exit_code == 1
    assert "none of its 30 lines can be used: line 2: has no text; expected one of" in result.stderr
    assert not store.exists()


def test_files_of_other_kinds_are_no_failure(deepera, mixed, store):
    (mixed / "empty.txt").unlink()
    (mixed / "a.jsonl").write_text(json.dumps(ABSTRACTS[0]))
    result = deepera("index", mixed, "--library", "papers", "--path", store, "--json")
    assert result.exit_code == 0
    skipped = json.loads(result.stdout)["skipped"]
    assert [one["place"].rpartition("/")[2] for one in skipped] == ["lib.enw", "paper.doc"]
    assert "skipped 2 files" in result.stderr


def test_ask_answers_from_what_can_be_read_and_names_the_rest(ask, mixed):
    result = ask(mixed, "--json")
    assert len(json.loads(result.stdout)["ranking"]) == 2
    assert "skipped 2 files (1 .doc, 1 .enw)" in result.stderr
    assert result.exit_code == 1


@pytest.mark.parametrize("content", ["", "{oops", '{"question": "Why?", "passages": ["a"]}\n' * 99])
@pytest.mark.parametrize("command", ["index", "ask"])
def test_a_file_without_a_passage_makes_no_collection(
    deepera, ask, tmp_path, store, content, command
):
    source = tmp_path / "q.jsonl"
    source.write_text(content)
    args = (source, "--library", "papers", "--path", store)
    result = deepera("index", *args) if command == "index" else ask(source)
    assert result.exit_code == 1
    assert f"skipped {source}: " in result.stderr
    assert result.stderr.endswith(f"no passages in '{source}'\n")
    assert result.stderr.count("\n") == 2
    assert ("see deepera rerank" in result.stderr) == ("question" in content)
    assert not store.exists()


FAILING = '''
"""Embeddings that fail at the first passage."""
from langchain_core.embeddings import DeterministicFakeEmbedding


class Failing(DeterministicFakeEmbedding):
    def embed_documents(self, texts):
        raise KeyboardInterrupt


def build():
    return Failing(size=8)
'''


def test_a_failed_run_leaves_no_empty_collection(deepera, source, store, tmp_path, monkeypatch):
    (tmp_path / "failing_embeddings.py").write_text(FAILING, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    args = ("index", source, "--path", store, "-l")
    assert deepera(*args, "old").exit_code == 0
    result = deepera(*args, "new", "--embeddings", "failing_embeddings:build")
    assert result.exit_code == 130
    missing = deepera("ask", QUESTION, "-l", "new", "--path", store)
    assert "unknown library 'new'; available: 'old'" in missing.stderr


def test_max_words_cuts_longer_texts(deepera, questions, store):
    text = " ".join(f"In plot {number} the otters ate the urchins." for number in range(60))
    source = questions({"id": "x", "text": text}, name="papers.jsonl")

    def index(*args):
        result = deepera("index", source, "-l", "papers", "--path", store, "--json", *args)
        return json.loads(result.stdout)["indexed"]

    assert (index(), index("--max-words", "200"), index("--max-words", "off")) == (2, 3, 1)


@pytest.mark.parametrize("value", ["0", "-3", "many", "1.5"])
def test_max_words_is_a_number_or_off(ask, source, value, monkeypatch):
    monkeypatch.setenv("DEEPERA_MAX_WORDS", value)
    result = ask(source)
    assert result.exit_code == 2
    assert f"max_words must be a whole number >= 1 or 'off', got '{value}'" in result.stderr


@pytest.mark.parametrize("second", [("-l", "b"), ("--library", "b"), ("--collection=b",)])
def test_two_collections_are_refused(ask, second):
    result = ask("-l", "a", *second)
    assert result.exit_code == 2
    assert "--library is given twice" in result.stderr
    assert result.stderr.count("library is given twice") == 1


def test_a_collection_made_with_our_embeddings_is_opened_with_them(deepera, source, store):
    place = ("--library", "papers", "--path", store)
    assert deepera("index", source, *place, "--embeddings", "local").exit_code == 0
    found = deepera("ask", QUESTION, *place, "--threshold", "0", "--json")
    assert found.exit_code == 0, found.output
    named = deepera("ask", QUESTION, *place, "--threshold", "0", "--json", "--embeddings", "local")
    ids = [[one["id"] for one in json.loads(one.stdout)["ranking"]] for one in (found, named)]
    assert ids[0] == ids[1]
    again = deepera("index", source, *place)
    assert (again.exit_code, "(hybrid)" in again.stdout) == (0, True)
    assert again.stderr == (
        "deepera: 'papers' was made with embeddings (EvidenceEmbeddings), so these passages are "
        "embedded with them, too\n"
    )


def test_a_collection_made_with_other_embeddings_names_the_flag(
    deepera, source, store, tmp_path, monkeypatch
):
    (tmp_path / "vectors_of_mine.py").write_text(EMBEDDINGS)
    monkeypatch.syspath_prepend(tmp_path)
    place = ("--library", "papers", "--path", store)
    made = deepera("index", source, *place, "--embeddings", "vectors_of_mine:build")
    assert made.exit_code == 0, made.output
    result = deepera("ask", QUESTION, *place, "--backend", TEA)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "made with DeterministicFakeEmbedding: give --embeddings MODULE:FAC" in result.stderr


def test_configured_embeddings_stand_back_where_a_collection_has_none(
    deepera, indexed, ask, monkeypatch
):
    monkeypatch.setenv("DEEPERA_EMBEDDINGS", "local")
    assert ask("--library", "papers", "--path", indexed).exit_code == 0


def test_a_source_in_place_of_the_question_is_named(deepera, source):
    for command in ("ask", "table"):
        result = deepera(command, source)
        assert result.exit_code == 2
        assert f"'{source}' was taken as the question: give one, in quotes" in result.stderr
    assert "none was given" in deepera("ask", QUESTION).stderr


def test_part_of_a_field_is_named_where_the_whole_of_it_is_none(deepera, questions):
    about = {"title": "Of tea", "authors": "Lee, Ada; Roy, Bo", "year": 2012}
    source = questions({"id": "a", "text": f"{QUESTION} Yes.", "metadata": about})

    def said(*conditions):
        where = [word for one in conditions for word in ("--where", one)]
        return deepera("ask", QUESTION, source, *where).stderr

    assert "without it; --where author~Roy finds what has it among other words" in said(
        "author=Roy"
    )
    assert "--where title~tea finds" in said("title=tea", "year=2012")
    for others in (("author=Zorn",), ("year=1990",), ("title=tea", "year=1990"), ("author~Zorn",)):
        assert "finds what has it" not in said(*others)


@pytest.mark.parametrize(("name", "is_list"), [("refs.bib", True), ("refs.jsonl", False)])
def test_references_without_abstracts_are_told_from_other_records(deepera, tmp_path, name, is_list):
    source = tmp_path / name
    texts = {"refs.bib": "@article{a, title={Tea}, year={2012}}\n", "refs.jsonl": '{"id": "a"}\n'}
    source.write_text(texts[name])
    said = deepera("ask", QUESTION, source).stderr
    assert f"no passages in '{source}'" in said
    assert ("its references have no abstracts; export them with abstracts" in said) == is_list


def test_a_question_and_a_source_the_wrong_way_round_are_named(deepera, source):
    result = deepera("ask", source, QUESTION)
    assert result.exit_code == 2
    assert "the QUESTION comes first, then the SOURCE" in result.stderr


def test_several_sources_are_asked_together(deepera, source, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("Green tea did not lower the glucose of mice (p = 0.71).")
    result = deepera("ask", QUESTION, source, other, "--backend", "rules", "--json", "-v")
    assert result.exit_code == 0, result.stderr
    sources = {one["metadata"]["source"] for one in json.loads(result.stdout)["ranking"]}
    assert sources == {source.as_posix(), other.as_posix()}


def test_years_of_where_may_be_words_and_the_rest_is_refused_with_what_was_understood():
    assert read_conditions(["since 2015"]) == {"year": {"gte": 2015}}
    assert read_conditions(["before 2020", "year>=2010"]) == {"year": {"lte": 2019, "gte": 2010}}
    with pytest.raises(SettingsError, match="understood was year>=2015, and nothing else"):
        read_conditions(["since 2015, not reviews"])
    for kinds in ("not reviews", "only trials"):
        with pytest.raises(SettingsError, match="kinds of papers go at the end of the question"):
            read_conditions([kinds])
    with pytest.raises(SettingsError, match=r"got 'without mice'$"):
        read_conditions(["without mice"])


def test_passages_of_another_file_that_are_replaced_are_told(deepera, questions, indexed, source):
    def index(file, *more):
        return deepera("index", file, "--library", "papers", "--path", indexed, *more)

    again = index(source)
    assert (again.exit_code, "replaced" in again.stderr) == (0, False)
    others = [{**ABSTRACTS[0], "text": "Kelp grew."}, {**ABSTRACTS[1], "id": "own"}]
    second = index(questions(*others, name="second.jsonl"))
    told = f"replaced 1 passage of {source} by others with the same ids"
    assert (second.exit_code, told in second.stderr) == (0, True)
    third = index(questions({**ABSTRACTS[0], "text": "Moss."}, name="third.jsonl"), "--json")
    assert json.loads(third.stdout)["replaced"] == 1
