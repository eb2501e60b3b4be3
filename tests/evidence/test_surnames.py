"""Names and years cite, whatever letter or particle a surname begins with, in every form."""

import unicodedata

import pytest
from docx import Document

from deepera_graph.evidence.check.manuscript import read_manuscript
from support.pdfs import write_pdf

NAMES = [
    "Šimić", "Łuczak", "Ōta", "Čapek", "Žižka", "Śliwa", "İnan", "Đorđević", "Åberg", "Öberg",
    "Ștefan", "Ġebel", "Ивано́в", "Παππάς", "Nguyễn", "d'Alembert", "d’Alembert", "al-Khatib",
    "al‐Khatib", "El-Sayed", "O’Neil", "O'Neil", "van der Berg", "Van der Berg", "De Vries",
    "von Šimić", "da Silva", "dos Santos", "ter Horst", "'t Hooft", "Le Roux", "Łoś-Źdźbło",
    "García Márquez", "Šimić Łoś", "Ó Súilleabháin", "St. John", "St John",
]  # fmt: skip
SAID = ("({0}, 2012)", "{0} and Lee (2012)", "({0} et al., 2012)", "(see {0} & Lee 2012)")
OTHER = "Cold nights sweeten ripe pears (Brown, 2011). "
LISTED = (
    "Brown, B. (2011). On pears and cold nights. Fruit.",
    "{0}, Š., Lee, B. (2012). On the {1}.",
)


def write(folder, name, mark):
    path = folder / "a.md"
    said = f"Wax keeps stored apples firm {mark.format(name)}."
    entries = "\n\n".join(LISTED).format(name, "waxing of apples. Fruit")
    path.write_text(f"# On\n\n{OTHER}{said}\n\n# References\n\n{entries}\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("mark", SAID)
@pytest.mark.parametrize("name", NAMES)
def test_a_surname_of_any_first_letter_cites(tmp_path, name, mark):
    found = read_manuscript(write(tmp_path, name, mark))
    assert [one.keys for one in found.claims] == [("1",), ("2",)]
    assert found.uncited == ()


@pytest.mark.parametrize("mark", SAID)
@pytest.mark.parametrize("name", ["Šimić", "Ōta", "Łoś-Źdźbło", "Čapek"])
def test_accents_behind_their_letters_are_of_a_name(tmp_path, name, mark):
    apart = unicodedata.normalize("NFD", name)
    path = write(tmp_path, apart, mark)
    assert [one.keys for one in read_manuscript(path).claims] == [("1",), ("2",)]
    listed = path.read_text("utf-8").replace(f"{apart}, Š.", f"{name}, Š.")
    path.write_text(listed, encoding="utf-8")
    assert [one.keys for one in read_manuscript(path).claims] == [("1",), ("2",)]


def test_names_that_the_list_lacks_are_shown_whole(tmp_path):
    path = write(tmp_path, "Roy", "(Žižka et al., 2015; d'Étang, 2016; de Łoś, 2017)")
    assert read_manuscript(path).claims[1].keys == ("Žižka 2015", "d'Étang 2016", "de Łoś 2017")


@pytest.mark.parametrize("form", [".docx", ".tex", ".csv"])
def test_such_names_cite_in_every_form(tmp_path, form):
    path = tmp_path / f"a{form}"
    said = f"{OTHER}Wax keeps stored apples firm (Šimić et al., 2012)."
    entries = [one.format("Šimić", "waxing of apples. Fruit") for one in LISTED]
    if form == ".docx":
        document = Document()
        for text in (said, "References", *entries):
            document.add_paragraph(text)
        document.save(str(path))
    elif form == ".tex":
        items = "".join(rf"\bibitem{{{n}}} {one}" + "\n" for n, one in enumerate(entries, start=1))
        body = rf"{said}\begin{{thebibliography}}{{9}}{items}\end{{thebibliography}}"
        path.write_text(rf"\begin{{document}}{body}\end{{document}}", encoding="utf-8")
    else:
        rows = 'Pears are sweet.,"Brown, 2011"\nApples are firm.,"(Šimić, 2012; Ōta et al., 2013)"'
        path.write_text(f"claim,reference\n{rows}\n", encoding="utf-8")
    keys = [one.keys for one in read_manuscript(path).claims]
    wanted = ("Šimić, 2012", "Ōta et al., 2013") if form == ".csv" else ("2",)
    assert keys[1] == wanted


def test_a_sentence_may_begin_with_such_a_letter_behind_a_mark(tmp_path):
    path = tmp_path / "a.md"
    path.write_text(
        "Cold nights sweeten the pears [1]. Wax was made by Šimić.[2] Źdźbło waxed apples.\n\n"
        "# References\n\n1. Roy B. Pears. 2018.\n2. Šimić Š. Apples in wax for once. 2019.\n",
        encoding="utf-8",
    )
    found = read_manuscript(path)
    assert [one.statement for one in found.claims][1] == "Wax was made by Šimić."
    assert found.references[1].source.title == "Apples in wax for once"


@pytest.mark.parametrize(
    ("entry", "cited"),
    [
        ("García Márquez G, Lee A. Wax on stored apples. Fruit. 2012.", "García Márquez et al."),
        ("García Márquez G, Lee A. Wax on stored apples. Fruit. 2012.", "García et al."),
        ("Smith John A, Lee Bo C. Wax on stored apples. Fruit. 2012.", "Smith and Lee"),
        ("Smith, John A., Lee, B. Wax on stored apples. Fruit. 2012.", "Smith and Lee"),
    ],
)
def test_a_double_surname_is_cited_by_either_of_its_words(tmp_path, entry, cited):
    path = tmp_path / "a.md"
    said = f"{OTHER}Wax keeps stored apples firm ({cited}, 2012)."
    path.write_text(f"{said}\n\n# References\n\n{LISTED[0]}\n\n{entry}\n", encoding="utf-8")
    assert [one.keys for one in read_manuscript(path).claims] == [("1",), ("2",)]


def test_such_names_cite_in_a_pdf(tmp_path):
    names = ["Šimon", "Žižka", "Šolc", "Ždan"]
    printed = [f"{one}, Š., Roy, B. ({2011 + at})." for at, one in enumerate(names)]
    entries = [part for one in printed for part in (f"{one} A trial of", "wax in long fields.")]
    cited = [f"{one} and Roy ({2011 + at}) kept apples firm." for at, one in enumerate(names)]
    page = ["Introduction", *cited, "References", *entries]
    (tmp_path / "a.pdf").write_bytes(write_pdf(page))
    found = read_manuscript(tmp_path / "a.pdf")
    assert [one.keys for one in found.claims] == [(str(at),) for at in range(1, 5)]


def test_accents_of_a_pdf_stand_before_their_letters(tmp_path):
    said = "M¨uller and Garc´ ia (2012) kept apples firm at the 5´ end."
    entry = ("M¨uller, A., Garc´ia, B. (2012). A trial of", "wax in long fields.")
    (tmp_path / "a.pdf").write_bytes(write_pdf(["Introduction", said, "References", *entry]))
    found = read_manuscript(tmp_path / "a.pdf")
    assert found.claims[0].keys == ("1",)
    assert found.claims[0].sentence == "Müller and García (2012) kept apples firm at the 5´ end."
    assert found.references[0].source.authors[0] == "Müller"
