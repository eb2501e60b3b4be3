"""The page: whole, escaped, the same bytes again, and right in a browser."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from bench.study_lakes import Judge, lab, lakes
from deepera_graph.calibration.instance import Dataset
from deepera_graph.lab.bench.report import LONGEST, inline_svg, render_report, worst_questions
from deepera_graph.lab.rankers.base import FirstStage, Random
from deepera_graph.lab.studies.run import STUDIES

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
EVIL = "<script>alert(\"x\")</script> & <b>bold</b> {{ 7 * 7 }} </style> 'quoted'"
NAMES = ("main", "threshold", "cost")


def judge():
    return Judge(lambda question, place: place / 10, name='judge <img src="x">')


def evil_lakes():
    found = [
        one.model_copy(
            update={
                "question": f"{one.question} {EVIL}",
                "contexts": tuple(
                    context.model_copy(update={"text": f"{context.text} {EVIL}"})
                    for context in one.contexts
                ),
            }
        )
        for one in lakes(3, distractors=(5,))
    ]
    return Dataset(f"lakes {EVIL}", lambda: found)


def page(datasets=None, rankers=None, names=NAMES, **changes):
    made = lab(rankers or [FirstStage(), judge()], datasets or [lakes(3, distractors=(5,))])
    return render_report([STUDIES[name] for name in names], made, **changes)


@pytest.fixture(scope="module")
def whole_page():
    """A page with all kinds of figures."""
    return page(names=(*NAMES, "ranks", "look-alikes"))


class Collector(HTMLParser):
    """Collects tags and attributes, and checks that they close."""

    void = ("meta", "link", "input", "br", "img")

    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.open = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.void:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def parsed(text):
    found = Collector()
    found.feed(text)
    assert found.open == []
    return found


@pytest.mark.full
def test_texts_of_the_data_never_become_markup():
    text = page([evil_lakes()])
    found = parsed(text)
    assert found.tags.count("script") == 1
    assert "b" not in [tag for tag in found.tags if tag == "img"]
    assert "img" not in found.tags
    assert "&lt;script&gt;alert(" in text
    assert "{{ 7 * 7 }}" in text


@pytest.mark.full
def test_nothing_comes_from_elsewhere(whole_page):
    found = parsed(whole_page)
    for name, value in found.attributes:
        if name in ("src", "href", "xlink:href", "action", "srcset"):
            assert value.startswith(("#", "data:")), (name, value)


@pytest.mark.full
def test_no_id_is_used_twice(whole_page):
    ids = re.findall(r'\bid="([^"]+)"', whole_page)
    assert len(ids) == len(set(ids))


@pytest.mark.full
def test_the_same_measurements_give_the_same_bytes():
    datasets = [lakes(3, distractors=(5,))]
    assert page(datasets, names=("main", "ranks")) == page(datasets, names=("main", "ranks"))


@pytest.mark.full
def test_the_page_holds_tables_plots_and_the_worst_questions():
    text = page()
    assert text.count("<svg") == 2
    assert "<h3>Threshold study</h3>" in text
    assert '<details class="worst"' in text
    assert "because of 5" in text
    assert "<mark>Passage 5</mark>" in text


@pytest.mark.full
def test_what_was_not_available_is_on_the_page():
    made = lab([FirstStage()], [lakes(2)])
    made.missing["ssli", "cohere"] = "no key"
    assert "cohere on ssli: no key" in render_report([STUDIES["main"]], made)


def test_the_worst_questions_come_first_with_winner_and_golden():
    def score(question, place):
        wrong = "lake 2" in question
        return {2: 0.1 if wrong else 0.8, 5: 0.9}.get(place, 0.2)

    made = lab([Judge(score)], [lakes(2, distractors=(5,))])
    first, second = worst_questions(made.runs(), 10)
    assert first.question == "How warm is lake 2?"
    assert (first.golden_rank, second.golden_rank) == ("rank 5", "rank 2")
    assert (first.winner.kind, first.winner.first_rank) == ("background", 5)
    assert (first.winner.reason, first.winner.quote) == ("because of 5", "Passage 5")
    assert first.golden.score == 0.1


def test_right_answers_and_chance_are_no_worst_questions():
    made = lab([Judge(lambda question, place: float(place == 2)), Random()], [lakes(5)])
    assert worst_questions(made.runs(), 5) == []


def test_a_question_that_nothing_answers_is_none_of_the_worst():
    data = lakes(2, golden=(), outside={})
    data = replace(data, needs_golden=False)
    assert worst_questions(lab([Judge(lambda question, place: 0.5)], [data]).runs(), 5) == []


def test_a_golden_passage_outside_the_candidates_is_said_to_be():
    (one,) = worst_questions(lab([FirstStage()], [lakes(1, golden=())]).runs(), 5)
    assert one.golden is None
    assert one.golden_rank == "not among the candidates"


def test_long_texts_are_cut():
    long = [
        one.model_copy(
            update={"contexts": tuple(each.model_copy(update={"text": "trout " * 900})
                                      for each in one.contexts)}
        )
        for one in lakes(1)
    ]  # fmt: skip
    (one,) = worst_questions(lab([FirstStage()], [Dataset("x", lambda: long)]).runs(), 1)
    assert len(one.winner.before) <= LONGEST + 2
    assert one.winner.before.endswith(" …")


@pytest.mark.full
def test_two_figures_of_a_page_share_no_id():
    drawing = STUDIES["threshold"].run(lab([judge()], [lakes(2)])).drawings[0]
    one, other = (inline_svg(drawing.draw(), name) for name in ("one", "other"))
    found = [set(re.findall(r'\bid="([^"]+)"', text)) for text in (one, other)]
    assert not found[0] & found[1]
    references = set(re.findall(r'(?:href="|url\()#([^")]+)', one))
    assert references <= found[0]
    assert "#000000" not in one


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_the_page_works_in_a_browser(tmp_path):
    path = tmp_path / "report.html"
    probe = """
<script>addEventListener("load", () => {
  const head = document.querySelector("#table-main th:nth-child(6) button");
  head.click();
  const first = document.querySelector("#table-main tbody tr td:nth-child(3)").textContent;
  const select = document.getElementById("worst-ranker");
  select.value = "first stage"; select.dispatchEvent(new Event("change"));
  document.body.dataset.probe = JSON.stringify({
    first, sorted: head.parentElement.getAttribute("aria-sort"),
    shown: document.getElementById("worst-count").textContent,
    wide: document.documentElement.scrollWidth > document.documentElement.clientWidth,
  });
})</script></body>"""
    text = page([evil_lakes()], names=(*NAMES, "ranks"))
    strict = re.search(r'<meta http-equiv="Content-Security-Policy"[^>]*>', text)[0]
    path.write_text(text, encoding="utf-8")
    dom, errors = in_chromium(path, tmp_path)
    assert errors == []
    found = parsed(re.sub(r"^.*?<html", "<html", dom, flags=re.DOTALL))
    assert found.tags.count("svg") == 4
    assert found.tags.count("tr") > 2 * len(NAMES)
    assert '<html lang="en" class="js">' in dom
    path.write_text(text.replace(strict, "").replace("</body>", probe), encoding="utf-8")
    dom, errors = in_chromium(path, tmp_path, width=400)
    assert errors == []
    said = json.loads(re.search(r"data-probe=\"([^\"]+)\"", dom)[1].replace("&quot;", '"'))
    assert said == {
        "first": "first stage", "sorted": "descending", "shown": "3 of 6", "wide": False,
    }  # fmt: skip


def in_chromium(path, folder, *, width=1200):
    """Return the DOM after scripts ran, and what the console said of errors."""
    done = subprocess.run(
        [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
            "--enable-logging=stderr", "--v=0", f"--window-size={width},900",
            f"--user-data-dir={folder / 'profile'}", path.as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]
