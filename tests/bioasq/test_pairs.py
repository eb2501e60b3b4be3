"""Pairs to tune on: no question in two parts, no golden document among the negatives."""

import json

import pytest

from deepera_graph.bioasq.questions import BioasqQuestion, read_pmid, read_questions
from deepera_graph.bioasq.runs import rank_scores
from deepera_graph.bioasq.settings import TuningSettings, read_ratio
from deepera_graph.bioasq.tuning.pairs import (
    QuestionPool,
    collect_pools,
    make_pairs,
    measure_map,
    split_questions,
    write_pairs,
    year_of,
)
from deepera_graph.errors import InputError, SettingsError, StoreError
from deepera_graph.judges.cross_encoder import encoder_backend
from deepera_graph.lab.training.lessons.pools import read_pools
from deepera_graph.retrieval.collections.store import open_store
from deepera_graph.retrieval.sources import read_passages
from deepera_graph.schema import Batch
from deepera_graph.stores.words import WordIndex
from support.bioasq import SHARED, docs
from support.minerals import CORPUS, write_corpus, write_golden


def ask(name, body="", documents=("7",)):
    body = body or f"What about moss {name}?"
    return BioasqQuestion(id=name, type="summary", body=body, documents=tuple(documents))


@pytest.fixture
def index(tmp_path):
    """All records, found by their words."""
    with WordIndex() as made:
        made.add(read_passages(write_corpus(tmp_path / "corpus.jsonl"), max_words=None))
        yield made


@pytest.fixture
def golden(tmp_path):
    return read_questions(write_golden(tmp_path / "golden.json"))


def names(split):
    return {part: {one.id for one in its} for part, its in split.parts().items()}


def test_every_question_is_in_one_part():
    split = split_questions([ask(f"q{n}") for n in range(50)])
    parts = names(split)
    assert {part: len(its) for part, its in parts.items()} == {
        "train": 40, "validation": 5, "test": 5,
    }  # fmt: skip
    assert len(set.union(*parts.values())) == 50


@pytest.mark.parametrize("seed", range(5))
def test_no_question_is_in_two_parts_by_id_or_by_text(seed):
    asked = [ask(f"q{n}", documents=[str(n)]) for n in range(30)]
    twins = [ask(f"t{n}", f"WHAT about\u00a0 moss q{n}", [str(n), "99"]) for n in range(0, 30, 3)]
    again = [ask("q1", "Another text of q1?", ["55"])]
    split = split_questions([*asked, *twins, *again], seed=seed)
    parts = split.parts().values()
    bodies = [" ".join(one.body.casefold().split()).strip("?") for its in parts for one in its]
    ids = [one.id for its in parts for one in its]
    assert (len(bodies), len(set(bodies)), len(set(ids))) == (30, 30, 30)
    assert split.joined == 11
    joined = {one.id: one.documents for its in parts for one in its}
    assert (joined["q3"], joined["q1"]) == (("3", "99"), ("1", "55"))


def test_a_question_stays_in_its_part_whatever_the_order():
    asked = [ask(f"q{n}") for n in range(40)]
    assert names(split_questions(asked)) == names(split_questions(asked[::-1]))
    assert names(split_questions(asked)) != names(split_questions(asked, seed=1))


def test_what_a_test_set_of_its_own_asks_is_not_trained_on():
    asked = [ask(f"q{n}") for n in range(20)]
    test = [ask("b1", "what about moss Q3"), ask("q5", "In other words?"), ask("b2")]
    split = split_questions(asked, test=test)
    assert split.in_test == 2
    assert names(split)["test"] == {"b1", "q5", "b2"}
    assert not {"q3", "q5"} & (names(split)["train"] | names(split)["validation"])


@pytest.mark.skipif(not SHARED.exists(), reason="the shared material is not here")
def test_no_claim_of_scifact_is_in_two_parts():
    folder = SHARED / "bioasq" / "real"
    split = split_questions(
        read_questions(folder / "scifact_train.json"),
        test=read_questions(folder / "scifact_dev.json"),
    )
    texts = [{one.body.casefold().strip(" .") for one in its} for its in split.parts().values()]
    assert sum(map(len, texts)) == len(set.union(*texts))


def test_questions_without_golden_documents_are_left_out_and_counted():
    split = split_questions([*(ask(f"q{n}") for n in range(9)), ask("none", documents=())])
    assert split.without_documents == 1
    assert "none" not in set.union(*names(split).values())


@pytest.mark.parametrize(
    ("n", "how", "error", "message"),
    [
        (2, {}, InputError, "too few questions to split: 2 of 2"),
        (9, {"shares": (80, 20)}, SettingsError, "three numbers"),
        (9, {"shares": (0, 50, 50)}, SettingsError, "above 0"),
        (9, {"shares": (90, float("nan"), 5)}, SettingsError, "nan"),
        (9, {"shares": (80, 10, 10), "test": [ask("t")]}, SettingsError, "last share must be 0"),
    ],
)
def test_a_split_that_cannot_be_made_is_told(n, how, error, message):
    with pytest.raises(error, match=message):
        split_questions([ask(f"q{one}") for one in range(n)], **how)


SPELLINGS = (
    "http://www.ncbi.nlm.nih.gov/pubmed/101",
    "https://www.ncbi.nlm.nih.gov/pubmed/101/",
    "https://pubmed.ncbi.nlm.nih.gov/101",
    " 101 ",
    "101",
)


@pytest.mark.parametrize("golden", SPELLINGS)
@pytest.mark.parametrize("indexed", [*SPELLINGS[:3], "101"])
def test_no_golden_document_is_a_negative_whatever_its_spelling(golden, indexed):
    with WordIndex() as index:
        for name, text in ((indexed, "Belkite is amber."), ("102", "Belkite is green.")):
            index.add(read_one(name, text))
        [pool] = collect_pools([ask("q", "What is belkite?", [golden])], index)
    pairs = make_pairs([pool])
    assert [(one.document.pmid, one.label) for one in pairs] in (
        [("101", 1), ("102", 0)],
        [("102", 0), ("101", 1)],
    )


def read_one(name, text):
    from langchain_core.documents import Document

    return [Document(id=name, page_content=text, metadata={"title": "Belkite"})]


def test_golden_documents_are_the_positives_and_what_else_is_found_the_negatives(index, golden):
    pools = collect_pools(golden, index, n_candidates=8)
    pairs = make_pairs(pools)
    for pool in pools:
        [wanted] = (read_pmid(one) for q in golden if q.id == pool.id for one in q.documents)
        labels = {one.document.pmid: one.label for one in pairs if one.question_id == pool.id}
        assert [pmid for pmid, label in labels.items() if label] == [wanted]
        assert set(labels) == {one.pmid for one in pool.found} | {wanted}


def test_a_golden_document_that_is_not_found_is_still_a_positive(index):
    asked = ask("q", "Which colour has dorvine?", docs(100))
    [pool] = collect_pools([asked], index, n_candidates=3)
    assert "100" not in [one.pmid for one in pool.found]
    assert [one.pmid for one in pool.held] == ["100"]
    assert make_pairs([pool])[-1][2:] == (pool.held[0], 1)


def test_a_document_with_the_text_of_a_golden_one_is_no_negative():
    with WordIndex() as index:
        for name in ("101", "102"):
            index.add(read_one(name, "Belkite is amber."))
        index.add(read_one("103", "Belkite is green."))
        [pool] = collect_pools([ask("q", "What is belkite?", ["101"])], index)
    assert [one.pmid for one in pool.negatives] == ["103"]


@pytest.mark.parametrize(("ratio", "n"), [(1.0, 1), (3.0, 3), (0.5, 1), (None, 7)])
def test_a_ratio_draws_so_many_negatives(index, golden, ratio, n):
    pools = collect_pools(golden, index, n_candidates=8)
    pairs = make_pairs(pools, ratio=ratio)
    for pool in pools:
        labels = [one.label for one in pairs if one.question_id == pool.id]
        assert (sum(labels), len(labels)) == (1, 1 + n)


def test_the_draw_of_a_question_depends_on_the_seed_and_no_other_question(index, golden):
    pools = collect_pools(golden, index, n_candidates=8)
    one = make_pairs(pools[:1], ratio=2.0)
    assert make_pairs(pools, ratio=2.0)[:3] == one
    assert any(make_pairs(pools[:1], ratio=2.0, seed=seed) != one for seed in range(1, 6))


def test_only_questions_of_recent_years_are_trained_on(index, golden):
    pools = collect_pools(golden, index, n_candidates=4)
    pairs = make_pairs(pools, since=2014)
    years = {one["id"]: one["year"] for one in CORPUS}
    assert {one.question_id for one in pairs} == {
        f"q{name}" for name, year in years.items() if year >= 2014
    }


@pytest.mark.parametrize(
    ("id", "years", "year"),
    [
        ("55031181e9bde69634000014", [2001], 2015),  # an ObjectId of March 2015
        ("00000000e9bde69634000014", [2001, "2003"], 2003),  # that of no time
        ("q1", [2001, None, "2009", "new", 2005], 2009),
        ("q1", [], None),
    ],
)
def test_the_year_of_a_question_is_that_of_its_id_or_of_its_newest_golden_document(id, years, year):
    assert year_of(id, years) == year


def test_a_question_whose_year_is_not_known_is_not_recent():
    pool = QuestionPool(
        id="q", question="Moss?", golden=frozenset({"1"}), found=(), held=(document("1"),)
    )
    assert (len(make_pairs([pool])), make_pairs([pool], since=1900)) == (1, [])


def document(pmid, text="Moss."):
    from deepera_graph.bioasq.phase_a.ordering import FoundDocument

    return FoundDocument(pmid, "", text)


@pytest.mark.full
def test_a_collection_gives_the_same_pools_as_the_corpus(tmp_path, index, golden):
    with open_store("stones", path=tmp_path / "store", mode="sparse") as store:
        store.add(index.passages())
        assert collect_pools(golden, store, n_candidates=5) == collect_pools(
            golden, index, n_candidates=5
        )


def test_a_search_that_fails_names_the_question():
    class Broken:
        def search(self, question, k):
            raise StoreError("the store is gone")

    with pytest.raises(StoreError, match=r"'q1': .*the store is gone"):
        collect_pools([ask("q1")], Broken())


def test_a_pair_reads_as_the_judge_will_read_it(index, tmp_path):
    seen = []

    class Model:
        def predict(self, pairs):
            seen.extend(pairs)
            return [0.0] * len(pairs)

    [pool] = collect_pools([ask("q", "Which colour has belkite?")], index, n_candidates=1)
    [found] = pool.found
    window = {"text": found.abstract, "title": found.title}
    encoder_backend(Model()).judge.judge(Batch(question=pool.question, windows=[window]))
    assert seen == [(pool.question, found.passage)]


def test_map_counts_golden_documents_that_were_not_found():
    pools = [
        QuestionPool(
            id=name, question="?", golden=frozenset(golden), found=(document("1"),), held=()
        )
        for name, golden in (("a", {"1", "2"}), ("b", {"3"}))
    ]
    run = {"a": rank_scores({"1": 1.0, "9": 0.5}), "b": rank_scores({"1": 1.0})}
    assert measure_map(pools, run) == pytest.approx((0.5 + 0.0) / 2)


@pytest.mark.parametrize(
    ("text", "ratio"), [("1:1", 1.0), (" 1:4 ", 4.0), ("2:1", 0.5), ("all", None)]
)
def test_a_ratio_is_golden_documents_to_negatives(text, ratio):
    assert read_ratio(text) == ratio


@pytest.mark.parametrize("text", ["", "1", "1:0", "0:1", "1:-1", "1:1:1", "ALL", "1.5:1"])
def test_another_ratio_is_told(text):
    with pytest.raises(SettingsError, match="a ratio must be"):
        read_ratio(text)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"epochs": 0}, "epochs must be"),
        ({"models": ()}, "models must not be empty"),
        ({"models": (" ",)}, "a model must be"),
        ({"learning_rate": float("nan")}, "learning_rate must be above 0, got nan"),
        ({"max_tokens": 7}, "max_tokens must be"),
    ],
)
def test_a_setting_out_of_range_is_told(how, message):
    with pytest.raises(SettingsError, match=message):
        TuningSettings(**how)


def test_every_combination_is_tried_once():
    plan = TuningSettings(models=("a", "b"), ratios=(None, 1.0, None), since=(None,))
    assert [(one.model, one.ratio) for one in plan.variants()] == [
        ("a", None), ("a", 1.0), ("b", None), ("b", 1.0),
    ]  # fmt: skip


def test_exported_pairs_are_what_the_local_judge_is_trained_on(tmp_path, index, golden):
    pools = collect_pools(golden, index, n_candidates=6)
    path = tmp_path / "pairs.jsonl"
    assert write_pairs(path, make_pairs(pools, ratio=3.0)) == len(golden)
    read = read_pools([path])
    assert [sum(pool.labels) for pool in read] == [1] * len(golden)
    assert {len(pool.passages) for pool in read} == {4}
    assert read[0].passages[0].title.startswith("A note on")


def export(deepera_lab, tmp_path, *more):
    golden, corpus = write_golden(tmp_path / "golden.json"), write_corpus(tmp_path / "c.jsonl")
    out = tmp_path / "pairs.jsonl"
    result = deepera_lab(
        *("bioasq", "tune", golden, "--corpus", corpus, "--export-pairs", out), *more
    )
    return result, out


def test_the_command_exports_the_pairs_of_the_training_part_alone(deepera_lab, tmp_path):
    result, out = export(deepera_lab, tmp_path, "--ratio", "1:2", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told == {"questions": {"train": 24, "validation": 3, "test": 3}, "exported": 24}
    assert len(out.read_text(encoding="utf-8").splitlines()) == 24


def test_the_command_says_what_was_joined_and_what_is_not_in_the_corpus(deepera_lab, tmp_path):
    more = [{"id": "x", "type": "factoid", "body": "Unknown?", "documents": docs(999)}]
    other = write_golden(tmp_path / "more.json", more)
    golden, corpus = write_golden(tmp_path / "g.json"), write_corpus(tmp_path / "c.jsonl")
    result = deepera_lab(
        *("bioasq", "tune", golden, golden, other, "--corpus", corpus),
        *("--export-pairs", tmp_path / "p.jsonl"),
    )
    assert result.exit_code == 0
    assert "30 questions joined with another of the same id or text" in result.stderr
    assert "1 of 31 golden documents are not in the corpus, e.g. 999" in result.stderr


def test_a_corpus_without_any_golden_document_is_an_error(deepera_lab, tmp_path):
    golden, corpus = write_golden(tmp_path / "g.json"), tmp_path / "c.jsonl"
    corpus.write_text('{"id": "5", "text": "A colour."}\n', encoding="utf-8")
    out = tmp_path / "p.jsonl"
    result = deepera_lab("bioasq", "tune", golden, "--corpus", corpus, "--export-pairs", out)
    assert result.exit_code == 2
    assert "none of the 30 golden documents is in the corpus" in result.stderr
    assert not out.exists()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ((), "give -o FOLDER to tune a model, --export-pairs FILE, or both"),
        (("-o", "out"), "give --library or --corpus"),
        (("-o", "out", "--corpus", "c.jsonl", "-l", "both"), "give --library or --corpus"),
        (("-o", "out", "--corpus", "none.jsonl"), "no such file: 'none.jsonl'"),
        (("-o", "out", "--corpus", "c.jsonl", "--ratio", "1:x"), "got '1:x'"),
        (("-o", "out", "--corpus", "c.jsonl", "--since", "19"), "--since must be a year"),
        (("-o", "out", "--corpus", "c.jsonl", "--shares", "1,1"), "three numbers"),
        (("-o", "out", "--corpus", "c.jsonl", "--shares", "1,a,1"), "--shares must be numbers"),
        (("-o", "out", "--corpus", "c.jsonl", "--resume", "--overwrite"), "not both"),
        (("-o", "g.json", "--corpus", "c.jsonl"), "must be a folder"),
        (("-o", "full", "--corpus", "c.jsonl"), "model.onnx' exists; give --overwrite"),
        (("--export-pairs", "p", "--corpus", "c.jsonl", "--ratio", "1:1,all"), "takes one --ratio"),
        (("--export-pairs", "g.json", "--corpus", "c.jsonl"), "'g.json' exists"),
    ],
)
def test_a_usage_error_is_one_line(deepera_lab, tmp_path, monkeypatch, more, message):
    monkeypatch.chdir(tmp_path)
    write_golden(tmp_path / "g.json")
    write_corpus(tmp_path / "c.jsonl")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "model.onnx").touch()
    result = deepera_lab("bioasq", "tune", "g.json", *more)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_missing_package_is_told_before_anything_is_searched(deepera_lab, tmp_path, monkeypatch):
    from deepera_graph import packages

    monkeypatch.setattr(packages, "find_spec", lambda name: None)
    golden, corpus = write_golden(tmp_path / "g.json"), write_corpus(tmp_path / "c.jsonl")
    result = deepera_lab("bioasq", "tune", golden, "--corpus", corpus, "-o", tmp_path / "out")
    assert result.exit_code == 2
    assert "tuning a cross-encoder needs torch: pip install" in result.stderr
    assert "[train]" in result.stderr
    assert not (tmp_path / "out").exists()
