"""Topics as pools, the sentence that is chosen, and pools that teach absolute evidence."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from deepera_graph.calibration.instance import DatasetError
from deepera_graph.judges.trained.features import PassageMatch, ResultsClassifier, join_title
from deepera_graph.judges.trained.model import SHIPPED
from deepera_graph.judges.trained.scorer import PoolScores
from deepera_graph.judges.trained.sentences import (
    SENTENCE_FEATURES,
    choose_sentence,
    compute_sentence_features,
)
from deepera_graph.lab.training.fitting.ranking import find_operating_point
from deepera_graph.lab.training.fitting.scorer import UNDECIDED
from deepera_graph.lab.training.fitting.sentences import (
    MarkedText,
    fit_small_ranking,
    read_marked,
)
from deepera_graph.lab.training.lessons.augment import (
    draw_few,
    exchange_passages,
    match_sizes,
    mix_passages,
    replace_evidence,
    sample_pools,
    take_out_evidence,
    truncate_pools,
)
from deepera_graph.lab.training.lessons.groups import list_directions
from deepera_graph.lab.training.lessons.libraries import (
    read_library_directions,
    read_library_proofs,
)
from deepera_graph.lab.training.lessons.pools import OTHER_PAPER, hash_question, read_pools
from deepera_graph.lab.training.lessons.topics import is_topics
from deepera_graph.lab.training.train_reader import (
    HELD_OUT,
    READ_WHOLE,
    ReaderTrainingPlan,
    hold_out,
    list_lessons,
    read_held_out,
)
from deepera_graph.lab.training.weigh import (
    format_held_out,
    judge_held_out,
    weigh_reader,
)
from deepera_graph.lab.training.weights import read_trained_questions
from support.pools import pool, write_lines

QUESTION = "Does rain rust copper roofs?"
SENTENCES = ["We asked whether rain matters.", "Rain rusted copper roofs by 4%.", "Roofs vary."]
SHIPPED_DATA = Path(__file__).parents[2] / "benchmarks/judge"
CLASSIFIER = ResultsClassifier(np.ones(2), 0.0, np.array([1.0, -1.0]), 0.0)


def topic(name):
    questions = [
        {
            "question": f"Does {name} matter in {place}?",
            "evidence": [
                {"text": f"We tried {name}. It mattered in {place} {n} times.", "proof": 1}
                for n in range(2)
            ],
        }
        for place in ("spring", "autumn")
    ]
    return {"topic": name, "questions": questions, "background": f"{name} is old."}


@pytest.fixture
def topics(tmp_path):
    return write_lines(
        tmp_path / "topics.jsonl", [topic(name) for name in ("rain", "wind", "frost", "hail")]
    )


def shipped_topics(name):
    lines = (SHIPPED_DATA / f"{name}.jsonl").read_bytes().split(b"\n")
    return [json.loads(line) for line in lines if line]


def measure_shared_words(name):
    """The mean share of a question's words, of four letters or more, that its evidence has."""
    shares = []
    for row in shipped_topics(name):
        for asked in row["questions"]:
            words = set(re.findall(r"\w{4,}", asked["question"].lower()))
            for one in asked["evidence"]:
                found = words.intersection(re.findall(r"\w{4,}", one["text"].lower()))
                shares.append(len(found) / len(words))
    return sum(shares) / len(shares)


def match(strengths):
    tokens = np.array([[one] * 3 for one in strengths], np.float32)
    vectors = np.ones((len(strengths), 2), np.float32)
    return PassageMatch((), vectors[0], vectors[0], vectors, tokens[:, 0], tokens)


def test_a_topic_gives_a_pool_a_question_with_its_siblings_as_look_alikes(topics):
    assert is_topics(topics)
    found = read_pools([topics])
    assert [one.n_golden for one in found] == [2] * 8
    kinds = [passage.kind for passage in found[0].passages]
    assert (kinds.count("golden"), kinds.count("sibling"), kinds.count("setting")) == (2, 2, 1)
    assert len({one.group for one in found[:2]}) == 1
    assert found[0].group != found[2].group


def test_a_question_without_evidence_names_the_file(tmp_path):
    path = write_lines(
        tmp_path / "t.jsonl", [{"topic": "a", "questions": [{"question": "q", "evidence": []}]}]
    )
    with pytest.raises(DatasetError, match=r"t\.jsonl, line 1: questions"):
        read_pools([path])


def test_other_files_are_no_topics(tmp_path):
    assert not is_topics(write_lines(tmp_path / "a.jsonl", [{"question": "q"}]))
    assert not is_topics(tmp_path)
    (tmp_path / "b.jsonl").write_text("{oops")
    assert not is_topics(tmp_path / "b.jsonl")


LIBRARY = {
    "subject": "rust",
    "abstracts": [{"id": id, "title": f"Rust {id}", "text": f"Roofs {id}."} for id in "abc"],
    "questions": [
        {"question": "Does rain rust roofs?", "golden": {"b": "supports", "c": "no_difference"}},
        {"question": "Does rain rust bells?", "golden": {}},
    ],
}


def test_a_small_library_gives_a_pool_a_question_over_all_its_abstracts(tmp_path):
    rain, bells = read_pools([write_lines(tmp_path / "shelf.jsonl", [LIBRARY])])
    assert [(one.title, one.label) for one in rain.passages] == [
        ("Rust a", 0),
        ("Rust b", 1),
        ("Rust c", 1),
    ]
    assert (rain.set, rain.group) == ("shelf", bells.group)
    assert bells.n_golden == 0
    assert {one.kind for one in bells.passages} == {OTHER_PAPER}


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"golden": {"d": "supports"}}, "no abstract is named 'd'"),
        ({"golden": {"b": "supports"}, "proof": {"a": ["Roofs a."]}}, "'a' proves, but is not"),
        ({"golden": {"b": "supports"}, "proof": {"b": ["Roofs a."]}}, "'b' does not say 'Roofs a"),
    ],
)
def test_a_library_whose_labels_do_not_fit_its_abstracts_is_refused(tmp_path, asked, complaint):
    questions = [{"question": "Does rain rust roofs?", **asked}]
    path = write_lines(tmp_path / "shelf.jsonl", [{**LIBRARY, "questions": questions}])
    with pytest.raises(DatasetError, match=rf"shelf\.jsonl.*{complaint}"):
        read_pools([path])


PROVED = {
    "subject": "rust",
    "abstracts": [
        {"id": "a", "title": "Rain", "text": "We tried. It rained. It was wet. Roofs rusted. Yes."},
        {"id": "b", "title": "Sun", "text": "We tried. Lamps glowed."},
    ],
    "questions": [
        {
            "question": "Does rain rust roofs?",
            "golden": {"a": "supports"},
            "proof": {"a": ["Roofs rusted."]},
        },
        {"question": "Does rain rust bells?", "golden": {}},
        {"question": "Do lamps glow?", "golden": {"b": "supports"}},
    ],
}


def test_the_proof_in_a_library_is_marked_among_the_sentences_of_its_abstract(tmp_path):
    path = write_lines(tmp_path / "shelf.jsonl", [PROVED])
    sentences = ("We tried.", "It rained.", "It was wet.", "Roofs rusted.", "Yes.")
    proof = "Does rain rust roofs?", sentences, frozenset([3])
    assert list(read_library_proofs(path)) == [proof]
    assert read_marked(path) == []  # trees that choose a quote do not learn from it


def test_a_library_teaches_the_reader_abstracts_directions_and_what_proves(tmp_path):
    path = write_lines(tmp_path / "shelf.jsonl", [PROVED])
    plan = ReaderTrainingPlan(data=(path,), out=tmp_path / "out")
    groups = list_lessons(plan, read_pools([path]), set())
    asked = "Does rain rust roofs?"
    whole, runs = (group for group in groups if group[0].question == asked)
    text = f"Rain. {PROVED['abstracts'][0]['text']}"
    assert [one.text for one in whole] == [text, "Sun. We tried. Lamps glowed."]
    assert [one.directions for one in whole] == [list_directions(["supports"]), ()]
    assert {one.label for one in runs} == {0, 1}
    assert all(("rusted" in one.text) == bool(one.label) for one in runs)
    left = list_lessons(plan, read_pools([path]), {hash_question(asked)})
    assert {group[0].question for group in left} == {"Does rain rust bells?", "Do lamps glow?"}
    assert not any("rusted" in one.text and len(one.text) < len(text) for g in left for one in g)


def test_of_questions_over_whole_abstracts_a_part_is_taught_and_a_set_of_like_name_whole(tmp_path):
    plan = ReaderTrainingPlan(data=(tmp_path,), out=tmp_path / "out")
    given = [
        replace(pool(f"roofs {n}", [1, 0]), set=name)
        for name in ("abstracts", "abstracts of mine")
        for n in range(READ_WHOLE + 5)
    ]
    assert len(list_lessons(plan, given, set())) == READ_WHOLE + len(given) // 2


def test_directions_in_a_library_are_those_of_its_golden_abstracts(tmp_path):
    path = write_lines(tmp_path / "shelf.jsonl", [LIBRARY])
    asked = "Does rain rust roofs?"
    assert list(read_library_directions(path)) == [
        ("rust", asked, "Roofs b.", "supports", ""),
        ("rust", asked, "Roofs c.", "no_difference", ""),
    ]
    proved = write_lines(tmp_path / "proved.jsonl", [PROVED])
    assert [one.proof for one in read_library_directions(proved)] == ["Roofs rusted.", ""]


def test_a_proof_is_the_marked_sentence(topics):
    marked = read_marked(topics)
    assert len(marked) == 16
    assert marked[0] == MarkedText(
        "Does rain matter in spring?",
        ("We tried rain.", "It mattered in spring 0 times."),
        frozenset([1]),
    )
    assert read_marked(topics, claims="dev") == []


def test_rationales_of_scifact_are_marked_sentences(tmp_path):
    folder = tmp_path / "scifact"
    write_lines(folder / "corpus_sentences.jsonl", [{"doc_id": 7, "abstract": SENTENCES}])
    evidence = {"7": [{"sentences": [1], "label": "SUPPORT"}, {"sentences": [2]}]}
    write_lines(folder / "claims_train.jsonl", [{"claim": "Rain rusts.", "evidence": evidence}])
    assert read_marked(tmp_path) == [MarkedText("Rain rusts.", tuple(SENTENCES), frozenset([1, 2]))]


def test_a_sentence_is_described_beside_the_best_of_its_passage():
    rows = compute_sentence_features(QUESTION, SENTENCES, match([0.2, 0.9, 0.5]), CLASSIFIER)
    assert rows.shape == (3, len(SENTENCE_FEATURES))
    column = dict(zip(SENTENCE_FEATURES, rows.T, strict=True))
    assert column["match_behind"] == pytest.approx([-0.7, 0, -0.4])
    assert column["shared"].argmax() == 1
    assert column["aim"].tolist() == [1, 0, 0]
    assert (column["first"].tolist(), column["last"].tolist()) == ([1, 0, 0], [0, 0, 1])


def test_trees_choose_the_sentence_and_a_lone_one_needs_none():
    rows = [np.array([[0.1], [0.9], [0.3]])] * 60
    trees = fit_small_ranking(rows, [np.array([0, 1, 0])] * 60)
    assert trees.predict(rows[0]).argmax() == 1
    assert choose_sentence(QUESTION, SENTENCES[:1], match([0.2]), CLASSIFIER, UNDECIDED) == 0
    assert choose_sentence(QUESTION, SENTENCES, match([0.2, 0.9, 0.5]), CLASSIFIER, UNDECIDED) == 0


def count_strangers(pools):
    return [
        sum(not x.text.startswith(f"{one.id.split(' (')[0]},") for x in one.passages)
        for one in pools
    ]


def test_passages_of_other_questions_stand_beside_evidence_in_any_number_and_in_its_place():
    given = [pool(f"roofs {n}", [1, 0, 1, 0, 0, 0]) for n in range(40)]
    replaced, mixed = replace_evidence(given), mix_passages(given)
    assert count_strangers(replaced) == [2] * 40
    assert set(count_strangers(mixed)) == {0, 1, 2, 3, 4}
    for one in [*mixed, *replaced]:
        assert len({passage.text for passage in one.passages}) == 6
    for one, before in zip(mixed, given, strict=True):
        assert [x for x in one.passages if x.label] == [x for x in before.passages if x.label]
    assert {label for one in replaced for label in one.labels} == {0}
    assert (mixed, replaced) == (mix_passages(given), replace_evidence(given))
    assert mix_passages([pool("walls", [0, 0])]) == replace_evidence([pool("walls", [0])]) == []


def test_a_pool_is_as_small_with_evidence_as_without():
    given = [pool("roofs", [1, 0, 1, 0, 0]), pool("doors", [1, 0]), pool("walls", [0, 0, 0])]
    [smaller], [without] = match_sizes(given), take_out_evidence(given)
    assert len(smaller.passages) == len(without.passages) == 3
    assert sum(smaller.labels) == 2
    assert match_sizes(given) == [smaller]


def test_pools_are_sampled_in_their_order():
    given = [pool(f"roofs {n}", [1, 0]) for n in range(30)]
    some = sample_pools(given, 10)
    assert some == [one for one in given if one in some]
    assert (len(some), sample_pools(given, 99), sample_pools(given, 10)) == (10, given, some)


def test_evidence_that_is_taken_out_leaves_the_other_passages_alone():
    whole = pool("roofs", [1, 0, 1, 0, 0])
    [found] = take_out_evidence([whole, pool("walls", [0, 0]), pool("doors", [1, 0])])
    assert found.passages == tuple(one for one in whole.passages if not one.label)


def test_few_passages_have_one_piece_of_evidence_or_none():
    given = [pool(f"roofs {n}", [1, 1, *[0] * 28]) for n in range(60)]
    few = list(draw_few([*given, *take_out_evidence(given)]))
    assert [sum(one.labels) for one in few] == [1] * 60 + [0] * 60
    sizes = {len(one.passages) for one in few}
    assert min(sizes) == 2
    assert max(sizes) == 16
    assert few == list(draw_few([*given, *take_out_evidence(given)]))


def read_right(pairs):
    return [3.0 if text.endswith("note 0.") else -3.0 for _, text in pairs]


def know_nothing(one):
    return PoolScores(np.full(len(one.passages), 0.3), may_be_read=True)


@pytest.mark.full
def test_the_reader_is_weighed_beside_the_trees_and_by_the_number_of_passages():
    """Trees know nothing here; a reader that is right is believed."""

    given = [pool(f"roofs {n}", [1, 0, 0, 0, 0, 0]) for n in range(12)]
    judged = judge_held_out(given, know_nothing)
    weighed = weigh_reader(judged, read_right)
    opinion, point, figures = weighed
    evidence, read = np.full(3, 0.3), np.array([3.0, -3.0, np.nan])
    right, wrong, unread = opinion.probabilities(evidence, read)
    assert right > point > wrong
    assert right > point > unread
    [measured] = figures["sets"].values()
    assert (measured["questions"], measured["HitRate@1"], measured["MAP"]) == (12, 100, 100)
    assert measured["thresholds"]["0.2"][1:] == [100, 0]
    assert figures["operating_point"] == point
    assert weighed.mean_map == 100


def test_what_is_weighed_was_read_with_its_title_as_the_judge_reads_it():
    given = [pool(f"roofs {n}", [1, 0, 0]) for n in range(12)]
    titled = tuple(replace(one, title="Rust") for one in given[0].passages)
    read = []

    def keep(pairs):
        read.extend(pairs)
        return read_right(pairs)

    weigh_reader(judge_held_out([given[0].with_passages(titled), *given[1:]], know_nothing), keep)
    of_titled = {text for question, text in read if question == given[0].question}
    assert of_titled == {join_title("Rust", one.text) for one in titled}
    assert len(read) == len(set(read))  # pools without evidence and draws hold the same passages


def test_a_reader_that_is_trained_further_is_never_taught_what_was_held_out_before():
    given = [pool(f"roofs {n}", [1, 0]) for n in range(40)]
    known = read_held_out(SHIPPED)
    assert len(known) > 300
    assert known <= read_trained_questions(SHIPPED)  # by the trees, which learn from all
    _, first = hold_out(given, frozenset(), seed=0)
    named = frozenset(hash_question(one.question) for one in first)
    more = [*(pool(f"walls {n}", [1, 0]) for n in range(40)), *given]
    taught, second = hold_out(more, named, seed=5)
    assert second == [one for one in more if one in first]
    assert {one.question for one in taught}.isdisjoint(one.question for one in second)


def test_the_record_of_what_was_held_out_has_a_threshold_and_six_hashes_a_line():
    text = (SHIPPED / HELD_OUT).read_text(encoding="utf-8")
    assert format_held_out(json.loads(text)) == text
    figures = {"sets": {"s": {"thresholds": {"0.5": [None, 0, 3.5]}}}, "held_out": ["ab"] * 7}
    written = format_held_out(figures)
    assert json.loads(written) == figures
    assert '"0.5": [null, 0, 3.5]\n' in written
    assert written.endswith("[\n  " + '"ab", ' * 5 + '"ab",\n  "ab"\n ]\n}\n')


@pytest.mark.full
def test_no_number_of_passages_is_found_in_pools_without_evidence_alone():
    given = [pool(f"roofs {n}", [1, *[0] * 29]) for n in range(400)]
    whole = [*given, *truncate_pools(given)]
    with_evidence = {len(one.passages) for one in [*whole, *match_sizes(whole)] if any(one.labels)}
    without = {len(one.passages) for one in [*take_out_evidence(whole), *replace_evidence(given)]}
    assert without <= with_evidence
    assert with_evidence >= {20, 25, 28, 29, 30}


def test_passages_of_another_question_are_never_evidence():
    given = [pool(f"roofs {n}", [1, 0, 0]) for n in range(12)]
    found = list(exchange_passages(given))
    assert found
    for one in found:
        own = one.id.removesuffix(" (exchanged)")
        assert sum(one.labels) == 0
        assert one.golden_outside == 1
        assert not any(passage.text.startswith(f"{own},") for passage in one.passages)
    assert [one.id for one in exchange_passages(given)] == [one.id for one in found]


def test_the_operating_point_is_the_highest_where_keeping_is_best_in_the_mean_of_the_sets():
    labels = [np.array([1, 0, 0]), np.array([1, 1, 0])]
    scores = [np.array([0.7, 0.5, 0.1]), np.array([0.9, 0.6, 0.55])]
    assert find_operating_point(["one", "two"], labels, scores) == pytest.approx(0.6)


def test_what_is_kept_without_evidence_raises_the_operating_point():
    labels = [np.array([1, 0]), np.array([0, 0, 0]), np.array([0, 0])]
    scores = [np.array([0.5, 0.2]), np.array([0.6, 0.6, 0.55]), np.array([0.9, 0.9])]
    assert find_operating_point(["one"], labels[:1], scores[:1]) == pytest.approx(0.5)
    sets = ["one", "one", "without any evidence"]
    # 1 of 1.75 is kept rightly at 0.5; none is at 0.62: a quarter of a pool does not outweigh that
    assert find_operating_point(sets, labels, scores) == pytest.approx(0.5)
    several, found = (
        [np.array([1, 0]), np.array([1, 0])],
        [np.array([0.9, 0.1]), np.array([0.4, 0.1])],
    )
    none, high = [np.zeros(9)], [np.full(9, 0.42)]
    assert find_operating_point(["one"] * 2, several, found) == pytest.approx(0.4)
    assert find_operating_point(["one"] * 3, several + none, found + high) == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("name", "n_topics", "n_questions"),
    [("topics", 48, 144), ("near_misses", 121, 363), ("plain", 183, 322)],
)
def test_lines_of_the_shipped_topics_are_whole(name, n_topics, n_questions):
    rows = shipped_topics(name)
    assert len({row["topic"] for row in rows}) == len(rows) == n_topics
    assert sum(len(row["questions"]) for row in rows) == n_questions
    texts = [one["text"] for row in rows for asked in row["questions"] for one in asked["evidence"]]
    assert len(set(texts)) == len(texts)


def test_evidence_in_plain_words_shares_the_words_of_its_question():
    assert measure_shared_words("plain") > 0.5
    assert measure_shared_words("near_misses") < 0.1


@pytest.mark.full
def test_the_sentence_that_proves_it_is_marked_in_all_evidence_in_plain_words():
    for row in shipped_topics("plain"):
        for asked in row["questions"]:
            for one in asked["evidence"]:
                assert 0 <= one["proof"] < len(re.split(r"(?<=[.!?])\s+", one["text"]))
