"""A table may cite by names and year, in all usual forms; of several works all are named."""

import pytest
from langchain_core.documents import Document

from deepera_graph import ManuscriptCheck, WorkLibrary
from deepera_graph.evidence.check.manuscript import read_manuscript

pytestmark = pytest.mark.full

TEXT = "Wax coating kept apples firm."
FIRM = "Wax coating kept apples firm."


def work(authors, year=2020, title="Wax on stored apples"):
    return Document(
        id=f"{authors} {title}",
        page_content=TEXT,
        metadata={"title": title, "authors": authors, "year": year},
    )


OTHERS = [
    work("Dahl, B.", title="Kelp in cold water"),
    work("Okoro, A.", 2019, "Pears in wax for once"),
]


def check(tmp_path, cited, *works, bib=None):
    path = tmp_path / "claims.csv"
    path.write_text(f'claim,reference\n{FIRM},"{cited}"\n', encoding="utf-8")
    return ManuscriptCheck(library=WorkLibrary(works)).check(path, bib).pairs


@pytest.mark.parametrize(
    ("authors", "cited"),
    [
        ("Okoro, A.; Lind, C.", "Okoro 2020"),
        ("Okoro, A.; Lind, C.", "Okoro, 2020"),
        ("Okoro, A.; Lind, C.", "(Okoro 2020)"),
        ("Okoro, A.; Lind, C.", "Okoro (2020)"),
        ("Okoro, A.; Lind, C.", "Okoro & Lind (2020)"),
        ("Okoro, A.; Lind, C.", "Okoro and Lind, 2020a"),
        ("Okoro, A.; Lind, C.", "(Okoro and Lind 2020, p. 3)"),
        ("Okoro, A.; Lind, C.", "Okoro A, Lind C. 2020"),
        ("Okoro, A.; Lind, C.", "Okoro, A., & Lind, C. (2020)."),
        ("Okoro, A.; Lind, C.; Roy, B.", "Okoro et al. 2020"),
        ("Okoro, A.; Lind, C.; Roy, B.", "(Okoro et al., 2020)"),
        ("Okoro, A.; Lind, C.; Roy, B.", "Okoro, Lind, and Roy 2020"),
        ("Okoro, A.; Lind, C.; Roy, B.", "Okoro and colleagues (2020)"),
        ("Ada Okoro; Cy Lind", "Okoro & Lind 2020"),
        ("O'Neil, P.", "O’Neil 2020"),
        ("van der Berg, P.", "van der Berg 2020"),
        ("Pieter van der Berg", "Van der Berg et al., 2020"),
        ("van der Berg, P.", "Berg 2020"),
        ("García Márquez, G.", "García Márquez, 2020"),
        ("García Márquez, G.", "Garcia 2020"),
        ("Müller, K.", "Muller 2020"),
        ("Smith-Jones, K.", "Smith-Jones 2020"),
        ("Øster Ångström, K.", "Ångström 2020"),
        ("d'Angelo, K.", "d'Angelo 2020"),
    ],
)
def test_names_and_year_find_the_work(tmp_path, authors, cited):
    [pair] = check(tmp_path, cited, work(authors), *OTHERS)
    assert pair.verdict == "supported"
    assert pair.quote == TEXT


@pytest.mark.parametrize(
    "cited",
    ["Okoro 2018", "Okoro & Roy 2020", "Roy 2020", "Wax apples 2020", "In 2020", "Okoro et al."],
)
def test_other_names_or_years_find_none(tmp_path, cited):
    [pair] = check(tmp_path, cited, work("Okoro, A.; Lind, C."), *OTHERS)
    assert (pair.verdict, pair.source) == ("unavailable", "")


def test_works_that_names_may_stand_for_are_named(tmp_path):
    works = [work("Okoro, A.; Lind, C."), work("Okoro, B.", title="Figs are soft in autumn")]
    [pair] = check(tmp_path, "Okoro 2020a", *works)
    assert pair.verdict == "unavailable"
    assert "any of 2 works" in pair.notes[0]
    assert "Okoro and Lind. Wax on stored apples" in pair.notes[0]
    assert "Okoro. Figs are soft in autumn" in pair.notes[0]
    [pair] = check(tmp_path, "Okoro & Lind 2020", *works)
    assert pair.verdict == "supported"


def test_a_cell_may_name_several_works(tmp_path):
    pairs = check(
        tmp_path, "(Okoro & Lind, 2020; Dahl, 2020)", work("Okoro, A.; Lind, C."), *OTHERS
    )
    assert [one.key for one in pairs] == ["Okoro & Lind, 2020", "Dahl, 2020"]
    assert pairs[1].source.startswith("Dahl. Kelp")


def test_a_title_that_looks_like_a_name_is_a_title(tmp_path):
    [pair] = check(tmp_path, "Okoro 2020", work("Lee, K.", 2001, "Okoro 2020"), *OTHERS)
    assert pair.source.startswith("Lee. Okoro 2020")


def test_names_find_entries_of_a_file_of_references(tmp_path):
    entries = [("a", "Okoro, Ada and Lind, Cy"), ("b", "Okoro, Bo"), ("c", "Dahl, Di")]
    bib = tmp_path / "list.bib"
    bib.write_text(
        "".join(
            f"@article{{{key}, title={{On {key}}}, author={{{who}}}, year=2020}}\n"
            for key, who in entries
        )
    )
    path = tmp_path / "claims.csv"
    path.write_text(f"claim,reference\n{FIRM},Okoro & Lind 2020\n{FIRM},Okoro 2020\n")
    read = read_manuscript(path, bibliography=bib)
    assert [one.keys for one in read.claims] == [("a",), ("Okoro 2020",)]
    assert read.references[-1].text == "Okoro 2020, which may be a or b"
