"""Experiments of BioASQ: retrieval depth, rerankers, ensembles, prompt styles."""

import json
from dataclasses import replace

import pytest
from langchain_core.documents import Document

from deepera_graph.bioasq.phase_b.answer import TypedAnswerer
from deepera_graph.bioasq.questions import document_url, parse_question
from deepera_graph.bioasq.runs import ScoredDocument
from deepera_graph.errors import BackendError, InputError, SettingsError, StoreError
from deepera_graph.lab.bench.figures import figure_bytes
from deepera_graph.lab.studies.bioasq.runs import (
    FIRST_STAGE,
    RETRIEVERS,
    Kept,
    TimedRun,
    candidates_as_run,
    default_retrievers,
    find_candidates,
    rerank,
    retrieve,
)
from deepera_graph.lab.studies.bioasq.study import (
    STUDIES,
    BioasqBench,
    answer_all,
    describe_setup,
    draw_questions,
    split_questions,
    study_depth,
    study_ensembles,
    study_rerankers,
    study_styles,
)
from deepera_graph.lab.studies.run import write_study
from deepera_graph.retrieval.collections.store import open_store
from support.bioasq import CORPUS, plant_questions, write_set
from support.hops import CountingEmbeddings

pytestmark = pytest.mark.full


@pytest.fixture
def bench():
    return BioasqBench.of([*map(parse_question, plant_questions())], n_resamples=50)


@pytest.fixture
def store():
    passages = [
        Document(id=one["id"], page_content=one["text"], metadata={"title": one["title"]})
        for one in CORPUS
    ]
    with open_store("plants", embeddings=CountingEmbeddings()) as opened:
        opened.add(passages)
        yield opened


def run(**rankings):
    """A run: question to PMIDs with blanks between them, best first."""
    made = {
        name: [ScoredDocument(one, 1 / rank) for rank, one in enumerate(text.split(), start=1)]
        for name, text in rankings.items()
    }
    return TimedRun(made)


def cells(grid):
    return {row[0]: row[1:] for row in grid.rows}


def test_every_retriever_ranks_each_document_once(bench, store):
    found = retrieve(store, RETRIEVERS, bench.questions, 5)
    assert list(found) == list(RETRIEVERS)
    for name, one in found.items():
        for question in bench.questions:
            ranked = [each.pmid for each in one.run[question.id]]
            assert len({*ranked}) == len(ranked) <= 5, name
    assert found["bm25"].run["q1"][0].pmid == "10"


@pytest.mark.parametrize(
    ("names", "message"), [(("bm26",), "got 'bm26'"), (("hybrid",), "has vectors, and this is sp")]
)
def test_a_retriever_that_there_is_not_is_refused(bench, names, message):
    with open_store("words") as words:
        words.add([Document(id="1", page_content="moss")])
        assert default_retrievers(words) == ("bm25",)
        with pytest.raises(SettingsError, match=message):
            retrieve(words, names, bench.questions, 5)


def test_recall_at_every_depth_is_that_counted_by_hand():
    golden = replace(
        parse_question(plant_questions()[0]), documents=tuple(map(document_url, "1234"))
    )
    bench = BioasqBench(questions=(golden,), n_resamples=10)
    result = study_depth(bench, {"mine": run(q1="1 9 2 8 3")}, depths=(1, 3, 10))
    row = cells(result.grids[0])["mine"]
    assert [one.mean for one in row[:3]] == [0.25, 0.5, 0.75]
    assert row[3].mean == pytest.approx((1 + 2 / 3 + 3 / 5) / 4)
    assert result.drawings[0].panels[""]["mine"].y == [25, 50, 75]


@pytest.mark.parametrize("depths", [(), (0, 5), (5, 3), (3, 3)])
def test_depths_rise(bench, depths):
    with pytest.raises(SettingsError, match="rising numbers"):
        study_depth(bench, {"mine": run(q1="1")}, depths=depths)


def test_a_run_of_other_questions_is_refused(bench):
    with pytest.raises(InputError, match="'mine' has none of the 6 golden questions"):
        study_depth(bench, {"mine": run(other="1")})


def test_questions_without_golden_documents_are_left_out():
    asked = [*map(parse_question, plant_questions())]
    bare = [replace(one, documents=()) for one in asked]
    assert len(BioasqBench.of([*asked[:2], *bare[2:]], limit=5).questions) == 2
    with pytest.raises(InputError, match="nothing to measure"):
        BioasqBench.of(bare)


def test_rerankers_are_compared_with_the_first_stage(bench, store):
    found = find_candidates(store, bench.questions, 6)
    runs = {
        FIRST_STAGE: candidates_as_run(found, bench.questions),
        "rules": rerank(found, bench.questions, "rules").judged,
    }
    result = study_rerankers(bench, runs)
    first, rules = cells(result.grids[0]).values()
    assert first[5] is None  # no difference from itself
    assert rules[5].mean == pytest.approx(rules[0].mean - first[0].mean)
    assert rules[5].low <= rules[5].mean <= rules[5].high
    assert all(len(one) == 6 for one in runs["rules"].run.values())
    with pytest.raises(SettingsError, match="baseline must be one of first stage, rules"):
        study_rerankers(bench, runs, baseline="other")


def test_a_search_that_fails_is_no_ranking_of_nothing(bench, store):
    found = find_candidates(store, bench.questions, 6)
    del found[bench.questions[2].body]
    with pytest.raises(StoreError, match="question 'q3'"):
        rerank(found, bench.questions, None)


@pytest.fixture
def planted():
    """Forty questions of which the second run is right, and the first by less."""
    asked = [
        replace(parse_question(plant_questions()[0]), id=f"q{n}", documents=(document_url(str(n)),))
        for n in range(40)
    ]
    first = run(**{f"q{n}": " ".join(str(900 + k) for k in range(8)) + f" {n}" for n in range(40)})
    second = run(**{f"q{n}": f"{n} 800 801" for n in range(40)})
    bench = BioasqBench(questions=tuple(asked), n_resamples=20, seed=3)
    return bench, {"one": first, "other": second}


def test_weights_are_searched_on_questions_that_are_not_reported_on(planted):
    bench, runs = planted
    result = study_ensembles(bench, runs, validation=0.25)
    assert len(result.facts["validation"]) == 10
    assert result.grids[0].title == "30 questions"
    rows = cells(result.grids[0])
    assert rows["one"][0].mean < 0.2
    assert next(cell[0].mean for name, cell in rows.items() if "by rank " in name) == 1
    weights = result.grids[2]
    assert len(weights.rows) == len(weights.columns) - 1 == 11
    assert max(max(row[1:]) for row in weights.rows) == 1
    assert [one.name for one in result.drawings] == [
        "weights-rank", "weights-reciprocal", "weights-min-max"
    ]  # fmt: skip


def test_the_picture_of_the_grid_marks_the_best_pair(planted):
    drawing = study_ensembles(*planted).drawings[0]
    column, row = (
        axis.index(one) for axis, one in zip((drawing.x, drawing.y), drawing.marked, strict=True)
    )
    assert drawing.values[row][column] == max(map(max, drawing.values))
    assert figure_bytes(drawing.draw(), ".svg") == figure_bytes(drawing.draw(), ".svg")


def test_no_question_is_in_two_parts(planted):
    bench, _ = planted
    first, second = split_questions(bench, 0.5)
    names = [{one.id for one in part.questions} for part in (first, second)]
    assert not names[0] & names[1]
    assert names[0] | names[1] == {one.id for one in bench.questions}
    assert split_questions(replace(bench, seed=4), 0.5)[0].questions != first.questions


@pytest.mark.parametrize("share", [0, 1, 0.001, 2])
def test_both_parts_have_questions(planted, share):
    with pytest.raises(SettingsError, match="validation must leave questions in both parts"):
        split_questions(planted[0], share)


def test_an_ensemble_joins_two_runs(planted):
    bench, runs = planted
    with pytest.raises(SettingsError, match="joins two runs, got 1: one"):
        study_ensembles(bench, {"one": runs["one"]})


def test_an_experiment_is_written_with_what_it_depends_on(bench, tmp_path):
    golden = write_set(tmp_path / "golden.json", *plant_questions())
    result = study_depth(bench, {"mine": run(q1="10")}, depths=(1, 2))
    setup = describe_setup(golden, 6, {"seed": 0})
    for folder in ("a", "b"):
        write_study(STUDIES["depth"], result, setup, tmp_path / folder)
    names = sorted(one.name for one in (tmp_path / "a").iterdir())
    assert names == ["depth-curve.png", "depth-curve.svg", "depth.csv", "depth.md", "manifest.json"]
    assert all(
        (tmp_path / "a" / one).read_bytes() == (tmp_path / "b" / one).read_bytes() for one in names
    )
    manifest = json.loads((tmp_path / "a" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["golden"]["questions"] == 6
    assert manifest["settings"] == {"seed": 0}


def test_as_many_questions_of_each_type_are_drawn_as_there_are():
    asked = [*map(parse_question, plant_questions())]
    assert [one.type for one in asked] == [
        "factoid", "list", "summary", "yesno", "factoid", "list"
    ]  # fmt: skip
    assert len(draw_questions(asked, per_type=1)) == 4
    assert draw_questions(asked) == asked
    assert draw_questions(asked, per_type=1, seed=1) == draw_questions(asked, per_type=1, seed=1)
    with pytest.raises(InputError, match="both snippets and golden answers"):
        draw_questions([replace(one, snippets=()) for one in asked])


def test_ways_to_answer_are_compared_on_the_same_questions():
    asked = [*map(parse_question, plant_questions())]
    found = answer_all(TypedAnswerer(fallback=False), asked)
    result = study_styles(asked, {"extractive": found}, n_resamples=50)
    row = cells(result.grids[0])["extractive"]
    assert result.grids[0].title == "6 questions: 1 yesno, 2 factoid, 2 list, 1 summary"
    assert 0 < row[5].mean <= 1  # ROUGE-SU4 F1
    assert row[-1] == 0


def test_failed_answers_are_counted_and_left_out_of_the_measures():
    asked = [*map(parse_question, plant_questions())]
    found = answer_all(TypedAnswerer(fallback=False), asked)
    gone = [replace(found[0], exact=None, exact_status="failed"), *found[1:]]
    rows = [
        cells(study_styles(asked, {"x": one}, n_resamples=5).grids[0])["x"] for one in (found, gone)
    ]
    assert [row[-1] for row in rows] == [0, 1]


def test_golden_answers_are_not_shown_to_who_answers():
    asked = [*map(parse_question, plant_questions())]
    found = answer_all(TypedAnswerer(fallback=False), asked)
    assert all(one.question.ideal_answers == () for one in found)
    assert all(one.question.documents == () for one in found)


def test_no_answer_at_all_is_an_error():
    asked = [replace(parse_question(plant_questions()[0]), snippets=())]
    with pytest.raises(BackendError, match="no snippet"):
        answer_all(TypedAnswerer(fallback=False), asked)


# ---- what is done is kept


class Ctrl:
    """Presses Ctrl-C when so many questions are done."""

    def __init__(self, after):
        self.after = after

    def __call__(self, done):
        if done >= self.after:
            raise KeyboardInterrupt


def pmids(run):
    return {name: [one.pmid for one in ranking] for name, ranking in run.items()}


def entries_of(path):
    return [json.loads(one) for one in path.read_text(encoding="utf-8").splitlines()[1:]]


def test_a_search_that_was_cut_short_goes_on_where_it_was(bench, store, tmp_path):
    kept = Kept(folder=tmp_path / "out", about={"collection": "plants"})
    names = ("bm25", "dense")
    whole = retrieve(store, names, bench.questions, 5)
    n = len(bench.questions)
    with pytest.raises(KeyboardInterrupt):
        retrieve(store, names, bench.questions, 5, kept=kept, on_progress=Ctrl(n + 1))
    before = entries_of(tmp_path / "out" / "dense.journal.jsonl")
    assert len(before) == 1
    with (tmp_path / "out" / "dense.journal.jsonl").open("ab") as file:
        file.write(b'{"id": "q2", "bo')  # torn by a kill
    again = replace(kept, resume=True)
    found = retrieve(store, names, bench.questions, 5, kept=again)
    assert {name: pmids(one.run) for name, one in found.items()} == {
        name: pmids(one.run) for name, one in whole.items()
    }
    after = entries_of(tmp_path / "out" / "dense.journal.jsonl")
    assert after[:1] == before
    assert [one["id"] for one in after] == [one.id for one in bench.questions]
    assert all(one.seconds > 0 for one in found.values())
    with pytest.raises(SettingsError, match="depth was 5 and is 6"):
        retrieve(store, names, bench.questions, 6, kept=again)


def test_a_question_that_became_another_is_searched_for_again(bench, store, tmp_path):
    kept = Kept(folder=tmp_path)
    [one, *_] = bench.questions
    other = replace(one, body="Which plant holds water?")
    retrieve(store, ["bm25"], [other], 5, kept=kept)
    found = retrieve(store, ["bm25"], [one], 5, kept=replace(kept, resume=True))
    assert found["bm25"].run == retrieve(store, ["bm25"], [one], 5)["bm25"].run


def test_reranking_that_was_cut_short_judges_the_rest_alone(bench, store, tmp_path):
    candidates = find_candidates(store, bench.questions, 5)
    kept = Kept(folder=tmp_path)
    how = {"name": "rules", "kept": kept}
    with pytest.raises(KeyboardInterrupt):
        rerank(candidates, bench.questions, "rules", on_progress=Ctrl(1), **how)
    before = entries_of(tmp_path / "rules.journal.jsonl")
    assert len(before) == 1
    how["kept"] = replace(kept, resume=True)
    again = rerank(candidates, bench.questions, "rules", budget={"max_calls": 9}, **how)
    after = entries_of(tmp_path / "rules.journal.jsonl")
    assert after[:1] == before
    assert sorted(one["id"] for one in after) == sorted(one.id for one in bench.questions)
    assert again.judged.run == rerank(candidates, bench.questions, "rules").judged.run


def test_answers_that_were_cut_short_are_not_asked_for_twice(tmp_path):
    golden = [parse_question(one) for one in plant_questions()]
    drawn = draw_questions(golden, per_type=2)
    kept, seen = Kept(folder=tmp_path), []
    with pytest.raises(KeyboardInterrupt):
        answer_all(TypedAnswerer(), drawn, name="rules", kept=kept, on_progress=Ctrl(1))
    again = answer_all(
        TypedAnswerer(),
        drawn,
        name="rules",
        kept=replace(kept, resume=True),
        on_progress=seen.append,
    )
    assert seen == [*range(2, len(drawn) + 1)]
    whole = answer_all(TypedAnswerer(), drawn)
    assert [one.to_question() for one in again] == [one.to_question() for one in whole]
