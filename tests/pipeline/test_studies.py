"""PDF, preprint and records of one paper are one study, and what is counted are studies."""

import csv
import json
import random
from io import StringIO

import pytest
from langchain_core.documents import Document

from deepera_graph import EvidenceReranker, RerankResult, export_result
from deepera_graph.literature.citation import Citation
from deepera_graph.literature.same_study import find_studies, group_sources, is_same_study
from deepera_graph.testing import judged, scripted_backend
from deepera_graph.text.plain import drop_mark

QUESTION = "Does wax keep apples firm?"
LEE = {
    "title": "Wax coats and the firmness of stored apples",
    "authors": "Lee, Ada; Roy, Bo",
    "year": 2019,
    "journal": "Fruit Science",
    "doi": "10.1000/Wax.1",
}


def source(**metadata):
    return Citation.of(metadata, "1")


def without(*names, **changes):
    return {name: value for name, value in LEE.items() if name not in names} | changes


@pytest.mark.parametrize(
    "other",
    [
        {"doi": "10.1000/wAX.1"},
        {"doi": "https://doi.org/10.1000/wax.1", "title": "Microsoft Word - final2"},
        {"url": "https://dx.doi.org/10.1000/WAX.1"},
        {"title": "Wax coats and the firmness of stored apples."},
        {"title": "WAX COATS AND THE FIRMNESS OF STORED APPLES", "year": 2019},
        {"title": f"{LEE['title']} (Preprint)", "year": 2018, "doi": "10.1000/early.7"},
        {"title": LEE["title"], "authors": ["Ada Lee"], "year": "2018", "journal": "bioRxiv"},
    ],
)
def test_a_doi_in_any_form_or_a_title_is_one_study(other):
    assert is_same_study(source(**LEE), source(**other))


@pytest.mark.parametrize(
    "other",
    [
        without("doi", authors="Nunez, Eva"),
        without("doi", year=2012),
        without(doi="10.1000/wax.2", year=2020),  # a report of every year
        without("doi", title="Wax coats and the firmness of stored pears"),
    ],
)
def test_other_authors_years_or_words_of_a_title_are_two_studies(other):
    assert not is_same_study(source(**LEE), source(**other))


def test_pubmed_and_arxiv_ids_are_read_from_addresses_without_their_version():
    assert is_same_study(source(pmid="123"), source(url="https://pubmed.ncbi.nlm.nih.gov/123/"))
    assert is_same_study(
        source(arxiv="arXiv:2101.00001"), source(url="http://arxiv.org/abs/2101.00001v3")
    )
    assert is_same_study(
        source(doi="10.48550/arXiv.2101.00001"), source(eprint="2101.00001v2", title="Other")
    )
    assert not is_same_study(source(url="https://a.org/1"), source(url="https://a.org/2"))
    assert not is_same_study(source(title="Editorial"), source(title="Editorial"))


def test_what_names_no_author_is_of_no_study_where_two_would_do():
    lee, nunez = without("doi"), without("doi", authors="Nunez, Eva")
    bare = {"title": LEE["title"]}
    first, second, third = group_sources([source(**one) for one in (lee, nunez, bare)])
    assert first != second
    assert third not in (first, second)
    assert group_sources([source(**one) for one in (bare, lee)]) == [1, 1]


@pytest.mark.parametrize(
    ("changes", "numbers"),
    [
        pytest.param(  # the record of 2019 joins no article of 2020 to that of 2019
            [{}, {"doi": "10.1000/wax.2", "year": 2020}, {"doi": "", "authors": ""}],
            [1, 2, 1],
            id="two-articles",
        ),
        pytest.param([{"year": year} for year in (2019, 2020, 2021)], [1, 2, 3], id="annual"),
        pytest.param([{"year": year} for year in (2019, 2020)], [1, 1], id="online-and-print"),
        pytest.param([{"year": year} for year in (2016, 2018, 2020)], [1, 2, 3], id="chain"),
        pytest.param(
            [{"year": 2018, "journal": "bioRxiv"}, {"year": 2019}, {"year": 2020}],
            [1, 1, 1],
            id="preprint",
        ),
    ],
)
@pytest.mark.parametrize("step", [1, -1])
def test_years_that_do_not_all_fit_are_of_no_one_study(changes, numbers, step):
    has_doi = any("doi" in one for one in changes)
    records = [source(**((LEE if has_doi else without("doi")) | one)) for one in changes]
    found = group_sources(records[::step])[::step]
    assert pairs_of(found) == pairs_of(numbers)


def test_the_parts_of_a_document_are_one_study():
    found = find_studies([("a.pdf#1", {"part": 1}), ("a.pdf#2", {"part": 2}), ("b.pdf", {})])
    assert [one.study for one in found] == [1, 1, 2]
    pages = [("1", {"source": "a.pdf", "page": 0}), ("2", {"source": "a.pdf", "page": 7})]
    assert {one.study for one in find_studies(pages)} == {1}


WORDS = (
    "wax soil light bees moss iron salt heat rain root leaf seed copper lake frost clay".split()  # noqa: SIM905
)
NAMES = [f"{first}{last}" for first in ("Ad", "Bor", "Cel", "Dun") for last in ("ar", "ek", "in")]


def make_records(seed, n, n_duplicates):
    """Return metadata and the number of the paper: records, and others planted of them."""
    draw = random.Random(seed)
    papers = []
    for number in range(n - n_duplicates):
        words = " ".join(draw.sample(WORDS, 6))
        papers.append(
            {
                "title": f"Effects of {words} in site {number}",
                "authors": f"{draw.choice(NAMES)}, A.; {draw.choice(NAMES)}, B.",
                "year": draw.randint(2000, 2023),
                "doi": f"10.1000/Paper.{number}",
            }
        )
    for number in range(0, 60, 2):  # two papers of one title, by others
        first = f"{NAMES[number % 5]}, A."
        papers[number] |= {"authors": first, "year": 2010}
        papers[number + 1] |= papers[number] | {"authors": f"{NAMES[7]}, Z."}
        papers[number + 1] |= {"doi": f"10.1000/twin.{number}"}
    records = [(dict(one), number) for number, one in enumerate(papers)]
    for number in draw.sample(range(len(papers)), n_duplicates):
        records.append((draw.choice(COPIES)(dict(papers[number])), number))
    draw.shuffle(records)
    return records


COPIES = [
    lambda one: one | {"doi": one["doi"].upper()},
    lambda one: one | {"doi": f"https://doi.org/{one['doi'].lower()}", "title": ""},
    lambda one: (
        one | {"doi": one["doi"].replace("1000/", "1101/2020.01."), "year": one["year"] - 1}
    ),
    lambda one: {"title": one["title"].upper() + "."},  # a PDF
    lambda one: {name: one[name] for name in ("title", "authors")},
]


def pairs_of(numbers):
    return {
        (a, b)
        for a in range(len(numbers))
        for b in range(a + 1, len(numbers))
        if numbers[a] == numbers[b]
    }


@pytest.mark.full
def test_of_a_thousand_records_the_planted_duplicates_are_found_and_no_others():
    records = make_records(7, 1000, 300)
    found = find_studies((str(n), metadata) for n, (metadata, _) in enumerate(records))
    same, truth = pairs_of([one.study for one in found]), pairs_of([n for _, n in records])
    assert len(truth) == 300
    assert len(same & truth) / len(same) >= 0.995
    assert len(same & truth) / len(truth) >= 0.97


@pytest.mark.full
@pytest.mark.parametrize("seed", range(20))
def test_the_order_of_records_does_not_change_what_is_one_study(seed):
    records = [source(**metadata) for metadata, _ in make_records(seed, 120, 50)]
    records += [source(**make(LEE)) for make in (dict, *COPIES)]
    order = list(range(len(records)))
    random.Random(seed).shuffle(order)
    numbers, moved = group_sources(records), group_sources([records[at] for at in order])
    back = {tuple(sorted((order[a], order[b]))) for a, b in pairs_of(moved)}
    assert back == pairs_of(numbers)
    assert is_same_study(records[0], records[1]) == is_same_study(records[1], records[0])


PASSAGES = [
    {"id": "record", "text": "Wax kept apples firm.", "metadata": LEE},
    {"id": "pdf#4", "text": "Wax kept firmness.", "metadata": {"doi": LEE["doi"].lower()}},
    {"id": "other", "text": "Wax kept pears firm.", "metadata": {"title": "Pears in wax for once"}},
]
SCORES = {"record": 0.9, "pdf#4": 0.95, "other": 0.92}


def rerank(passages=PASSAGES, scores=SCORES, **settings):
    by_text = {one["text"]: scores[one["id"]] for one in passages}
    backend = scripted_backend(
        lambda task: judged(by_text[task["text"]], quote=task["text"], direction="supports")
    )
    return EvidenceReranker(backend, **settings).rerank(QUESTION, passages)


def test_a_study_counts_once_and_all_its_passages_are_given_back():
    result = rerank()
    assert [(one.id, one.study) for one in result.kept] == [
        ("pdf#4", 1), ("other", 2), ("record", 1),
    ]  # fmt: skip
    assert [[one.id for one in study] for study in result.studies] == [
        ["pdf#4", "record"], ["other"],
    ]  # fmt: skip
    assert result.direction_counts == {"supports": 2}
    assert [one.metadata["deepera"]["study"] for one in result.to_documents()] == [1, 2, 1]


def test_a_study_says_what_its_best_passage_of_evidence_says():
    said = {"Wax kept apples firm.": "supports", "Wax kept firmness.": "no_difference"}
    backend = scripted_backend(
        lambda task: judged(0.9 if "apples" in task["text"] else 0.95, direction=said[task["text"]])
    )
    result = EvidenceReranker(backend, order="retrieval").rerank(QUESTION, PASSAGES[:2])
    assert result.direction_counts == {"no_difference": 1}


def test_a_pdf_is_cited_by_what_the_record_of_its_paper_knows():
    result = rerank()
    pdf = next(one for one in result.passages if one.id == "pdf#4")
    assert result.cite(pdf).title == LEE["title"]
    assert result.cite(pdf).id == "pdf#4"
    assert str(result.cite(pdf)).startswith("Lee and Roy. Wax coats")
    assert result.to_documents()[0].metadata["deepera"]["citation"].startswith("Lee and Roy.")


def test_references_have_a_study_once():
    assert export_result(rerank(), "bibtex").count("@") == 2
    assert export_result(rerank(), "ris").count("TY  -") == 2
    rows = list(csv.DictReader(StringIO(export_result(rerank(), "csv"))))
    assert [one["study"] for one in rows] == ["1", "2", "1"]


def test_what_several_records_of_a_study_say_alike_is_said_once():
    copy = {**PASSAGES[0], "id": "copy", "metadata": {"doi": LEE["doi"].lower()}}
    result = rerank([*PASSAGES, copy], {**SCORES, "record": 0.96, "copy": 0.96})
    assert [one.study for one in result.kept] == [1, 1, 1, 2]
    for form in ("bibtex", "ris"):
        text = export_result(result, form)
        assert text.count("Wax kept apples firm.") == 1
        assert text.index("Wax kept apples firm.") < text.index("score 0.95: Wax kept firmness.")
    markdown = drop_mark(export_result(result, "markdown"))
    *_, first, second, third, other = markdown.splitlines()
    assert first.endswith("| Wax kept apples firm. | Wax kept apples firm. |")
    assert second.endswith("| as number 1 | as number 1 |")
    assert third.endswith("| Wax kept firmness. | Wax kept firmness. |")
    assert other.endswith("| Wax kept pears firm. | Wax kept pears firm. |")


def test_a_result_written_before_there_were_studies_has_them():
    plain = json.loads(rerank().to_json())
    for one in plain["passages"]:
        del one["study"], one["paper_status"]
    assert RerankResult.from_dict(plain).direction_counts == {"supports": 2}


@pytest.mark.full
def test_the_answer_without_a_model_quotes_and_counts_a_study_once():
    study = {
        "title": "Wax and the firmness of apples",
        "doi": "10.1000/1",
    }
    texts = (
        "Wax reduced the loss of firmness of apples by 30% (p = 0.01).",
        "Wax significantly reduced loss of firmness of apples in storage by 28% (p = 0.02).",
    )
    passages = [Document(page_content=one, metadata=study) for one in texts]
    result = EvidenceReranker("local", answer=True, threshold=0.0).rerank(
        "Does wax reduce the loss of firmness of apples?", passages
    )
    assert result.answer is not None
    assert len(result.kept) == 2
    assert result.answer["citations"] == [result.kept[0].id]
    assert "2 support" not in result.answer["text"]


COPIED = "Wax coats kept apples firm for ninety days in a cold store."
OTHER = "Wax coats lost their gloss after ninety days in a cold store."


def studies(*passages):
    given = [(id, metadata) for id, metadata, _ in passages]
    return [one.study for one in find_studies(given, [text for *_, text in passages])]


@pytest.mark.parametrize(
    ("one", "other", "text"),
    [
        ({}, {}, COPIED),
        ({}, {}, f" {COPIED.upper()}\n"),
        ({"title": LEE["title"]}, {}, COPIED),
        (LEE, {"source": "a (1).txt"}, COPIED),
    ],
)
def test_copies_of_a_text_are_one_study(one, other, text):
    assert studies(("x/a.txt", one, COPIED), ("y/a (1).txt", other, text)) == [1, 1]


@pytest.mark.parametrize(
    ("one", "other", "text"),
    [
        ({"title": "Wax on apples"}, {"title": "Wax on pears"}, COPIED),
        ({"doi": "10.1000/a"}, {"doi": "10.1000/b"}, COPIED),
        ({"year": 2001}, {"year": 2019}, COPIED),
        ({"authors": "Lee, Ada"}, {"authors": "Roy, Bo"}, COPIED),
        ({}, {}, OTHER),
    ],
)
def test_one_text_under_two_titles_or_ids_is_of_two_studies(one, other, text):
    assert studies(("a", one, COPIED), ("b", other, text)) == [1, 2]


def test_a_text_of_a_few_words_is_no_copy():
    assert studies(("a", {}, "Wax kept apples firm."), ("b", {}, "Wax kept apples firm.")) == [1, 2]


def test_a_copy_without_a_title_goes_with_none_of_two_that_differ():
    titled = [(name, {"title": f"Wax on {name}"}, COPIED) for name in ("apples", "pears")]
    bare = [(id, {}, COPIED) for id in ("a.txt", "b.txt")]
    assert studies(*titled, *bare) == [1, 2, 3, 3]


def test_documents_with_one_part_in_common_and_another_that_differs_are_two():
    def document(name, *texts):
        return [(f"{name}#{n}", {"part": n}, text) for n, text in enumerate(texts, start=1)]

    assert studies(*document("a.md", COPIED, OTHER), *document("b.md", COPIED, COPIED)) == [
        1,
        1,
        2,
        2,
    ]
    assert studies(*document("a.md", COPIED, OTHER), *document("b.md", COPIED)) == [1, 1, 1]


def judge_all(passages, **settings):
    reranker = EvidenceReranker(scripted_backend(lambda one: judged(0.9)), **settings)
    return reranker.rerank(QUESTION, passages)


def test_copies_take_no_place_of_those_that_are_kept():
    copies = [Document(COPIED, id=f"{n}", metadata=LEE) for n in range(3)]
    others = [Document(f"{COPIED} {n}", id=f"o{n}") for n in range(2)]
    passages = [*copies, *others]
    assert [one.id for one in judge_all(passages, top_n=3).kept] == ["0", "o0", "o1"]
    assert [one.id for one in judge_all(passages, top_n=4).kept] == ["0", "1", "o0", "o1"]
    assert [one.id for one in judge_all(passages).kept] == ["0", "1", "2", "o0", "o1"]
    assert [one.study for one in judge_all(passages, top_n=3).kept] == [1, 2, 3]
    nearest = judge_all(passages, top_n=3, threshold=0.95, on_empty="topn")
    assert [one.id for one in nearest.kept] == ["0", "o0", "o1"]


def test_parts_of_one_study_with_other_texts_each_take_a_place():
    parts = [Document(f"{COPIED} {n}", id=str(n), metadata=LEE) for n in range(3)]
    assert [one.id for one in judge_all(parts, top_n=2).kept] == ["0", "1"]
