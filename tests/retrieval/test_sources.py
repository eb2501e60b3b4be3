"""Passages read from files."""

import gzip
import json
import logging
from itertools import islice
from pathlib import Path

import pytest

from deepera_graph.errors import InputError, SettingsError
from deepera_graph.literature.citation import Citation
from deepera_graph.passages import ID_FIELDS, TEXT_FIELDS
from deepera_graph.retrieval.collections.store import open_store
from deepera_graph.retrieval.file_records import PAPER_ID_FIELDS
from deepera_graph.retrieval.files import KNOWN_SUFFIXES, Skipped, SkippedKind, kind_of
from deepera_graph.retrieval.sources import read_passages
from deepera_graph.text.records import CANDIDATE_FIELDS, MOST_BAD

LONG = " ".join(f"In plot {number} the otters ate most of the urchins." for number in range(45))
ABSTRACT = " ".join(f"In plot {number} the otters ate most of the urchins." for number in range(34))
ZOTERO = (
    '"Key","Item Type","Publication Year","Author","Title","Publication Title","DOI",'
    '"Abstract Note"\n'
    '"AB12","journalArticle","2019","Lee, Kim","Kelp","Sea","10.1/kelp","Kelp grew."\n'
    '"CD34","journalArticle","2020","Roy, Ann","Otters","","","Otters ate."\n'
)
PUBMED = (
    "PMID,Title,Authors,Citation,Journal/Book,Publication Year,DOI,Abstract\n"
    '31452104,Kelp,"Lee K, Roy A.",Sea. 2019.,Sea,2019,10.1/kelp,Kelp grew.\n'
)
NBIB = """
PMID- 31452104
OWN - NLM
DP  - 2019 Aug 28
TI  - Kelp forests recover where
      otters return.
LID - S0000-1 [pii]
LID - 10.1/kelp [doi]
AB  - Kelp cover grew - by 40%
      (p < 0.01) in two years.
FAU - Lee, Kim
AU  - Lee K
FAU - Roy, Ann
AU  - Roy A
JT  - Journal of the sea

PMID- 31452105
TI  - An editorial.
JT  - Journal of the sea

PMID- 31452106
AB  - Otters ate.
"""
RIS = """Provider: A publisher
Content: text/plain; charset="UTF-8"

TY  - JOUR
TI  - Kelp forests recover where
  otters return
AU  - Lee, Kim
AU  - Roy, Ann
PY  - 2019/08/28/
J2  - J. sea
T2  - Journal of the sea
DO  - https://doi.org/10.1000/kelp
UR  - https://example.org/kelp
KW  - kelp
KW  - otters
AB  - Kelp cover grew
by 40% (p < 0.01).

AB  - In two years.
ER  -

TY  - BOOK
ID  - 7
T1  - A book.
A1  - Lee, Kim
ER  - \r
TY  - JOUR
ID  - 8
N2  - Otters ate.
Y1  - 2020//
UR  - http://dx.doi.org/10.1000/otters
"""
SCOPUS = (
    '"Authors","Title","Year","Source title","DOI","Link","Abstract","EID"\n'
    '"Lee K.","Kelp","2019","Sea","10.1/kelp","https://example.org/1","Kelp grew.","2-s2.0-1"\n'
    '"Roy A.","Errata","2019","Sea","","","[No abstract available]","2-s2.0-2"\n'
)


def read(name, **options):
    return [(d.id, d.page_content, d.metadata) for d in read_passages(name, **options)]


def test_json_lines(write):
    line = {"id": 7, "title": "Kelp", "text": "It grew.", "year": 2019, "metadata": {"doi": "x"}}
    name = write("a.jsonl", json.dumps(line) + "\n")
    metadata = {"source": "a.jsonl", "year": 2019, "doi": "x", "title": "Kelp"}
    assert read(name) == [("7", "It grew.", metadata)]


@pytest.mark.parametrize(
    "field",
    [
        "text",
        "page_content",
        "contents",
        "content",
        "abstract",
        "passage",
        "segment",
        "body",
        "TEXT",
    ],
)
def test_the_text_goes_by_several_names(write, field):
    assert read(write("a.jsonl", json.dumps({field: "It grew."})))[0][1] == "It grew."


def test_a_list_of_sentences_is_a_text(write):
    name = write("a.jsonl", '{"_id": "s", "abstract": ["It grew.", "It died."]}')
    assert read(name) == [("s", "It grew. It died.", {"source": "a.jsonl"})]


def test_the_year_of_a_date_is_the_year_of_what_has_none(write):
    rows = (
        '"Publication Year","Abstract Note","Date"\n"","It grew.","2021/05"\n2019,"It died.",2018\n'
    )
    assert [row[2]["year"] for row in read(write("a.csv", rows))] == [2021, 2019]


def test_without_an_id_the_line_is_one(write):
    name = write("a.jsonl", '{"text": "one"}\n\n  \n{"text": "two"}')
    assert [row[0] for row in read(name)] == ["a.jsonl:1", "a.jsonl:4"]


def test_lines_end_at_line_feeds_only(write):
    text = "a\u2028b\u0085c\x0bd"
    name = write("a.jsonl", json.dumps({"text": text}, ensure_ascii=False) + "\r\n")
    assert read(name)[0][1] == text


def test_a_byte_order_mark_is_no_text(write):
    assert read(write("a.jsonl", b'\xef\xbb\xbf{"text": "one"}'))[0][1] == "one"
    assert read(write("a.csv", b"\xef\xbb\xbftext\none"))[0][1] == "one"


def test_a_source_of_its_own_is_kept(write):
    name = write("a.jsonl", '{"text": "one", "metadata": {"source": "PubMed"}}')
    assert read(name)[0][2] == {"source": "PubMed"}


def test_csv(write):
    header = "id,title,text,year,p,code,note\n"
    rows = header + '007,Kelp,"It grew,\nthen died.",2019,0.05,012,\n2,,b,1e5,,,x'
    assert read(write("a.csv", rows)) == [
        (
            "007",
            "It grew,\nthen died.",
            {"source": "a.csv", "title": "Kelp", "year": 2019, "p": 0.05, "code": "012"},
        ),
        ("2", "b", {"source": "a.csv", "year": "1e5", "note": "x"}),
    ]


def test_csv_rows_without_an_id_are_named_by_their_first_line(write):
    name = write("a.csv", 'text\n"a\nb"\nc\n')
    assert [row[0] for row in read(name)] == ["a.csv:2", "a.csv:4"]


def test_a_text_file_is_one_text_without_a_title(write):
    assert read(write("a.txt", "Kelp grew.\n")) == [("a.txt", "Kelp grew.", {"source": "a.txt"})]


def test_a_markdown_file_is_titled_by_its_first_heading(write):
    name = write("a.md", "\n# Kelp and otters #\n\nThey grew.\n\n## More\n")
    assert read(name)[0][2]["title"] == "Kelp and otters"


def test_a_long_text_is_cut_into_numbered_parts(write):
    name = write("a.jsonl", json.dumps({"id": "x", "title": "Otters", "text": LONG}))
    rows = read(name, max_words=200)
    assert [row[0] for row in rows] == ["x#1", "x#2", "x#3"]
    assert [row[2]["part"] for row in rows] == [1, 2, 3]
    assert {row[2]["title"] for row in rows} == {"Otters"}
    assert " ".join(row[1] for row in rows) == LONG
    assert len(read(name, max_words=450)) == 1


@pytest.mark.parametrize("options", [{}, {"max_words": None}])
def test_an_abstract_stays_whole(write, options):
    assert len(ABSTRACT.split()) > 300
    name = write("a.jsonl", json.dumps({"id": "x", "text": ABSTRACT}))
    assert [row[0] for row in read(name, **options)] == ["x"]


def test_off_cuts_nothing(write):
    assert [row[1] for row in read(write("a.txt", LONG * 9), max_words=None)] == [LONG * 9]


def test_a_folder_is_read_in_order_of_names_without_hidden_and_other_files(write):
    for name in ("f/b.txt", "f/a/z.md", "f/c.jsonl", "f/.git/x.txt", "f/.y.txt", "f/image.png"):
        write(name, '{"text": "kelp"}')
    assert [row[0] for row in read("f")] == ["f/a/z.md", "f/b.txt", "f/c.jsonl:1"]


def test_blank_rows_of_a_spreadsheet_are_no_records(write):
    skipped = []
    name = write("a.csv", ";;\ntext;title;year\nKelp grew.;Kelp;2019\n;;\n ; ;\nIt died.;;\n;;")
    read = [one.page_content for one in read_passages(name, on_skip=skipped.append)]
    assert (read, skipped) == (["Kelp grew.", "It died."], [])


def test_rows_above_a_quote_that_is_never_closed_are_read(write):
    skipped = []
    name = write("a.csv", 'text\nKelp grew.\n"It died.\nIt grew.\n')
    assert [one.page_content for one in read_passages(name, on_skip=skipped.append)] == [
        "Kelp grew."
    ]
    assert [one.place for one in skipped] == ["a.csv:3"]


def test_several_records_that_are_left_out_for_one_reason_keep_its_advice():
    kind = SkippedKind()
    for n in (2, 3, 10):
        kind.add(Skipped(f"a.csv:{n}", "not UTF-8; save the table as UTF-8"))
    assert str(kind) == "3 records (not UTF-8): a.csv:2, 3, 10; save the table as UTF-8"


def test_passages_come_one_by_one(write):
    name = write("a.jsonl", '{"text": "one"}\n{"text": "two"}\nbroken')
    assert [d.page_content for d in islice(read_passages(name), 2)] == ["one", "two"]


def test_everything_read_can_be_indexed_and_found(write):
    name = write("a.csv", "text,year\nKelp grew.,2019\nKelp died.,2021\n")
    with open_store("csv") as store:
        store.add(read_passages(name))
        assert [d.id for d in store.search("kelp", where={"year": {"gt": 2020}})] == ["a.csv:3"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", '{"text": "a"}\n{"text":', r"a\.jsonl:2: not JSON: .* column"),
        ("a.jsonl", '{"text": "a"}\n\n[1]', r"a\.jsonl:3: must be a JSON object, got \[1\]"),
        ("a.jsonl", '{"text": "a", "p": NaN}', r"a\.jsonl:1: not JSON: NaN"),
        ("a.jsonl", "[" * 100_000, r"a\.jsonl:1: not JSON"),
        ("a.jsonl", b'{"text": "a"}\n{"text": "\xff"}', r"a\.jsonl:2: not UTF-8"),
        (
            "a.jsonl",
            '{"question": "a", "id": 1}',
            r"a\.jsonl:1: has no text; .* found question, id",
        ),
        ("a.jsonl", '{"text": "  "}', r"a\.jsonl:1: has no text"),
        ("a.jsonl", '{"text": 3}', r"a\.jsonl:1: has no text"),
        ("a.jsonl", '{"text": "a", "id": [1]}', r"a\.jsonl:1: id must be a string, got \[1\]"),
        ("a.jsonl", '{"text": "a", "id": true}', r"a\.jsonl:1: id must be a string, got True"),
        ("a.jsonl", '{"text": "a", "title": 4}', r"a\.jsonl:1: title must be a string, got 4"),
        ("a.jsonl", '{"text": "a", "metadata": 4}', r"a\.jsonl:1: metadata must be an object"),
        (
            "a.jsonl",
            '{"text": "a", "id": 1}\n{"text": "b", "id": "1"}',
            r"a\.jsonl:2: id '1' is us",
        ),
        ("a.jsonl", "\n \n", r"a\.jsonl: the file is empty"),
        ("a.csv", "", r"a\.csv: the file is empty"),
        ("a.csv", "text,year\n", r"a\.csv: the table has a header and no records"),
        ("a.tsv", "text\tyear\n\n", r"a\.tsv: the table has a header and no records"),
        ("a.csv", "note|year\na|3", r"a\.csv:2: has no text; .* found note\|year"),
        ("a.csv", "text,year\na,1\nb", r"a\.csv:3: the row has 1 cell in 2 columns$"),
        (
            "a.csv",
            "text\na,b",
            r"a\.csv:2: the row has 2 cells in 1 column: put quotes round a cell that has a comma",
        ),
        ("a.csv", 'text\n"a', r"a\.csv:2: not CSV: a quote that opens in line 2 is never"),
        ("a.csv", 'text\na\n"b\nc\nd', r"a\.csv:3: .* never closed; it takes 2 lines below"),
        (
            "a.csv",
            'text\n"' + "kelp\n" * 40_000,
            r"a\.csv:2: .* more than 131,072 characters; is a quote that opens in line 2 never",
        ),
        ("a.csv", "text;year\n;\n", r"a\.csv: the table has a header and no records"),
        ("a.csv", b"text\na\n\xff", r"a\.csv:3: not UTF-8"),
        ("a.csv", "text,metadata\na,b", r"a\.csv:2: not JSON"),
        ("a.txt", "", r"a\.txt: the file is empty"),
        ("a.txt", b"ok\n\xff", r"a\.txt: not UTF-8: .* in line 2"),
        ("a.json", "[\n3,", r"a\.json:1: not JSON: .* in line 2 at column 3"),
        ("a.json", '[{"text": "a"}, 3]', r"a\.json:2: must be a JSON object, got 3"),
        ("a.json", " ", r"a\.json: the file is empty"),
        ("a.jsonl", '{"text": "a\\ud800"}', r"a\.jsonl:1: has half a character"),
        ("a.jsonl", '{"text": "a", "note": ["\\ud800"]}', r"a\.jsonl:1: has half a character"),
        ("a.ris", "TI  - Kelp\nER  - ", r"a\.ris:1: not a reference in RIS: 'TI  - Kelp'"),
        ("a.ris", "Kelp grew.", r"a\.ris:1: not a reference in RIS: 'Kelp grew\.'"),
        ("a.jsonl.gz", b"nope", r"a\.jsonl\.gz cannot be read: Not a gzipped file"),
        (
            "a.jsonl.gz",
            gzip.compress(b'{"text": "a"}', mtime=0)[:-9],
            r"a\.jsonl\.gz cannot be read",
        ),
        ("f/a.txt", "", r"f/a\.txt: the file is empty"),
    ],
)
def test_bad_input_is_named_by_file_and_line(write, name, content, message):
    write(name, content)
    with pytest.raises(InputError, match=message):
        list(read_passages(name.partition("/")[0]))


def test_rows_that_are_merely_numbered_are_told_apart_by_their_files(write):
    write("f/a.csv", "id,abstract\n1,Coffee.\n2,Tea.\n")
    write("f/b.csv", "id,abstract\n1,Kelp.\n2,Tea.\n")
    write("f/c.jsonl", '{"id": 0, "text": "Otters."}\n{"id": 1, "text": "Sea."}')
    found = {one.id: one.page_content for one in read_passages("f", on_skip=list)}
    assert found == {
        "1": "Coffee.", "2": "Tea.", "f/b.csv:2": "Kelp.", "0": "Otters.", "f/c.jsonl:2": "Sea.",
    }  # fmt: skip


def test_a_number_twice_in_one_file_is_no_number_of_a_row(write):
    write("a.csv", "id,abstract\n1,Coffee.\n1,Tea.\n")
    with pytest.raises(InputError, match=r"a\.csv:3: id '1' is used twice"):
        list(read_passages("a.csv"))


def test_lines_before_a_bad_one_are_numbered_over_the_whole_folder(write):
    write("f/a.jsonl", '{"id": "x", "text": "a"}')
    write("f/b.jsonl", '{"id": "y", "text": "a"}\n{"id": "x", "text": "b"}')
    with pytest.raises(InputError, match=r"f/b\.jsonl:2: id 'x' is used twice"):
        list(read_passages("f"))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.jsonl", "no such file: 'missing.jsonl'"),
        ("a.odt", r"a\.odt: cannot read this kind .*; save it as DOCX or PDF"),
    ],
)
def test_a_path_that_cannot_be_read_is_refused_before_reading(write, name, message):
    write("a.odt", "x")
    with pytest.raises(InputError, match=message):
        read_passages(name)


def test_a_folder_without_passages_is_an_error(write):
    write("f/image.png", "x")
    message = (
        r"folder 'f' holds no \.jsonl, .*, \.txt file; skipped 1 file \(1 \.png\): f/image\.png"
    )
    with pytest.raises(InputError, match=message):
        read_passages("f")


def test_headers_of_zotero_are_known(write):
    assert read(write("a.csv", ZOTERO)) == [
        (
            "10.1/kelp",
            "Kelp grew.",
            {
                "source": "a.csv", "key": "AB12", "Item Type": "journalArticle", "year": 2019,
                "authors": "Lee, Kim", "title": "Kelp", "journal": "Sea", "doi": "10.1/kelp",
            },
        ),
        (
            "CD34",
            "Otters ate.",
            {
                "source": "a.csv", "key": "CD34", "Item Type": "journalArticle", "year": 2020,
                "authors": "Roy, Ann", "title": "Otters",
            },
        ),
    ]  # fmt: skip


def test_headers_of_pubmed_are_known(write):
    [(name, text, metadata)] = read(write("a.csv", PUBMED))
    assert (name, text) == ("31452104", "Kelp grew.")
    facts = ("31452104", "Kelp", 2019, "Sea", "10.1/kelp")
    assert tuple(metadata[one] for one in ("pmid", "title", "year", "journal", "doi")) == facts


def test_records_of_pubmed_are_read_and_one_without_an_abstract_is_named(write):
    skipped = []
    one, other = read(write("a.nbib", NBIB), on_skip=skipped.append)
    assert one == (
        "31452104",
        "Kelp cover grew - by 40% (p < 0.01) in two years.",
        {
            "source": "a.nbib", "pmid": "31452104", "year": 2019, "journal": "Journal of the sea",
            "authors": "Lee, Kim; Roy, Ann", "doi": "10.1/kelp",
            "title": "Kelp forests recover where otters return.",
        },
    )  # fmt: skip
    assert other == ("31452106", "Otters ate.", {"source": "a.nbib", "pmid": "31452106"})
    assert [one.place for one in skipped] == ["a.nbib:17"]


def test_what_is_no_record_of_pubmed_is_named(write):
    skipped = []
    raw = NBIB.encode().replace(b"An editorial", b"caf\xe9") + b"Otters.\n"
    assert [row[0] for row in read(write("a.nbib", raw), on_skip=skipped.append)] == ["31452104"]
    reasons = ["not UTF-8; save the file as UTF-8", "not a record of PubMed: 'Otters.'"]
    assert [one.reason for one in skipped] == reasons


def test_references_in_ris_are_read_and_one_without_an_abstract_is_named(write):
    skipped = []
    one, other = read(write("a.ris", RIS), on_skip=skipped.append)
    assert one == (
        "10.1000/kelp",
        "Kelp cover grew by 40% (p < 0.01). In two years.",
        {
            "source": "a.ris", "year": 2019, "journal": "Journal of the sea", "type": "JOUR",
            "authors": "Lee, Kim; Roy, Ann", "doi": "10.1000/kelp", "keywords": "kelp; otters",
            "url": "https://example.org/kelp", "title": "Kelp forests recover where otters return",
        },
    )  # fmt: skip
    facts = {"source": "a.ris", "type": "JOUR", "year": 2020, "key": "8", "doi": "10.1000/otters"}
    assert other == (
        "10.1000/otters",
        "Otters ate.",
        {**facts, "url": "http://dx.doi.org/10.1000/otters"},
    )
    assert [str(one) for one in skipped] == ["a.ris:22: has no abstract"]


def test_a_reference_in_ris_cites_its_source(write):
    [document, _] = read_passages(write("a.ris", RIS), on_skip=list)
    told = "Lee and Roy. Kelp forests recover where otters return. Journal of the sea, 2019. "
    assert str(Citation.of(document.metadata, document.id)) == f"{told}doi:10.1000/kelp"


def test_what_is_no_reference_in_ris_costs_itself_alone(write):
    skipped = []
    raw = RIS.encode().replace(b"A book", b"caf\xe9") + b"ER  -\nOtters.\nER  -\n"
    found = [row[0] for row in read(write("a.ris", raw), on_skip=skipped.append)]
    assert found == ["10.1000/kelp", "10.1000/otters"]
    assert [str(one) for one in skipped] == [
        "a.ris:22: not UTF-8; save the file as UTF-8",
        "a.ris:33: not a reference in RIS: 'Otters.'",
    ]


def test_a_library_that_begins_with_many_books_is_read_all_the_same(write):
    book = "TY  - BOOK\nTI  - A book\nER  - \n"
    skipped = []
    found = read(write("a.ris", book * (MOST_BAD + 5) + RIS), on_skip=skipped.append)
    assert len(found) == 2
    assert len(skipped) == MOST_BAD + 6


def test_headers_of_scopus_are_known_and_a_missing_abstract_is_no_text(write):
    skipped = []
    [(name, text, metadata)] = read(write("a.csv", SCOPUS), on_skip=skipped.append)
    assert (name, text) == ("10.1/kelp", "Kelp grew.")
    assert (metadata["year"], metadata["journal"]) == (2019, "Sea")
    assert [(one.place, one.without_text) for one in skipped] == [("a.csv:3", True)]


def test_several_texts_of_one_paper_are_told_apart_and_a_repeated_record_is_not_read_twice(write):
    lines = [{"doi": "10.1/x", "text": text} for text in ("one", "two", "one")]
    skipped = []
    name = write("a.jsonl", "\n".join(map(json.dumps, lines)))
    assert [row[0] for row in read(name, on_skip=skipped.append)] == ["10.1/x", "a.jsonl:2"]
    assert [str(one) for one in skipped] == [
        "a.jsonl:3: id '10.1/x' is used twice, with the same text"
    ]
    assert not skipped[0].is_lost


@pytest.mark.full
@pytest.mark.parametrize("ext", ["ris", "bib", "csv", "jsonl"])
@pytest.mark.parametrize("text", ["Kelp grew.", "Kelp grew less."])
def test_a_file_that_begins_with_papers_of_another_is_read_for_its_new_ones(write, ext, text):
    write("f/a.csv", _write_papers("csv", range(MOST_BAD + 5), "Kelp grew."))
    write(f"f/b.{ext}", _write_papers(ext, range(MOST_BAD + 6), text))
    skipped = []
    found = list(read_passages("f", on_skip=skipped.append))
    assert any(one.metadata["doi"] == f"10.1000/{MOST_BAD + 5}" for one in found)
    assert not any(one.is_lost for one in skipped)
    assert len(found) + len(skipped) == 2 * MOST_BAD + 11


def _write_papers(ext, numbers, text):
    """Return papers with a DOI each, in a form of exports."""
    form = {
        "csv": "{t},{t} {n},10.1000/{n}\n",
        "ris": "TY  - JOUR\nTI  - Kelp\nAB  - {t} {n}\nDO  - 10.1000/{n}\nER  - \n",
        "bib": "@article{{k{n}, title={{Kelp}}, abstract={{{t} {n}}}, doi={{10.1000/{n}}}}}\n",
        "jsonl": '{{"title": "Kelp", "text": "{t} {n}", "doi": "10.1000/{n}"}}\n',
    }[ext]
    head = "title,text,doi\n" if ext == "csv" else ""
    return head + "".join(form.format(t=text, n=n) for n in numbers)


def test_ids_that_a_file_gives_itself_and_another_has_do_not_give_it_up(write):
    lines = [json.dumps({"id": f"k{n}", "text": f"Kelp {n}."}) for n in range(MOST_BAD + 2)]
    write("f/a.jsonl", "\n".join(lines[:-1]))
    write("f/b.jsonl", "\n".join(lines).replace("Kelp", "Moss"))
    skipped = []
    found = list(read_passages("f", on_skip=skipped.append))
    assert found[-1].page_content == f"Moss {MOST_BAD + 1}."
    assert len(skipped) == MOST_BAD + 1
    assert all(one.is_lost for one in skipped)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.ndjson", '{"id": 1, "text": "one"}\n{"id": 2, "text": "two"}'),
        ("a.json", '[{"id": 1, "text": "one"}, {"id": 2, "text": "two"}]'),
        ("a.json", '{"n": 2, "items": [{"id": 1, "text": "one"}, {"id": 2, "text": "two"}]}'),
        ("a.json", '{"id": 1, "text": "one"}\n{"id": 2, "text": "two"}'),
        ("a.tsv", "ID\tText\n1\tone\n2\ttwo\n"),
        ("a.tsv", "1\tone\n2\ttwo\n"),
        ("a.csv", "id;text\n1;one\n2;two\n"),
        ("a.csv", " Id , TEXT \n1,one\n\n2,two\n"),
    ],
)
@pytest.mark.parametrize("compress", [False, True])
def test_the_same_records_are_read_from_every_kind_of_file(write, name, content, compress):
    raw = content.encode()
    name = write(f"{name}.gz", gzip.compress(raw)) if compress else write(name, raw)
    assert [row[:2] for row in read(name)] == [("1", "one"), ("2", "two")]


def test_a_single_object_is_one_record(write):
    assert read(write("a.json", '{"text": "one", "tags": ["x"]}'))[0][1] == "one"


BAD_FOLDER = {
    "f/a.jsonl": '{"id": "x", "text": "kelp"}\n{oops\n{"id": "x", "text": "b"}\n{"text": "otter"}',
    "f/b.txt": "",
    "f/c.txt": b"caf\xe9",
    "f/d.csv": b'id,text\n1,one\n2,caf\xe9\n3\n4,"a"b\n5,five\n',
    "f/e.md": "Kelp.",
    "f/lib.enw": "%0 Book",
    "f/paper.doc": "x",
}


def test_what_cannot_be_read_costs_itself_alone_and_is_named(write):
    for name, content in BAD_FOLDER.items():
        write(name, content)
    skipped = []
    found = [row[0] for row in read("f", on_skip=skipped.append)]
    assert found == ["x", "f/a.jsonl:4", "1", "5", "f/e.md"]
    assert [(one.place, one.other_kind) for one in skipped] == [
        ("f/lib.enw", ".enw"),
        ("f/paper.doc", ".doc"),
        ("f/a.jsonl:2", ""),
        ("f/a.jsonl:3", ""),
        ("f/b.txt", ""),
        ("f/c.txt", ""),
        ("f/d.csv:3", ""),
        ("f/d.csv:4", ""),
        ("f/d.csv:5", ""),
    ]


def test_files_of_other_kinds_are_logged_when_nobody_asks_for_them(write, caplog):
    for name in ("f/a.txt", "f/paper.doc", "f/lib.enw"):
        write(name, "Kelp.")
    with caplog.at_level(logging.WARNING):
        assert len(read("f")) == 1
    assert caplog.messages == ["skipped 2 files (1 .doc, 1 .enw): f/lib.enw, f/paper.doc"]


def test_a_file_that_begins_with_bad_records_alone_is_given_up_early(write):
    question = json.dumps({"question": "Why?", "passages": ["a"]})
    name = write("q.jsonl", f"{question}\n" * 300)
    skipped = []
    assert read(name, on_skip=skipped.append) == []
    [one] = skipped
    assert one.place == "q.jsonl"
    assert one.reason.startswith("none of the first 20 lines can be used: line 1: has no text; ")
    assert one.reason.endswith(
        "found question, passages; and 19 more. "
        "This looks like a file of questions: see deepera rerank"
    )


@pytest.mark.parametrize(
    ("bad", "without_text"),
    [('{"title": "Otters"}', True), ('{"text": " "}', True), ("{}", False), ("{oops", False)],
)
def test_a_record_that_merely_lacks_its_text_is_told_from_a_wrong_one(write, bad, without_text):
    skipped = []
    read(write("a.jsonl", f'{{"text": "one"}}\n{bad}'), on_skip=skipped.append)
    assert [one.without_text for one in skipped] == [without_text]


def test_what_is_skipped_for_one_reason_is_one_line():
    kinds = {}
    for place, reason in [
        ("a.jsonl:2", "id '1' is used twice"),
        ("b.jsonl:3", "id '2' is used twice"),
    ]:
        one = Skipped(place, reason)
        kinds.setdefault(kind_of(one), SkippedKind()).add(one)
    assert [str(one) for one in kinds.values()] == [
        "2 records (e.g. id '1' is used twice): a.jsonl:2, b.jsonl:3"
    ]


def test_a_good_record_among_the_first_lets_the_file_be_read_on(write):
    name = write("a.jsonl", "{}\n" * 19 + '{"text": "one"}\n' + "{}\n" * 30)
    skipped = []
    assert len(read(name, on_skip=skipped.append)) == 1
    assert len(skipped) == 49


def test_reading_tells_how_far_it_is_over_all_files(write):
    write("f/a.txt", "Kelp.")
    write("f/b.jsonl.gz", gzip.compress(b'{"text": "one"}\n{"text": "two"}'))
    seen = []
    assert len(read("f", on_read=lambda n, of: seen.append((n, of)))) == 3
    assert [n for n, _ in seen] == sorted(n for n, _ in seen)
    assert {of for _, of in seen} == {seen[-1][0]}


@pytest.mark.parametrize("max_words", [0, -3])
def test_max_words_below_one_is_an_error(write, max_words):
    with pytest.raises(SettingsError, match="max_words"):
        read_passages(write("a.txt", "a"), max_words=max_words)


def test_the_docs_name_every_field_and_kind_of_file():
    page = (Path(__file__).parents[2] / "docs" / "files.md").read_text(encoding="utf-8")
    named = {*TEXT_FIELDS, *ID_FIELDS, *PAPER_ID_FIELDS, *KNOWN_SUFFIXES, *CANDIDATE_FIELDS[2:4]}
    assert {one for one in named if f"`{one}`" not in page and f'"{one}"' not in page} == set()
