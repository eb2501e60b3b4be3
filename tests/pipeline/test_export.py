"""A result as tables, BibTeX and plain data."""

import csv
import json
import re
from dataclasses import replace
from importlib.resources import files
from io import StringIO

import pytest
from markdown_it import MarkdownIt

from deepera_graph import EvidenceReranker, RerankResult, SettingsError, export_result
from deepera_graph.export import answer_with_numbers, describe_result
from deepera_graph.literature.citation import Citation
from deepera_graph.literature.reference_files import write_bibtex
from deepera_graph.retrieval.sources import read_passages
from deepera_graph.testing import judged, scripted_backend
from deepera_graph.text.plain import drop_mark

QUESTION = "Does wax <b>keep</b> apples firm?"
LEE = {
    "title": "Wax & apples | a 100% trial", "authors": ["Lée, Ada", "Roy, Bo"], "year": 2019,
    "journal": "Fruit Science", "doi": "10.1000/wax_1",
}  # fmt: skip
PASSAGES = [
    {"id": "lee#1", "text": "Wax kept apples firm.", "metadata": LEE},
    {"id": "lee#2", "text": "Firmness fell by 6%.", "metadata": LEE},
    {"id": "web", "text": "Wax is shiny.", "metadata": {"url": "https://example.org/wax"}},
    {"id": "bare", "text": "Apples are fruit."},
]
SCORES = {"Wax kept apples firm.": 0.93, "Firmness fell by 6%.": 0.9, "Wax is shiny.": 0.4}


@pytest.fixture
def rerank():
    def run(**settings):
        backend = scripted_backend(
            lambda task: judged(SCORES.get(task["text"], 0.1), quote=task["text"])
        )
        return EvidenceReranker(backend, **settings).rerank(QUESTION, PASSAGES)

    return run


def rows(text):
    return list(csv.DictReader(StringIO(text)))


def test_csv_has_a_row_a_kept_passage_with_its_source_quote_and_summary(rerank):
    first, second = rows(export_result(rerank(), "csv"))
    assert (first["decision"], first["score"], first["doi"]) == ("evidence", "0.93", LEE["doi"])
    assert (first["title"], first["authors"]) == (LEE["title"], "Lée, Ada; Roy, Bo")
    assert (first["year"], first["venue"]) == ("2019", "Fruit Science")
    assert first["url"] == "https://doi.org/10.1000/wax_1"
    assert first["quote"] == "Wax kept apples firm."
    assert first["summary"]
    assert second["id"] == "lee#2"


def test_the_whole_table_has_what_was_dropped_too(rerank):
    table = rows(export_result(rerank(), "csv", whole=True))
    assert [one["id"] for one in table] == ["lee#1", "lee#2", "web", "bare"]
    assert [one["decision"] for one in table] == ["evidence"] * 2 + ["below the threshold"] * 2


def test_without_evidence_a_table_has_the_best_dropped_and_says_so(rerank):
    result = rerank(threshold=0.99)
    assert [one["decision"] for one in rows(export_result(result, "csv"))] == [
        "below the threshold"
    ] * 3
    text = export_result(result, "markdown")
    assert "No evidence: none of 4 passages reaches 0.99." in text
    assert "they are not evidence" in text


def test_what_on_empty_kept_is_never_called_evidence(rerank):
    result = rerank(threshold=0.99, on_empty="top1")
    assert [one["decision"] for one in rows(export_result(result, "csv"))] == [
        "below the threshold"
    ]
    assert export_result(result, "bibtex").startswith("% No evidence")
    assert "Evidence: " not in export_result(result, "markdown")
    assert "not evidence" in export_result(result, "html")


def test_markdown_links_the_source_and_cannot_be_broken_by_a_title(rerank):
    table = drop_mark(export_result(rerank(), "markdown")).splitlines()[-2:]
    assert all(line.replace(r"\|", "").count("|") == 7 for line in table)
    assert "(https://doi.org/10.1000/wax_1)" in table[0]
    assert "0.93" in table[0]


HIDDEN = "\x1b]0;owned\x07 \x1b[2J \x9b31m \u202eppa\u202c"


@pytest.mark.parametrize("format", ["markdown", "html", "csv", "json", "bibtex", "ris"])
def test_half_of_a_surrogate_pair_can_be_written_to_a_file(format):
    passage = {"id": "a", "text": "Wax kept \ud83d apples.", "metadata": {"title": "Wax \udcff"}}
    backend = scripted_backend(lambda task: judged(0.9, quote=task["text"]))
    result = EvidenceReranker(backend).rerank("Wax \udc00?", [passage])
    text = export_result(result, format)
    assert "Wax" in text.encode().decode()
    assert RerankResult.from_json(result.to_json().encode().decode()) == result
    if format == "json":
        assert RerankResult.from_json(text) == result


@pytest.mark.parametrize("format", ["markdown", "html", "csv", "json", "bibtex", "ris"])
def test_no_export_carries_what_a_terminal_obeys(format):
    about = {"title": f"Wax{HIDDEN}", "authors": [f"Lee{HIDDEN}"], "year": 2019}
    about |= {"doi": "10.1000/a\x1b[2Jb", "journal": f"Fruit{HIDDEN}"}
    passage = {"id": f"a{HIDDEN}", "text": f"Wax kept{HIDDEN} apples firm.", "metadata": about}
    backend = scripted_backend(lambda task: judged(0.9, quote=task["text"]))
    result = EvidenceReranker(backend).rerank(f"Wax{HIDDEN}?", [passage])
    text = export_result(result, format)
    assert "owned" in text
    assert [one for one in text if one != "\n" and not one.isprintable()] == []
    if format == "json":
        assert RerankResult.from_json(text) == result


@pytest.mark.parametrize("field", ["doi", "url"])
def test_an_address_adds_no_entry_and_no_field_to_bibtex(field):
    broken = "10.1000/a},note={x}}@misc{planted,title={\n\\"
    given = {"doi": broken} if field == "doi" else {"url": f"https://example.org/{broken}"}
    text = write_bibtex([(Citation(id="1", title="Wax", **given), "")])
    assert (text.count("{"), text.count("}")) == (3, 3)
    assert [line.split("=")[0].strip() for line in text.splitlines()[1:-1]] == ["title", field]


def test_an_address_that_bibtex_can_hold_stays_as_it_is():
    doi = "10.1002/(SICI)1097-0258(1998)17:15<1661::AID-SIM968>3.0.CO;2-2"
    assert f"doi = {{{doi}}}," in write_bibtex([(Citation(id="1", doi=doi), "")])


LIVE = r"\![a](https://example.org/p.png) [b](https://example.org) `|` <img src=x> \| c\\"


def test_nothing_in_markdown_is_an_image_a_link_or_a_cell_but_what_we_write(rerank):
    url = "https://example.org/a|b)<script>alert(1)</script>![x](https://example.org/p.png)"
    passage = {"id": "p", "text": LIVE, "metadata": {"title": LIVE, "url": url}}
    backend = scripted_backend(lambda task: judged(0.9, quote=task["text"]))
    result = EvidenceReranker(backend, answer=True).rerank(LIVE, [passage])
    answer = {**result.answer, "text": f"{LIVE}\n\n{LIVE}"}
    result = RerankResult.from_dict({**result.to_dict(), "answer": answer})
    rendered = MarkdownIt("commonmark").enable("table").render(export_result(result, "markdown"))
    assert rendered.count("<td") == 6
    assert (rendered.count("<img"), rendered.count("<script"), rendered.count("<code")) == (0, 0, 0)
    assert rendered.count("<a ") == 1
    assert rendered.count("![a](https://example.org/p.png) [b]") == 6


def test_bibtex_has_authors_as_bibtex_reads_them_however_they_were_given():
    authors = ("Meyer A", "Chloé Okoye", "The Kelp & Wax Group", "Müller, É")
    text = write_bibtex([(Citation(id="1", title="Wax", authors=authors), "")])
    assert text.startswith("@misc{meyer,")
    assert r"author = {Meyer, A and Okoye, Chloé and {The Kelp \& Wax Group} and Müller, É}" in text


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ("martell2017", "martell2017"),
        ("DBLP:conf/wax/Lee19", "DBLP:conf/wax/Lee19"),
        ("7XK2QW3P", "lee2019apples"),
        ("a},note={x", "lee2019apples"),
    ],
)
def test_the_key_of_ones_own_bibtex_file_is_kept(given, key):
    cited = Citation.of({**LEE, "key": given}, "1")
    assert write_bibtex([(cited, "")]).startswith(f"@article{{{key},")
    twice = write_bibtex([(cited, ""), (cited, "")])
    assert f"@article{{{key}-2," in twice


@pytest.mark.parametrize(
    ("id", "key"),
    [
        ("lee2019", "lee2019"),
        ("Lee2019wax", "Lee2019wax"),
        ("lee_2019b", "lee_2019b"),
        ("lee2018", "lee2019apples"),  # of another year
        ("p2019", "lee2019apples"),
        ("2019", "lee2019apples"),
        ("lee2019.pdf#3", "lee2019apples"),
        ("wax 2019", "lee2019apples"),
        ("lee2019-4", "lee2019apples"),
    ],
)
def test_an_id_that_is_a_key_of_ones_own_is_kept(id, key):
    assert write_bibtex([(Citation.of(LEE, id), "")]).startswith(f"@article{{{key},")


def test_bibtex_has_one_entry_a_source_with_escaped_text(rerank):
    text = export_result(rerank(), "bibtex")
    assert text.count("@") == 1
    assert text.startswith("@article{lee2019apples,")
    assert "author = {Lée, Ada and Roy, Bo}" in text
    assert r"title = {Wax \& apples | a 100\% trial}" in text
    assert "doi = {10.1000/wax_1}" in text
    assert "score 0.93: Wax kept apples firm.; score 0.90: Firmness fell by 6\\%." in text


def test_a_bibtex_entry_has_what_any_passage_knows_of_its_source():
    bare = {"doi": LEE["doi"].upper(), "title": "Wax & apples"}
    passages = [{**PASSAGES[0], "metadata": bare}, PASSAGES[1]]
    backend = scripted_backend(lambda task: judged(SCORES[task["text"]]))
    text = export_result(EvidenceReranker(backend).rerank(QUESTION, passages), "bibtex")
    assert text.startswith("@article{lee2019apples,")
    assert (text.count("@"), "journal = {Fruit Science}" in text) == (1, True)


def test_bibtex_keys_are_distinct_and_a_source_without_metadata_is_named_by_its_id(rerank):
    text = export_result(rerank(threshold=0.05), "bibtex")
    assert "@misc{bare," in text
    assert "url = {https://example.org/wax}" in text
    keys = [line.split("{")[1] for line in text.splitlines() if line.startswith("@")]
    assert len(keys) == len(set(keys)) == 3


def test_ris_has_one_record_a_source_that_is_read_back(rerank, tmp_path):
    text = export_result(rerank(), "ris")
    assert text.startswith("TY  - JOUR\nTI  - Wax & apples | a 100% trial\nAU  - Lée, Ada\n")
    assert text.count("ER  - ") == 1
    assert "N1  - score 0.93: Wax kept apples firm.; score 0.90: Firmness fell by 6%.\n" in text
    path = tmp_path / "evidence.ris"
    path.write_text(text.replace("N1  -", "AB  -"), encoding="utf-8")
    (read,) = read_passages(path)
    assert read.metadata["doi"] == "10.1000/wax_1"


def test_ris_has_no_record_where_nothing_is_evidence(rerank):
    assert export_result(rerank(threshold=0.99), "ris") == ""
    assert export_result(rerank(threshold=0.99, on_empty="top1"), "ris") == ""


def test_a_line_break_in_a_title_adds_no_field_to_ris():
    passage = {
        "id": "a",
        "text": "Wax kept apples firm.",
        "metadata": {"title": "Wax\nER  - \nTY  - X"},
    }
    backend = scripted_backend(lambda task: judged(0.9))
    text = export_result(EvidenceReranker(backend).rerank(QUESTION, [passage]), "ris")
    assert "TI  - Wax ER - TY - X\n" in text
    assert text.count("\nER  -") == 1


def test_html_is_a_page_whose_text_is_escaped(rerank):
    page = export_result(rerank(), "html")
    assert page.startswith("<!doctype html>")
    assert "<b>keep</b>" not in page
    assert '<a href="https://doi.org/10.1000/wax_1">' in page


def test_the_page_is_for_phones_paper_and_dark_screens(rerank):
    page = export_result(rerank(), "html")
    assert '<meta name="viewport" content="width=device-width' in page
    assert "@media (prefers-color-scheme: dark)" in page
    assert "@media print" in page
    assert "<table" not in page


def test_the_page_has_the_question_above_the_answer_above_the_passages(rerank):
    page = export_result(rerank(answer=True), "html").partition("<body>")[2]
    parts = ["<h1>Does wax", "Evidence: 2 of 4", "It does [1, 2].", "<h2>Kept", "<h2>Below the"]
    places = [page.index(one) for one in parts]
    assert places == sorted(places)


def test_the_page_marks_the_quote_in_its_passage_and_shortens_a_long_one():
    text = f"{'Apples are fruit. ' * 60}Wax kept apples firm. {'Pears are fruit. ' * 60}"
    backend = scripted_backend(lambda _: judged(0.9, quote="Wax kept apples firm."))
    page = export_result(EvidenceReranker(backend).rerank(QUESTION, [text]), "html")
    assert "<mark>Wax kept apples firm.</mark>" in page
    assert "retrieved as number 1" in page
    assert page.count("Apples are fruit.") < 15


def test_the_page_has_the_colours_of_the_server(rerank):
    ours = export_result(rerank(), "html")
    theirs = files("deepera_graph.serve.page").joinpath("page.css").read_text(encoding="utf-8")
    colours = re.findall(r"--[a-z-]+: #[0-9a-f]{6};", ours)
    assert len(colours) == 28
    assert [one for one in colours if one not in theirs] == []


def test_json_is_read_back_as_the_same_result(rerank):
    result = rerank(answer=True)
    again = RerankResult.from_json(export_result(result, "json"))
    assert describe_result(again, whole=True) == describe_result(result, whole=True)
    assert again.passages == result.passages
    assert again.usage == result.usage


def test_plain_data_names_the_sources_of_passages_and_answer(rerank):
    plain = describe_result(rerank(answer=True), whole=True)
    assert plain["ranking"][0]["citation"]["doi"] == LEE["doi"]
    assert plain["ranking"][3]["citation"] == {"text": "bare", "id": "bare"}
    cited = [one["id"] for one in plain["answer"]["sources"]]
    assert plain["answer"]["citations"] == ["lee#1", "lee#2"]
    assert cited == ["lee#1"]  # a study is one source


def test_an_answer_cites_ranks_for_readers(rerank):
    result = rerank(answer=True)
    answer = {**result.answer, "text": "Yes [lee#1]. Firm [lee#1, lee#2], see [3]."}
    shown = RerankResult.from_dict({**result.to_dict(), "answer": answer})
    assert answer_with_numbers(shown) == "Yes [1]. Firm [1, 2], see [3]."


def test_a_table_has_the_answer_or_says_why_there_is_none(rerank):
    assert "It does [1, 2]." in export_result(rerank(answer=True), "markdown")
    none = export_result(rerank(answer=True, threshold=0.99), "markdown")
    assert "No answer: no passage was kept." in none
    nearest = rerank(answer=True, threshold=0.99, on_empty="top1")
    assert "From passages below the threshold: " in export_result(nearest, "html")


def test_an_unknown_format_is_an_error(rerank):
    with pytest.raises(SettingsError, match=r"format must be one of .*got 'docx'"):
        export_result(rerank(), "docx")
    assert json.loads(export_result(rerank(), "json"))["outcome"] == "ok"


@pytest.fixture
def fail():
    def run(*texts, **settings):
        def judge(task):
            if not texts or task["text"] in texts:
                raise RuntimeError("out of order")
            return judged(SCORES.get(task["text"], 0.1))

        return EvidenceReranker(scripted_backend(judge), **settings).rerank(QUESTION, PASSAGES)

    return run


def test_where_every_call_failed_nothing_is_called_evidence_or_a_lack_of_it(fail):
    result = fail(answer=True)
    for form in ("markdown", "html", "bibtex"):
        text = export_result(result, form)
        assert "othing could be judged: RuntimeError: out of order" in text
        assert "o evidence" not in text
        assert "nsufficient evidence" not in text
    table = rows(export_result(result, "csv"))
    assert [one["decision"] for one in table] == ["failed"] * 4
    assert all("out of order" in one["reason"] for one in table)


def test_markdown_names_the_reason_of_every_failure(fail):
    table = export_result(fail(), "markdown")
    assert table.count("| failed: RuntimeError: out of order |") == 4


def test_what_failed_stands_beside_the_nearest_and_both_are_told(fail):
    result = fail("Wax kept apples firm.", "Firmness fell by 6%.")
    text = export_result(result, "markdown")
    assert "2 of 4 passages could not be judged: RuntimeError: out of order." in text
    assert "None of the other 2 reaches 0.8." in text
    assert "No evidence" not in text
    decisions = [one["decision"] for one in rows(export_result(result, "csv"))]
    assert decisions == ["below the threshold"] * 2 + ["failed"] * 2


def test_evidence_with_a_failure_beside_it_tells_of_both(fail):
    text = export_result(fail("Wax is shiny."), "markdown")
    assert "Evidence: 2 of 4 passages reached 0.8" in text
    assert "1 of 4 passages could not be judged: RuntimeError: out of order." in text


def test_a_budget_that_left_all_undone_is_said_to_have_stopped_the_run(fail):
    result = fail(budget={"max_calls": 1}, max_concurrency=1, threshold=0.5)
    text = export_result(result, "markdown")
    assert result.outcome == "budget_stop"
    assert "stopped" in text
    assert "budget reached: 1 calls" in text
    assert "No evidence" not in text


def test_a_table_names_section_and_pages_of_a_passage_from_a_pdf():
    backend = scripted_backend(lambda task: judged(0.9))
    about = {"section": "Results", "page": 4}
    passages = [
        {"id": "a", "text": "Wax kept apples firm.", "metadata": about},
        {"id": "b", "text": "Wax kept pears firm.", "metadata": {**about, "last_page": 5}},
        {"id": "c", "text": "Wax kept plums firm."},
    ]
    result = EvidenceReranker(backend).rerank(QUESTION, passages)
    table = {one["id"]: one for one in rows(export_result(result, "csv"))}
    assert [(table[name]["section"], table[name]["page"]) for name in "abc"] == [
        ("Results", "4"),
        ("Results", "4-5"),
        ("", ""),
    ]


def test_plain_data_counts_the_directions(rerank):
    backend = scripted_backend(lambda task: judged(0.9, direction="contradicts"))
    result = EvidenceReranker(backend).rerank(QUESTION, PASSAGES)
    counts = {"contradicts": 3}  # studies: two passages are of one
    assert describe_result(result, whole=True)["direction_counts"] == counts
    assert json.loads(export_result(result, "json"))["direction_counts"] == counts
    assert RerankResult.from_json(export_result(result, "json")) == result
    assert describe_result(rerank(), whole=True)["direction_counts"] == {}


@pytest.mark.parametrize(
    ("score", "threshold", "shown"),
    [
        (0.2796, 0.28, "0.2796"),
        (0.279999996, 0.28, "0.279999996"),
        (0.28, 0.28, "0.28"),
        (0.2812, 0.28, "0.28"),
        (0.2844, 0.2843, "0.2844"),
        (0.278, 0.2783, "0.278"),
        (0.5, 0.28, "0.50"),
        (0.0, 0.0, "0.00"),
        (1.0, 1.0, "1.00"),
        (0.996, 1.0, "0.996"),
    ],
)
def test_a_score_never_looks_as_if_it_were_on_the_other_side_of_the_threshold(
    score, threshold, shown
):
    backend = scripted_backend(lambda task: judged(score, quote=task["text"]))
    passages = [{"id": "a", "text": "Wax kept apples firm."}]
    result = EvidenceReranker(backend, threshold=threshold).rerank(QUESTION, passages)
    assert result.show_score(score) == shown
    assert result.show_score(None) == "–"
    assert f"| {shown} |" in export_result(result, "markdown")
    assert f">{shown}<" in export_result(result, "html")


@pytest.mark.parametrize(("score", "shown"), [(0.6973, "0.697"), (0.7, "0.70"), (0.2796, "0.2796")])
def test_a_score_never_looks_as_if_it_were_in_the_other_band(score, shown):
    backend = scripted_backend(lambda task: judged(0.5, quote=task["text"]))
    result = EvidenceReranker(backend, threshold=0.28).rerank(
        QUESTION, [{"id": "a", "text": "Wax kept apples firm."}]
    )
    assert replace(result, evidence_point=0.7).show_score(score) == shown


def test_a_source_is_read_once_however_many_passages_a_study_has(rerank, monkeypatch):
    read, of = [], Citation.of
    monkeypatch.setattr(Citation, "of", lambda *args: read.append(args) or of(*args))
    result = rerank(threshold=0)
    read.clear()
    export_result(result, "json")
    assert len(read) <= len(PASSAGES)
