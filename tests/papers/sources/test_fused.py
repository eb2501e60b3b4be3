"""Several services as one: the same paper once, fused by rank, in passages."""

import asyncio
from dataclasses import dataclass
from itertools import permutations

import pytest

from deepera_graph.errors import SettingsError
from deepera_graph.literature.citation import Citation
from deepera_graph.papers.paper import Paper, PaperRecord
from deepera_graph.papers.sources import Literature, SourceAnswer, SourceQuery, open_sources
from deepera_graph.papers.sources.fused import MergedRecords, fuse_answers
from support.literature import MODEL, QUESTION, SHARED_TITLE, TRIAL


def record(id, title="Tea and sleep in adults", **more):
    aliases = more.pop("aliases", ())
    return PaperRecord(paper=Paper(id=id, title=title, **more), aliases=aliases)


def fuse(*rankings, k=10):
    answers = [
        SourceAnswer(source=f"s{n}", status="ok", records=tuple(one))
        for n, one in enumerate(rankings)
    ]
    return fuse_answers(SourceQuery.of("tea"), answers, k)


@pytest.mark.full
def test_papers_are_fused_by_rank_and_each_comes_once(world):
    found = open_sources("all").search(QUESTION)
    by = {one.paper.title: dict(one.by) for one in found if one.paper.title != SHARED_TITLE}
    assert by[TRIAL] == {"pubmed": 1, "europe_pmc": 1, "openalex": 1, "semantic_scholar": 2}
    assert by[MODEL] == {"openalex": 2, "arxiv": 1, "semantic_scholar": 1}
    assert found[0].score == pytest.approx(3 / 61 + 1 / 62, abs=1e-6)
    assert [one.rank for one in found] == list(range(1, len(found) + 1))
    assert found.n_merged == 5
    assert asyncio.run(open_sources("all").asearch(QUESTION)).hits == found.hits


def test_papers_of_one_title_with_other_authors_and_years_stay_two(world):
    found = open_sources("pubmed,openalex").search(QUESTION)
    assert sorted(one.year for one in found.papers if one.title == SHARED_TITLE) == [2001, 2019]


def test_what_one_record_lacks_another_gives(world):
    [model] = [
        one for one in open_sources("s2,arxiv").search(QUESTION) if "model" in one.paper.title
    ]
    assert model.paper.venue == "arXiv.org"
    assert model.paper.abstract
    assert [*model.by] == ["semantic_scholar", "arxiv"]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (record("10.1/a"), record("W1", aliases=("10.1/a",)), True),
        (record("2101.00001"), record("W1", arxiv="2101.00001"), True),
        (record("a", year=2020), record("b", title="Tea & Sleep in Adults", year=2021), True),
        (record("a", year=2001), record("b", year=2019), False),
        (record("a", authors=("A. Roy",)), record("b", authors=("Lee, B.",)), False),
        (record("a", title="Editorial"), record("b", title="Editorial"), False),
        (record("10.1/a"), record("W1", title="Kelp under ice", aliases=("10.1/a",)), False),
    ],
)
def test_records_are_one_paper_by_id_or_title_unless_something_speaks_against_it(one, other, same):
    assert len(fuse([one], [other])) == (1 if same else 2)


def test_equal_scores_are_ordered_by_id_and_k_cuts():
    a, b = record("a", title="First on tea"), record("b", title="Second on tea")
    assert [one.paper.id for one in fuse([b], [a])] == ["a", "b"]
    assert len(fuse([b], [a], k=1)) == 1


def test_passages_have_what_they_are_cited_by(world):
    [passage, *_] = open_sources("pubmed,openalex").search(QUESTION).to_documents()
    cited = Citation.of(passage.metadata, passage.id)
    assert str(cited) == (
        "Lee. Green tea and fasting glucose: a randomised trial. Journal of Tea, 2015. "
        "doi:10.5555/tea.1"
    )
    assert cited.pmid == "101"
    assert passage.metadata["sources"] == ["pubmed", "openalex"]
    assert passage.metadata["retrieval_rank"] == 1


def test_services_with_the_same_trouble_are_named_together():
    answers = [
        SourceAnswer(source=name, status="failed", reason=reason)
        for name, reason in (("a", "no network"), ("b", "it is slow"), ("c", "no network"))
    ]
    cause = fuse_answers(SourceQuery.of("tea"), answers, 5).cause
    assert cause == "a, c: failed (no network); b: failed (it is slow)"


def test_a_long_abstract_becomes_several_passages():
    long = record("a", abstract="Tea is good. " * 30)
    passages = fuse([long]).to_documents(max_words=50)
    assert [one.id for one in passages] == ["a#1", "a#2"]
    assert " ".join(one.page_content for one in passages) == long.paper.abstract.strip()


def test_a_paper_without_abstract_is_told_and_gives_no_passage(world):
    found = open_sources("pubmed").search(QUESTION)
    assert [one.id for one in found.without_abstract] == ["PMID:103"]
    assert found.problems == ("1 paper has no abstract and could not be judged",)
    assert [one.id for one in found.to_documents()] == ["PMID:101", "PMID:104"]


@dataclass
class Own:
    """A source of somebody's own."""

    name: str = "own"
    error: Exception | None = None

    def search(self, query, k=30, scope=None):
        raise NotImplementedError

    async def asearch(self, query, k=30, scope=None):
        if self.error:
            raise self.error
        return SourceAnswer(source=self.name, status="ok", records=(record("x", abstract="Tea."),))


def test_a_source_of_ones_own_is_asked_beside_services(world):
    found = open_sources(["pubmed", Own()]).search(QUESTION)
    assert "x" in [one.id for one in found.papers]


def test_a_source_that_raises_costs_the_others_nothing(world):
    found = open_sources([Own(error=KeyError("boom")), "arxiv"]).search(QUESTION)
    assert [one.status for one in found.answers] == ["failed", "ok"]
    assert "KeyError" in found.answers[0].reason


def test_two_sources_of_one_name_are_an_error():
    with pytest.raises(SettingsError, match="'own'"):
        Literature([Own(), Own()])


ARTICLE = {"year": 2019, "venue": "Journal of Tea", "doi": "10.5555/tea.9"}
PREPRINT = {"year": 2018, "venue": "medRxiv", "doi": "10.1101/2018.05.01.123456"}


@pytest.mark.parametrize("step", [1, -1])
@pytest.mark.parametrize(
    ("texts", "doi", "pmid"),
    [
        (("Fell by 12%.", "Fell by 31%."), ARTICLE["doi"], "9"),
        (("", "Fell by 31%."), PREPRINT["doi"], ""),
    ],
)
def test_a_text_of_the_preprint_is_not_given_with_the_doi_of_the_article(step, texts, doi, pmid):
    article = record("PMID:9", abstract=texts[0], **ARTICLE)
    preprint = record("W9", abstract=texts[1], **PREPRINT)
    found = fuse(*([one] for one in (article, preprint)[::step]))
    [passage] = found.to_documents()
    cited = Citation.of(passage.metadata, passage.id)
    assert (cited.doi, cited.pmid) == (doi, pmid)
    assert passage.page_content == (texts[0] or texts[1])
    assert cited.is_preprint == (doi == PREPRINT["doi"])
    assert {"PMID:9", "W9", ARTICLE["doi"], PREPRINT["doi"]} <= {*found.records[0].ids}


def test_a_record_on_arxiv_is_filled_by_one_that_says_no_more_of_where_it_is():
    one = record("2101.00001", arxiv="2101.00001")
    [hit] = fuse([one], [record("W1", aliases=("2101.00001",), abstract="Tea.", year=2021)])
    assert (hit.paper.abstract, hit.paper.arxiv, hit.paper.year) == ("Tea.", "2101.00001", 2021)


ONE_PAPER = (
    record("PMID:1", "Green tea and fasting glucose in adults: a trial"),
    record("10.1/x", "Green tea and fasting glucose in adults"),
    record("W1", "Green tea and fasting glucose in adults: a trial", aliases=("10.1/x", "PMID:1")),
)


@pytest.mark.parametrize("order", [*permutations(ONE_PAPER)])
def test_records_that_a_third_one_tells_to_be_one_paper_are_one(order):
    found = fuse(*([one] for one in order))
    assert [one.paper.id for one in found] == [order[0].paper.id]
    assert {*found.records[0].ids} == {"PMID:1", "10.1/x", "W1"}
    assert dict(found[0].by) == {"s0": 1, "s1": 1, "s2": 1}
    assert found.n_merged == 2


def test_a_base_of_services_meets_a_paper_under_one_id_once_a_third_record_has_told():
    first, second, third = ONE_PAPER
    known = MergedRecords()
    numbers = [known.add(one) for one in (first, second)]
    assert known.add(third) == known.number_of(numbers[1]) == numbers[0]
    assert known.get("10.1/x") is known.get("PMID:1")
    assert known.get("10.1/x").paper.id == "PMID:1"


def test_records_that_share_ids_with_a_third_and_are_unlike_stay_two():
    mixed = record("W1", "Tea and sleep in adults", aliases=("10.1/x", "PMID:1"))
    other = record("10.1/x", "Kelp forests under warming water")
    found = fuse([record("PMID:1")], [other], [mixed])
    assert sorted(one.paper.id for one in found) == ["10.1/x", "PMID:1"]


def test_a_second_source_of_a_name_is_not_left_out_silently(world):
    with pytest.raises(SettingsError, match="two sources are named 'own'"):
        open_sources([Own(), Own()])
    own = Own(name="arxiv")
    assert [open_sources(both).sources for both in ([own, "arxiv"], ["arxiv", own])] == [(own,)] * 2


@pytest.mark.parametrize("given", [1, None, object()])
def test_what_is_no_source_is_an_error_that_names_it(given):
    with pytest.raises(SettingsError, match=f"got {str(given)[:7]}"):
        open_sources([given])


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_a_time_that_is_none_is_an_error_for_sources_of_ones_own(seconds):
    with pytest.raises(SettingsError, match="seconds must be > 0"):
        open_sources([Own()], seconds=seconds)


@dataclass
class Answering(Own):
    """A source that gives whatever it is told to."""

    answer: object = None

    async def asearch(self, query, k=30, scope=None):
        return self.answer


@pytest.mark.parametrize("answer", [None, [], "papers"])
def test_a_source_that_answers_nothing_known_costs_the_others_nothing(world, answer):
    found = open_sources([Answering(answer=answer), "arxiv"]).search(QUESTION)
    assert [one.status for one in found.answers] == ["failed", "ok"]
    assert "SourceAnswer" in found.answers[0].reason


def test_sources_that_answer_under_one_name_are_told_apart(world):
    answers = [
        SourceAnswer(source="same", status="ok", records=(record(id, title=f"About {id} in tea"),))
        for id in ("a", "b")
    ]
    given = [Answering(name=f"s{n}", answer=one) for n, one in enumerate(answers)]
    found = open_sources(given).search(QUESTION)
    assert [dict(one.by) for one in found] == [{"s0": 1}, {"s1": 1}]


@pytest.mark.parametrize(
    ("statuses", "has_failed"),
    [
        (("failed", "not_asked"), True),
        (("rate_limited", "failed"), True),
        (("failed", "empty"), False),
        (("not_asked", "not_asked"), False),
    ],
)
def test_none_has_answered_if_those_that_were_asked_failed(statuses, has_failed):
    answers = [SourceAnswer(source=f"s{n}", status=status) for n, status in enumerate(statuses)]
    assert fuse_answers(SourceQuery.of("tea"), answers, 5).has_failed is has_failed
