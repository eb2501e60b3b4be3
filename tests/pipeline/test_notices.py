"""Titles of notices of all publishers name their paper and what became of it; others are none."""

import pytest
from langchain_core.documents import Document

from deepera_graph import ManuscriptCheck, WorkLibrary
from deepera_graph.evidence.check.library import choose_found
from deepera_graph.evidence.check.references import Reference
from deepera_graph.literature.citation import Citation
from deepera_graph.literature.notices import read_title
from deepera_graph.literature.same_study import find_studies, read_retractions

TITLE = "Wax coats and the firmness of apples"
MARKS = [
    ("RETRACTED: {}", "retracted"),
    ("RETRACTED ARTICLE: {}", "retracted"),
    ("Retracted: {}", "retracted"),
    ("[Retracted] {}", "retracted"),
    ("{} [RETRACTED]", "retracted"),
    ("{}. Retracted", "retracted"),
    ("{} — RETRACTED", "retracted"),
    ("{} (Retracted article. See vol. 3, p. 9)", "retracted"),
    ("WITHDRAWN: {}", "retracted"),
    ("Withdrawn: {}.", "retracted"),
    ("REMOVED: {}", "retracted"),
    ("TEMPORARY REMOVAL: {}", "concern"),
    ("{} (Preprint)", "preprint"),
    ("Preprint: {}", "preprint"),
]
NOTICES = [
    ("Retraction notice to “{}” [Fruit Sci. 3 (2014) 11–19]", "retracted"),
    ('Retraction notice to "{}" [J. Fruit, 3/4 (2014) 11-19].', "retracted"),
    ("Retraction notice to &quot;{}&quot; [J. Fruit 3 (2014) 11-19]", "retracted"),
    ("Retraction notice to &ldquo;{}&rdquo;", "retracted"),
    ("Retraction notice for ‘{}’", "retracted"),
    ("Retraction Note to: {}", "retracted"),
    ("Retraction Note: {}", "retracted"),
    ("Retraction: {}", "retracted"),
    ("Retraction: {}.", "retracted"),
    ("RETRACTION: {}", "retracted"),
    ("Retraction—{}", "retracted"),
    ("Retraction to: {}", "retracted"),
    ("Retraction of “{}”", "retracted"),
    ("Retraction of the article “{}”", "retracted"),
    ("Retraction statement: ‘{}’ by A. Lund and B. Roy", "retracted"),
    ("Statement of Retraction: {}", "retracted"),
    ("Notice of Retraction: {}", "retracted"),
    ("Notice of retraction to {}", "retracted"),
    ("Retraction for Lund et al., {}", "retracted"),
    ("Retraction: Lund A, et al. {}. Fruit Sci. 2014;3(2):11-19", "retracted"),
    ("Retraction: Lund, A.; Roy, B. {}. Fruits 2014, 3, 11", "retracted"),
    ("Retraction: {} (2014 Fruit Sci. 3 11)", "retracted"),
    ("{}. Retraction", "retracted"),
    ("{} (Retraction of vol 3, pg 11, 2014)", "retracted"),
    ("WITHDRAWAL: {}", "retracted"),
    ("Withdrawal: {}", "retracted"),
    ("Withdrawal notice to “{}” [Fruit Sci. 3 (2014) 11–19]", "retracted"),
    ("Expression of concern: {}", "concern"),
    ("Expression of Concern for “{}”", "concern"),
    ("Expression of concern to “{}” [Fruit Sci. 3 (2014) 11–19]", "concern"),
    ("Editorial Expression of Concern: {}", "concern"),
    ("[Expression of Concern] {}", "concern"),
    ("Correction to: {}", "corrected"),
    ("Correction to “{}”", "corrected"),
    ("Correction to {} [Fruit Sci. 3 (2014) 11–19]", "corrected"),
    ("Correction to {}", "corrected"),
    ("Correction: {}", "corrected"),
    ("Correction for Lund et al., {}", "corrected"),
    ("Corrections to “{}”", "corrected"),
    ("Corrigendum to “{}” [Fruit Sci. 3 (2014) 11–19]", "corrected"),
    ("Corrigendum: {}", "corrected"),
    ("[Corrigendum] {}", "corrected"),
    ("Erratum to: {}", "corrected"),
    ("Erratum to {}", "corrected"),
    ("Erratum for {}", "corrected"),
    ("Erratum in: {}", "corrected"),
    ("Erratum: {}", "corrected"),
    ("Erratum for the Research Article “{}” by A. Lund et al.", "corrected"),
    ("Author Correction: {}", "corrected"),
    ("Publisher Correction: {}", "corrected"),
    ("Publisher’s Erratum to: {}", "corrected"),
    ("{} (vol 3, pg 11, 2014)", "corrected"),
]


@pytest.mark.parametrize(("form", "status"), [*MARKS, *NOTICES])
def test_every_form_marks_its_paper(form, status):
    found = find_studies(
        [
            ("1", {"title": TITLE, "authors": "Lund, A.", "year": 2014, "doi": "10.5555/1"}),
            ("2", {"title": form.format(TITLE), "year": 2019, "doi": "10.5555/2"}),
            ("3", {"title": "Pears in wax for once", "year": 2014}),
        ]
    )
    by_study = [(one.study, one.status) for one in found]
    if (form, status) in MARKS:  # it is a record of the paper itself, with another year and DOI
        assert (read_title(form.format(TITLE)).status, by_study[2]) == (status, (3, None))
    else:
        assert by_study == [(1, status), (1, status), (2, None)]


@pytest.mark.parametrize(("form", "status"), MARKS)
def test_a_mark_is_no_part_of_the_title(form, status):
    told = read_title(form.format(TITLE))
    assert (told.status, told.title.rstrip("."), told.is_notice) == (status, TITLE, False)


@pytest.mark.parametrize(
    "title",
    [
        "Withdrawal of antidepressants: a trial",
        "Withdrawal: a trial of four weeks in adults",
        "Withdrawn children in school",
        "Retraction of the lung in surgery: a trial",
        "Retraction: a study of the lung in surgery",
        "Retraction notices in medicine: what they say",
        "Correction to moderate hyponatraemia in wards",
        "Correction of myopia: lenses or surgery",
        "Corrections: a history of prisons",
        "Corrected and raw counts of bees",
        "Expression of concern about vaccines among parents",
        "Removed teeth: what becomes of them",
        "Errata in radiology: how many there are",
        "Laser surgery (correction of myopia)",
        "Eyelid surgery and lid retraction",
        "Opioid use vs. withdrawal",
        "Bonds, retracted",
        "Preprint: a form of publishing in physics",
        "Preprint servers and the press",
        "Publishing early: the preprint",
        "A trial of wax [part 2]",
    ],
)
def test_a_study_whose_title_begins_like_a_notice_is_none(title):
    told = read_title(title)
    assert (told.status, told.title, told.is_notice) == (None, title, False)
    [study] = find_studies([("1", {"title": title})])
    assert study.status is None


def test_a_notice_of_another_paper_marks_none():
    found = find_studies(
        [
            ("1", {"title": TITLE, "year": 2014}),
            ("2", {"title": f"Retraction notice to “{TITLE} and pears” [Fruit 3 (2014) 1]"}),
            ("3", {"title": f"Correction: {TITLE} in autumn. Fruit 3, 2014"}),
        ]
    )
    assert [one.status for one in found] == [None, "retracted", "corrected"]
    assert [one.study for one in found] == [1, 2, 3]


CITING = f"Wax coats keep apples firm [1].\n\n# References\n\n1. Lund A. {TITLE}. Fruit. 2014.\n"
TEXT = "Wax coats kept apples firm."


@pytest.mark.full
@pytest.mark.parametrize("with_paper", [True, False])
@pytest.mark.parametrize(
    "form", ["Retraction notice to “{}” [Fruit Sci. 3 (2014) 11–19]", "Withdrawal: {}"]
)
def test_a_cited_paper_whose_notice_is_in_the_library_is_retracted(form, with_paper):
    notice = {"title": form.format(TITLE), "year": 2019}
    works = [Document(id="n", page_content="This article has been retracted.", metadata=notice)]
    if with_paper:
        works.append(Document(id="p", page_content=TEXT, metadata={"title": TITLE, "year": 2014}))
    [pair] = ManuscriptCheck(library=WorkLibrary(works)).check_text(CITING).pairs
    assert pair.verdict == "retracted"


def test_a_retracted_paper_that_cannot_be_read_is_told(tmp_path):
    notices = tmp_path / "notices.csv"
    notices.write_text("doi,nature\n10.5555/w,Retraction\n")
    works = WorkLibrary(retractions=read_retractions(notices))
    cited = CITING.replace("2014.", "2014. doi:10.5555/w")
    [pair] = ManuscriptCheck(library=works).check_text(cited).pairs
    assert pair.verdict == "retracted"


def test_services_that_give_a_notice_with_the_paper_mark_it():
    reference = Reference.of_text("1", f"Lund A. {TITLE}. Fruit. 2014.")
    given = [
        Document(id=id, page_content=text, metadata={"title": title, "year": 2014})
        for id, text, title in [("n", "-", f"Retraction: {TITLE}"), ("p", TEXT, TITLE)]
    ]
    work = choose_found(reference, given)
    assert work is not None
    assert (work.status, work.source.title) == ("retracted", TITLE)
    assert [one.id for one in work.passages] == ["p"]


def test_a_marked_title_is_cited_without_its_mark():
    shown = str(Citation.of({"title": f"WITHDRAWN: {TITLE}", "authors": "Lund, A."}, "1"))
    assert shown.startswith(f"RETRACTED: Lund. {TITLE}")
