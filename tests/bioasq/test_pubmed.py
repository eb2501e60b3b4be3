"""PubMed's files: what a record says, and what a broken one costs."""

import gzip
import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deepera_graph.bioasq.pubmed import files as pubmed
from deepera_graph.bioasq.pubmed.files import RecordProblems, find_files, read_pubmed
from deepera_graph.bioasq.pubmed.records import Deleted, PubmedRecord
from deepera_graph.errors import InputError
from support.pubmed_xml import MATH, article, book, deletion, document, write


@pytest.fixture
def read(tmp_path):
    """Writes a file of elements; returns what is read of it, and what could not be."""

    def read_elements(*elements, raw=None, name="moss.xml"):
        path = tmp_path / name
        path.write_bytes(document(*elements) if raw is None else raw)
        problems = RecordProblems()
        return [*read_pubmed([path], problems=problems)], problems

    return read_elements


def numbers(found):
    return [one.pmid for one in found]


def test_a_record_has_what_the_citation_says(read):
    [record], problems = read(article(7, abstract=[("", "Moss grew."), ("RESULTS", "It held.")]))
    assert record == PubmedRecord(
        pmid="7",
        title="Moss on walls.",
        abstract="Moss grew. RESULTS: It held.",
        parts=(("", 0, 10), ("RESULTS", 20, 28)),
        year=2019,
        journal="Annals of invented botany",
        mesh=("Bryophyta",),
        publication_types=("Journal Article",),
        language="eng",
    )
    assert not problems.counts


@pytest.mark.parametrize(
    ("xml", "text"),
    [
        ("<i>Bryum fictum</i> grew", "Bryum fictum grew"),
        ("CO<sub>2</sub> at 10<sup>-3</sup>", "CO2 at 10-3"),
        ("<b>very <i>old <u>un</u>der</i></b> moss", "very old under moss"),
        ("5 &lt; 6 &amp; &#946;, &#x3b1;", "5 < 6 & β, α"),
        ("e\u0301tude, 𝛽, \u2028line, a\u00a0b", "e\u0301tude, 𝛽, \u2028line, a\u00a0b"),
        ("one\n        two\tthree", "one two three"),
        ("  two  blanks ", "two  blanks"),
        ("a<!-- no -->b<?no no?>c", "abc"),
        (
            f"is <mml:math {MATH}>\n <mml:msup> <mml:mi> R </mml:mi>\n<mml:mn>2</mml:mn></mml:msup>"
            "<mml:mo>=</mml:mo><mml:mn>0.9</mml:mn>\n</mml:math> now",
            "is R2=0.9 now",
        ),
    ],
)
def test_tags_entities_and_formulas_become_text(read, xml, text):
    [record], _ = read(article(1, title=xml, abstract=[("", xml)]))
    assert (record.title, record.abstract) == (text, text)


_TEXT = st.text(
    st.characters(exclude_categories=("Cs", "Cc", "Cn")), min_size=1, max_size=12
).filter(str.strip)
_LABEL = st.sampled_from(["", "AIM", "METHODS AND SITES", "RESULTS"])


@pytest.mark.full
@given(st.lists(st.tuples(_LABEL, st.one_of(_TEXT, st.just(" \n "))), max_size=5))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_parts_are_where_they_say_and_nothing_else_is_in_the_abstract(read, parts):
    escaped = [(label, text.replace("&", "&amp;").replace("<", "&lt;")) for label, text in parts]
    escaped = [(label, text.replace(">", "&gt;")) for label, text in escaped]
    [record], _ = read(article(1, abstract=escaped))
    rest, at = "", 0
    for part in record.parts:
        rest += record.abstract[at : part.start]
        at = part.end
        assert rest.endswith(f"{part.label}: " if part.label else "")
    labels = [f"{label}: " if label else "" for label, text in parts if text.strip(" \n")]
    assert rest == " ".join(labels)
    found = [record.abstract[one.start : one.end] for one in record.parts]
    assert found == [text.strip(" \n") for _, text in parts if text.strip(" \n")]


@pytest.mark.parametrize("abstract", [None, [], [("", "")], [("RESULTS", " \n ")]])
def test_a_record_without_an_abstract_is_read(read, abstract):
    [record], problems = read(article(1, abstract=abstract))
    assert (record.abstract, record.parts) == ("", ())
    assert not problems.counts


def test_what_is_not_the_abstract_or_the_number_is_left_alone(read):
    other = "<OtherAbstract Type='Publisher'><AbstractText>Non.</AbstractText></OtherAbstract>"
    cited = "<CommentsCorrections RefType='CommentIn'><PMID>99</PMID></CommentsCorrections>"
    [record], _ = read(
        article(
            1,
            more="<CopyrightInformation>© Nobody.</CopyrightInformation>",
            comments=f"<CommentsCorrectionsList>{cited}</CommentsCorrectionsList>",
            after=other,
        )
    )
    assert (record.pmid, record.abstract) == ("1", "Moss covered most walls.")
    assert not record.retracted


@pytest.mark.parametrize(
    ("date", "year"),
    [
        ("<Year>1998</Year><Month>May</Month>", 1998),
        ("<MedlineDate>2019 Nov-2020 Jan</MedlineDate>", 2019),
        ("<MedlineDate>Winter</MedlineDate>", None),
        ("", None),
    ],
)
def test_the_year_is_that_of_the_issue(read, date, year):
    assert read(article(1, date=date))[0][0].year == year


@pytest.mark.parametrize(
    "more",
    [
        {"types": "<PublicationType>Retracted Publication</PublicationType>"},
        {
            "comments": "<CommentsCorrectionsList><CommentsCorrections RefType='RetractionIn'>"
            "<PMID>9</PMID></CommentsCorrections></CommentsCorrectionsList>"
        },
    ],
)
def test_an_article_that_was_retracted_says_so(read, more):
    assert read(article(1, **more))[0][0].retracted


def test_a_notice_of_a_retraction_is_not_retracted(read):
    notice = "<PublicationType>Retraction of Publication</PublicationType>"
    assert not read(article(1, types=notice))[0][0].retracted


def test_versions_books_and_deletions_come_as_they_stand(read):
    found, _ = read(article(1, version=2), book(2), deletion(3, 4))
    assert [type(one) for one in found] == [PubmedRecord, PubmedRecord, Deleted, Deleted]
    assert numbers(found) == ["1", "2", "3", "4"]
    assert (found[0].version, found[1].is_book, found[1].title) == (2, True, "Walls.")


BROKEN = {
    "never closed": article(5, abstract=[("", "<i>never closed")]),
    "a bare ampersand": article(5, abstract=[("", "salt & water")]),
    "a control character": article(5, abstract=[("", "a\x0bb")]),
    "an unknown entity": article(5, abstract=[("", "a &alphaa; b")]),
    "another end tag": article(5, abstract=[("", "<sup>2</sub>")]),
    "no number": article(""),
    "an odd number": article("PMC12x"),
    "no article": "<PubmedArticle><MedlineCitation><PMID>5</PMID></MedlineCitation>"
    "</PubmedArticle>",
    "no citation": "<PubmedArticle></PubmedArticle>",
    "no end": article(5).replace("</PubmedArticle>", ""),
    "no beginning": article(5).replace("<PubmedArticle>", "<PubmedArtikel>"),
    "nothing in it": "<PubmedArticle/>",
    "a document type": article(5, title="<!DOCTYPE a [<!ENTITY b 'c'>]>&b;"),
    "a deletion of nothing": deletion(""),
}


@pytest.mark.parametrize("element", BROKEN.values(), ids=BROKEN)
def test_a_broken_record_is_counted_and_costs_no_neighbour(read, element):
    found, problems = read(article(1), element, article(2), book(3), element, deletion(4))
    assert numbers(found) == ["1", "2", "3", "4"]
    assert problems.counts.total() == 2
    assert not problems.has_bad_file


def test_bytes_that_are_no_utf8_cost_their_record(read):
    raw = document(article(1), article(2, title="caf@"), article(3)).replace(b"caf@", b"caf\xe9")
    found, problems = read(raw=raw)
    assert numbers(found) == ["1", "3"]
    assert [(one.number, one.pmid) for one in problems.first] == [(2, "2")]


def test_a_file_may_be_in_another_encoding(read):
    raw = document(article(1, title="café")).decode().replace("utf-8", "iso-8859-1")
    assert read(raw=raw.encode("latin-1"))[0][0].title == "café"


def test_a_comment_hides_what_is_in_it(read):
    found, problems = read(article(1), f"<!-- {article(2)} -->", article(3))
    assert (numbers(found), problems.counts.total()) == (["1", "3"], 0)


def test_namespaces_of_the_whole_file_are_known(read):
    formula = "<mml:math><mml:mi>x</mml:mi></mml:math>"
    raw = document(article(1, title=formula)).replace(
        b"<PubmedArticleSet>", f"<PubmedArticleSet {MATH}>".encode()
    )
    assert read(raw=raw)[0][0].title == "x"


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))


@pytest.mark.parametrize(
    "declared", [f'<!ENTITY l0 "ha">{LAUGHS}', '<!ENTITY l9 SYSTEM "file:///etc/hostname">']
)
def test_no_entity_is_expanded_or_fetched(read, declared):
    head = f"<!DOCTYPE PubmedArticleSet [{declared}]><PubmedArticleSet>"
    raw = f"{head}{article(1)}{article(2, title='&l9;')}{article(3)}</PubmedArticleSet>"
    found, problems = read(raw=raw.encode())
    assert numbers(found) == ["1", "3"]
    assert problems.counts == {"ill-formed": 1}


@pytest.mark.full
@given(size=st.integers(1, 400))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
def test_it_does_not_matter_how_a_file_falls_into_blocks(tmp_path, size):
    elements = (article(1), BROKEN["no end"], "<!-- & -->", article(2), "stray", deletion(3))
    path = tmp_path / "moss.xml"
    path.write_bytes(document(*elements))
    with pytest.MonkeyPatch.context() as patch:
        whole, split = RecordProblems(), RecordProblems()
        expected = [*read_pubmed([path], problems=whole)]
        patch.setattr(pubmed, "_BLOCK", size)
        assert [*read_pubmed([path], problems=split)] == expected
    assert split.first == whole.first


@pytest.mark.full
@given(share=st.floats(0.02, 0.999))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
def test_a_file_that_is_cut_off_is_read_up_to_there_and_named(tmp_path, share):
    elements = [article(n, title=f"{n * 7919 % 101:b} walls") for n in range(1, 40)]
    path = write(tmp_path, 1, *elements)
    whole = path.read_bytes()
    path.write_bytes(whole[: max(20, int(len(whole) * share))])
    problems = RecordProblems()
    found = [*read_pubmed([path], problems=problems)]
    assert numbers(found) == [str(n) for n in range(1, len(found) + 1)]
    assert [(one.fault, one.number) for one in problems.first] == [("cut off", None)]


@pytest.mark.parametrize(
    ("raw", "fault", "reason"),
    [
        (b"", "empty", "nothing in it"),
        (gzip.compress(b"", mtime=0), "empty", "nothing in it"),
        (b"<html><body>404 Not Found</body></html>\n", "not PubMed", "an HTML page"),
        (b"<!DOCTYPE html><title>Wait</title>", "not PubMed", "an HTML page"),
        (b'{"a": 1}', "not PubMed", "no record of PubMed"),
        (document(article(1))[:-22], "cut off", "no </PubmedArticleSet>; 0 records before"),
        (gzip.compress(document(article(1))) + b"junk", "cut off", "1 record before"),
    ],
)
def test_a_damaged_file_is_named(read, raw, fault, reason):
    _, problems = read(raw=raw, name="moss.xml.gz")
    [problem] = problems.first
    assert (problem.file, problem.fault, problem.number) == ("moss.xml.gz", fault, None)
    assert reason in problem.reason
    assert problems.has_bad_file


def test_a_damaged_file_is_named_however_many_records_are_broken(read, monkeypatch):
    monkeypatch.setattr(pubmed, "MOST_KEPT", 2)
    _, problems = read(raw=document(article(1), *[article("x")] * 5)[:-20])
    assert [one.fault for one in problems.first] == ["PMID is no number"] * 2 + ["cut off"]
    assert problems.counts["PMID is no number"] == 5


def test_text_between_records_is_told_wherever_it_stands(read):
    found, problems = read("moss", article(1), "kelp", article(2), "<x/>")
    assert numbers(found) == ["1", "2"]
    assert [one.reason for one in problems.first] == ["'moss'", "'kelp'", "'<x/>'"]
    assert problems.counts == {"stray text": 3}


def test_what_a_file_is_counts_and_not_its_name(read):
    assert read(article(1), name="moss.xml.gz")[0]
    assert read(raw=gzip.compress(document(article(1))), name="moss.xml")[0]


def test_a_checksum_beside_a_file_is_compared(tmp_path):
    path = write(tmp_path, 1, article(1), signed=True)
    assert numbers(read_pubmed([path])) == ["1"]
    path.with_name(f"{path.name}.md5").write_text("0" * 32)
    problems = RecordProblems()
    assert numbers(read_pubmed([path], problems=problems)) == ["1"]
    assert problems.counts == {"wrong MD5": 1}


def test_without_a_place_for_problems_the_first_is_an_error(tmp_path):
    path = write(tmp_path, 1, article(1), BROKEN["no number"])
    with pytest.raises(InputError, match=r"pubmed25n0001\.xml\.gz, record 2: no PMID"):
        [*read_pubmed([path])]


def test_official_names_give_the_order_and_others_the_order_given(tmp_path):
    for name in ("update/pubmed25n1275.xml.gz", "base/pubmed25n0002.xml.gz", "base/a.xml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    later, first, plain = (
        tmp_path / "update/pubmed25n1275.xml.gz",
        tmp_path / "base/pubmed25n0002.xml.gz",
        tmp_path / "base/a.xml",
    )
    assert find_files([later, first]) == [first, later]
    assert find_files(str(later)) == [later]
    assert find_files([later, tmp_path / "base"]) == [later, plain, first]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: folder / "none.xml", "no such file"),
        (lambda folder: folder, r"holds no \.xml or \.xml\.gz file"),
        (lambda folder: _touch(folder / "moss.json"), r"expected \.xml or \.xml\.gz"),
    ],
)
def test_what_is_no_file_of_pubmed_is_named(tmp_path, make, message):
    with pytest.raises(InputError, match=message):
        [*read_pubmed([make(tmp_path)])]


def _touch(path):
    path.touch()
    return path


@pytest.mark.full
def test_memory_does_not_grow_with_the_file(tmp_path):
    long = [("", "Moss covered the wall. " * 1500)]
    path = write(tmp_path, 1, *(article(n, abstract=long) for n in range(300)))
    [*read_pubmed([path])][:1]
    tracemalloc.start()
    n = sum(1 for _ in read_pubmed([path]))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert n == 300
    assert len(gzip.decompress(path.read_bytes())) > 4 * peak
