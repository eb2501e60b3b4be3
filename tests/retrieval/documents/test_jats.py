"""Passages read from articles in JATS."""

import pytest

from deepera_graph.errors import InputError
from deepera_graph.literature.citation import Citation
from deepera_graph.retrieval.sources import read_passages

DOCTYPE = (
    '<!DOCTYPE article PUBLIC "-//NLM//DTD JATS (Z39.96) Journal Archiving and Interchange DTD v1.3'
    ' 20210610//EN" "JATS-archivearticle1-3.dtd">\n'
)
ARTICLE = """<article xmlns:xlink="http://www.w3.org/1999/xlink" article-type="research-article">
<front><journal-meta><journal-title-group><journal-title>Sea</journal-title></journal-title-group>
</journal-meta><article-meta>
<article-id pub-id-type="pmid">31452104</article-id>
<article-id pub-id-type="doi">10.1000/kelp</article-id>
<title-group><article-title>Kelp &amp; <italic>otters</italic></article-title></title-group>
<contrib-group><contrib contrib-type="author"><name><surname>Lee</surname>
<given-names>Kim</given-names></name></contrib>
<contrib contrib-type="author"><name><surname>Roy</surname></name></contrib>
<contrib contrib-type="author"><collab>The kelp group</collab></contrib>
<contrib contrib-type="editor"><name><surname>Nobody</surname></name></contrib></contrib-group>
<pub-date pub-type="ppub"><year>2020</year></pub-date>
<pub-date pub-type="epub"><month>8</month><year>2019</year></pub-date>
<abstract><sec><title>Background</title><p>Kelp is eaten.</p></sec></abstract>
<abstract abstract-type="graphical"><p>A picture.</p></abstract>
</article-meta></front>
<body><sec><title>1. Results</title>
<p>Kelp grew by 40%<sup><xref ref-type="bibr" rid="b1">12</xref></sup> in CO<sub>2</sub>
[<xref ref-type="bibr" rid="b1">1</xref>].<fig><label>Figure 1</label><caption>
<p>Kelp in spring.</p></caption></fig> It lasted.</p>
<sec><title>Urchins</title><p>They died (p &lt; .001).</p>
<table-wrap><label>Table 1.</label><caption><title>Cover.</title><p>In percent.</p></caption>
<table><tr><td>40</td></tr></table></table-wrap></sec></sec></body>
<back><ack><p>We thank the otters.</p></ack>
<fn-group><fn><p>A note.</p></fn></fn-group>
<ref-list><title>References</title><ref><mixed-citation>Roy A. Urchins.</mixed-citation></ref>
</ref-list></back>
<sub-article><body><p>A review of it.</p></body></sub-article></article>"""
RESULTS = [
    "Kelp grew by 40% in CO2 [1]. It lasted.",
    "Figure 1. Kelp in spring.",
    "Urchins",
    "They died (p < .001).",
    "Table 1. Cover. In percent.",
]


def read(name):
    return list(read_passages(name))


@pytest.mark.parametrize("name", ["a.xml", "a.nxml", "a.txt"])
def test_an_article_is_read_by_its_sections_without_references_and_reviews(write, name):
    found = read(write(name, f'<?xml version="1.0"?>\n{DOCTYPE}{ARTICLE}'))
    assert [(one.metadata["section"], one.page_content) for one in found] == [
        ("Abstract", "Background\n\nKelp is eaten."),
        ("Results", "\n\n".join(RESULTS)),
        ("Acknowledgements", "We thank the otters."),
    ]
    assert found[0].metadata == {
        "source": name, "part": 1, "section": "Abstract", "title": "Kelp & otters",
        "authors": "Lee, Kim; Roy; The kelp group", "year": 2019, "journal": "Sea",
        "pmid": "31452104", "doi": "10.1000/kelp",
    }  # fmt: skip
    cited = "Lee et al. Kelp & otters. Sea, 2019. doi:10.1000/kelp"
    assert str(Citation.of(found[0].metadata, "1")) == cited


def test_several_articles_of_a_file_are_told_apart(write):
    many = f"<pmc-articleset>{ARTICLE}{ARTICLE}</pmc-articleset>"
    names = [one.id for one in read_passages(write("a.xml", many), max_words=None)]
    assert names == ["a.xml", "a.xml:2"]


def test_a_letter_that_only_the_dtd_names_is_read_and_no_dtd_is_fetched(write):
    text = f"{DOCTYPE}<article><body><p>TGF-&beta; rose by 4&thinsp;%.</p></body></article>"
    [document] = read(write("a.xml", text))
    assert document.page_content == "TGF-β rose by 4 %."


LAUGHS = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10 if n else "lol"}">' for n in range(12))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (f"<!DOCTYPE article [{LAUGHS}]><article>&a11;</article>", "defines the entity 'a0'"),
        (
            '<!DOCTYPE article [<!ENTITY x SYSTEM "file:///etc/passwd">]><article>&x;</article>',
            "defines the entity 'x', which is unsafe",
        ),
        ("<article>" + "<sec>" * 300, "elements are nested more than 200 deep"),
        ("<article><body>", "broken, or no XML: no element found"),
        (b"<article><p>caf\xe9</p></article>", "broken, or no XML: not well-formed"),
        ("<TEI><text/></TEI>", "XML of another kind (<TEI>); articles in JATS are read"),
        ("<article><body></body></article>", "no article with a text in it"),
        ("", "the file is empty"),
    ],
)  # fmt: skip
def test_unsafe_and_broken_files_are_named(write, content, message):
    with pytest.raises(InputError) as error:
        read(write("a.xml", content))
    assert str(error.value).startswith(f"a.xml: {message}")


def test_a_declared_encoding_is_read(write):
    text = '<?xml version="1.0" encoding="iso-8859-1"?><article><body><p>Café.</p></body></article>'
    assert read(write("a.xml", text.encode("latin-1")))[0].page_content == "Café."


@pytest.mark.parametrize("charset", ["gb18030", "shift_jis", "windows-1252", "no-such", "punycode"])
def test_an_article_is_read_in_the_encoding_that_it_declares(write, charset):
    letters = {"gb18030": "苹果", "shift_jis": "りんご", "windows-1252": "pomme évidée"}
    text = letters.get(charset, "apples")
    raw = f"<article><body><p>{text} stayed firm.</p></body></article>"
    encoded = raw.encode(charset if charset in letters else "ascii")
    head = f'<?xml version="1.0" encoding="{charset}"?>'.encode()
    [found] = read(write("a.xml", head + encoded))
    assert found.page_content == f"{text} stayed firm."


def test_an_article_in_no_known_encoding_is_told_by_name(write):
    head = b'<?xml version="1.0" encoding="no-such"?>'
    with pytest.raises(InputError, match=r"a\.xml: not UTF-8"):
        read(write("a.xml", head + b"<article><body><p>\xe9</p></body></article>"))


def test_an_exponent_stays_one(write):
    body = "<p>10<sup>6</sup> cells, <italic>p</italic> = 10<sup>-3</sup>, Ca<sup>2+</sup>.</p>"
    [found] = read(write("a.xml", f"<article><body>{body}</body></article>"))
    assert found.page_content == "10⁶ cells, p = 10⁻³, Ca2+."
