"""Topics from files of every form."""

import gzip
from pathlib import Path

import pytest

from deepera_graph.errors import InputError
from deepera_graph.lab.quest.topics import read_classes, read_topics

SKOS = """<?xml version="1.0" encoding="UTF-8"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
         xmlns:skos="http://www.w3.org/2004/02/skos/core#">
  <skos:ConceptScheme rdf:about="http://example.org/waters">
    <skos:prefLabel xml:lang="en">Waters</skos:prefLabel>
    <skos:hasTopConcept rdf:resource="#1"/>
  </skos:ConceptScheme>
  <skos:Concept rdf:about="#1">
    <skos:prefLabel xml:lang="de">Seen</skos:prefLabel>
    <skos:prefLabel xml:lang="en">Lakes</skos:prefLabel>
    <skos:narrower rdf:resource="#1.2"/>
  </skos:Concept>
  <skos:Concept rdf:about="#1.2">
    <skos:prefLabel xml:lang="en">Ice &amp; snow</skos:prefLabel>
    <skos:scopeNote>On lakes.</skos:scopeNote>
  </skos:Concept>
  <skos:Concept rdf:about="#1.3">
    <skos:prefLabel xml:lang="en">Tides</skos:prefLabel>
    <skos:broader rdf:resource="#1"/>
  </skos:Concept>
</rdf:RDF>
"""


def paths(file, text, **how):
    file.write_text(text, encoding="utf-8")
    return [one.path for one in read_topics(file, **how).topics]


def test_a_classification_in_skos_gives_its_narrowest_concepts_with_those_above(tmp_path):
    file = tmp_path / "waters.xml"
    assert paths(file, SKOS) == ["Lakes > Ice & snow", "Lakes > Tides"]
    assert paths(file, SKOS, whole=True) == ["Lakes", "Lakes > Ice & snow", "Lakes > Tides"]
    [ice, _] = read_topics(file).topics
    assert (ice.id, ice.about) == ("1.2", "On lakes.")


def test_a_list_has_a_topic_a_line_perhaps_below_others(tmp_path):
    text = "\ufeff# mine\nLakes\n\nLakes > Ice\nRivers~Floods ~ Dams\nlakes\nRivers → Fish\n"
    wanted = ["Lakes > Ice", "Rivers > Floods > Dams", "Rivers > Fish"]
    assert paths(tmp_path / "topics.txt", text) == wanted
    assert paths(tmp_path / "topics.txt", text, whole=True) == ["Lakes", *wanted]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", "Name,Parent\nIce,Lakes\nTides,Lakes\n"),
        ("t.csv", "\ufefftopic;parent\nIce;Lakes\nTides;Lakes\nIce;Lakes\n"),
        ("t.csv", "level 1;level 2\nLakes;Ice\nLakes;Tides\nLakes;\n"),
        ("t.tsv", "id\ttopic\n1\tLakes~Ice\n2\tLakes~Tides\n"),
        ("t.jsonl", '{"topic": "Ice", "parents": ["Lakes"]}\n{"label": "Lakes > Tides"}\n'),
        ("t.json", '[{"name": "Ice", "broader": "Lakes"}, {"name": "Lakes > Tides"}]'),
    ],
)
def test_tables_and_json_name_topics_and_those_above(tmp_path, name, text):
    assert paths(tmp_path / name, text) == ["Lakes > Ice", "Lakes > Tides"]


def test_a_stroke_within_a_name_puts_it_below_nothing(tmp_path):
    assert paths(tmp_path / "topics.txt", "TCP / IP\nClient/server") == [
        "TCP / IP",
        "Client/server",
    ]


def test_a_compressed_file_is_read(tmp_path):
    file = tmp_path / "topics.txt.gz"
    file.write_bytes(gzip.compress(b"Lakes\n"))
    assert [one.name for one in read_topics(file).topics] == ["Lakes"]


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("t.docx", "Lakes", "topics are in a file of .txt, .csv"),
        ("t.txt", "\n# none\n", "no topics were given"),
        ("t.xml", "<rdf", "not XML"),
        ("t.xml", "<lakes/>", "no topics were given"),
        ("t.jsonl", '{"topik": "Lakes"}', "needs a field 'topic', 'name' or 'label', got topik"),
        ("t.jsonl", "Lakes", "record 1: not JSON"),
        ("t.txt", "", "no topics were given"),
        ("t.txt", "Lakes\n ~ \n", "the topic with the id '2' has no name"),
        ("t.txt", "x" * 10_000, "at most 1000 characters, got 10000: 'xxx"),
        ("t.csv", "id,topic\n1,Lakes\n1,Seas\n", "the id '1': 'Lakes' and 'Seas'"),
    ],
)
def test_a_file_that_has_no_topics_says_what_is_wrong(tmp_path, name, text, problem):
    with pytest.raises(InputError, match=problem):
        paths(tmp_path / name, text)


def test_a_list_that_is_not_utf_8_is_named(tmp_path):
    (tmp_path / "t.txt").write_bytes(b"Lakes\n\xff\n")
    with pytest.raises(InputError, match="not UTF-8 at byte 7"):
        read_topics(tmp_path / "t.txt")


def test_the_forty_classes_of_computer_science_come_as_topics_and_as_categories():
    found = read_topics(Path("arxiv-cs")).topics
    assert len({one.id for one in found}) == 40
    assert all(one.id.startswith("cs.") and one.name for one in found)
    assert read_classes(["math.ST", "arxiv-cs", "cs.CL"])[:3] == ("math.ST", "cs.AI", "cs.AR")
    assert len(read_classes(["math.ST", "arxiv-cs", "cs.CL"])) == 41


def test_a_file_of_the_name_of_the_shipped_list_is_read_as_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("arxiv-cs").write_text("Kelp\n")
    with pytest.raises(InputError, match="topics are in a file of"):
        read_topics(Path("arxiv-cs"))
