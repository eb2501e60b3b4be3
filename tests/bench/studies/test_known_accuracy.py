"""A study end to end, with a judge, a generator and a judge of answers that err as often as told.

Every figure must lie in the 99 % interval of what arithmetic says.
"""

from functools import cache, partial
from hashlib import sha256
from math import sqrt

import pytest
from langchain_core.runnables import RunnableLambda

from bench.lakes import make_instance
from bench.study_lakes import Marker, Writer, column, lab
from deepera_graph import Judgement, Summary
from deepera_graph.calibration.instance import Dataset
from deepera_graph.judges.base import Judge
from deepera_graph.lab.rankers.deepera import DeepEra
from deepera_graph.lab.studies.run import STUDIES, manifest, run_studies, write_study
from deepera_graph.reranker import EvidenceReranker
from support.scripted import Script

pytestmark = pytest.mark.full

N_PASSAGES, N_LOOK_ALIKES = 6, 2
FEW, MANY = 40, 150  # questions: in every run of the tests, and in the slow one
ERROR, ERROR_ON_LOOK_ALIKES = 0.1, 0.4  # of the judge, a passage
WRITES_RIGHT, MARKS_RIGHT = 0.8, 0.9  # of the generator with the evidence at hand, and its judge
Z_99 = 2.576
RIGHT, WRONG = "two degrees", "nobody knows"


def draw(*parts):
    digest = sha256("|".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8]) / 2**64


def golden_place(number):
    return 1 + int(draw("place", number) * N_PASSAGES)


def look_alikes(number):
    others = [place for place in range(1, N_PASSAGES + 1) if place != golden_place(number)]
    return tuple(sorted(others, key=lambda place: draw("like", number, place))[:N_LOOK_ALIKES])


def dataset(setting, n_questions):
    found = []
    for number in range(n_questions):
        like = look_alikes(number) if setting == "ssli" else ()
        one = make_instance(number, n=N_PASSAGES, golden=(golden_place(number),), distractors=like)
        found.append(one.model_copy(update={"setting": setting, "gold_answer": RIGHT}))
    return Dataset(setting, lambda: found, "by hand")


class ErringJudge(Judge):
    """Judges each passage wrong as often as told, more often where it is a look-alike."""

    def __init__(self, setting):
        self.setting = setting

    def judge(self, batch, config=None):
        number = int(batch["question"].split()[-1].rstrip("?"))
        return [self._judge(number, one["text"]) for one in batch["windows"]]

    def _judge(self, number, text):
        place = int(text.split()[1])
        wrong = draw(self.setting, "judge", number, place) < error(self.setting, number, place)
        return Judgement(score=0.2 if wrong == (place == golden_place(number)) else 0.9)


def error(setting, number, place):
    is_like = setting == "ssli" and place in look_alikes(number)
    return ERROR_ON_LOOK_ALIKES if is_like else ERROR


def deepera(setting):
    backend = Script({}).backend()
    made = type(backend)(
        name="errs",
        intent=backend.intent,
        judge=ErringJudge(setting),
        summarizer=RunnableLambda(lambda task: Summary(text=task["text"].split(":")[0])),
    )
    return DeepEra(EvidenceReranker(made, content="passage"), name="DeepEra")


def writer(setting, fails=0.0):
    def answer(question, passages):
        number = int(question.split()[-1].rstrip("?"))
        if draw(setting, "hangs up", number, *passages) < fails:
            raise ValueError("the server hung up")
        if not passages:
            return ""
        has = any(one.startswith(f"Passage {golden_place(number)} ") for one in passages)
        right = has and draw(setting, "writes", number, *passages) < WRITES_RIGHT
        return RIGHT if right else WRONG

    return Writer(answer)


def marker(setting):
    def score(task):
        number = int(task.question.split()[-1].rstrip("?"))
        right = draw(setting, "marks", number, task.answer) < MARKS_RIGHT
        return 5 if right == (task.answer == RIGHT) else 1

    return Marker(score)


def chances(setting, number, *, is_filtered):
    """Return how likely golden is first, the answer is right, and there is no answer at all."""
    golden = golden_place(number)
    errors = {place: error(setting, number, place) for place in range(1, N_PASSAGES + 1)}
    first = 1 - errors[golden]  # kept, and no passage before it is
    none = errors[golden]
    for place, one in errors.items():
        if place < golden:
            first *= 1 - one
        if place != golden:
            none *= 1 - one
    if is_filtered:
        return first, (1 - errors[golden]) * WRITES_RIGHT, none
    return first + (none if golden == 1 else 0), WRITES_RIGHT, 0.0


def expected(setting, n_questions, *, is_filtered, fails=0.0):
    """Return mean and half of the 99 % interval of each figure."""
    hits, overlaps, marks = [], [], []
    for number in range(n_questions):
        hit, right, none = chances(setting, number, is_filtered=is_filtered)
        right *= 1 - fails
        none = none + (1 - none) * fails
        high = right * MARKS_RIGHT + (1 - right - none) * (1 - MARKS_RIGHT)
        hits.append((hit, hit * (1 - hit)))
        overlaps.append((right, right * (1 - right)))
        marks.append((1 + 4 * high, 16 * high * (1 - high)))
    of = {"HitRate@1": hits, "F1": overlaps, "P": overlaps, "R": overlaps, "LFS": marks}
    return {name: _interval(pairs) for name, pairs in of.items()}


def _interval(pairs):
    n = len(pairs)
    return sum(mean for mean, _ in pairs) / n, Z_99 * sqrt(sum(var for _, var in pairs)) / n


@cache
def study(setting, n_questions, fails=0.0):
    """Return what a study found, and how to write it."""
    setup = {"generator": writer(setting, fails), "answer_judge": marker(setting)}
    runner = lab(
        [deepera(setting)],
        [dataset(setting, n_questions)],
        metrics=("HitRate@1",),
        max_failed_share=1.0,
        **setup,
    )
    ((study, result),) = run_studies([STUDIES["main"]], runner)
    return result.grids[0], partial(write_study, study, result, manifest(runner))


@pytest.mark.parametrize(
    ("setting", "n_questions"),
    [
        pytest.param("ssli", FEW),
        pytest.param("base", MANY, marks=pytest.mark.slow),
        pytest.param("ssli", MANY, marks=pytest.mark.slow),
    ],
)
def test_figures_lie_in_the_interval_of_the_analytic_values(setting, n_questions, tmp_path):
    grid, write = study(setting, n_questions)
    write(tmp_path)
    rows = column(grid, "ranker")
    assert rows == ["DeepEra", "DeepEra, without filter", "DeepEra, without summaries"]
    for place, is_filtered in enumerate([True, False, True]):
        for name, (mean, half) in expected(setting, n_questions, is_filtered=is_filtered).items():
            assert abs(column(grid, name)[place] - mean) <= half, (rows[place], name)
    assert (tmp_path / "main.csv").exists()


@pytest.mark.parametrize("n_questions", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_with_half_of_the_answers_failing_figures_are_those_of_half_as_many(n_questions):
    grid, _ = study("ssli", n_questions, fails=0.5)
    whole, _ = study("ssli", n_questions)
    for place, is_filtered in enumerate([True, False]):
        of = expected("ssli", n_questions, is_filtered=is_filtered, fails=0.5)
        for name in ("F1", "P", "R", "LFS"):
            mean, half = of[name]
            assert abs(column(grid, name)[place] - mean) <= half, name
            assert column(grid, name)[place] < column(whole, name)[place]
    assert all(0.3 < one < 0.7 for one in column(grid, "answer failed"))


def test_the_intervals_tell_wrong_figures_apart():
    """Look-alikes, the filter and failures each move a figure out of the interval of the other."""
    of = {
        (setting, fails): expected(setting, MANY, is_filtered=True, fails=fails)
        for setting in ("base", "ssli")
        for fails in (0, 0.5)
    }
    for one, other, name in (
        (("base", 0), ("ssli", 0), "HitRate@1"),
        (("ssli", 0), ("ssli", 0.5), "F1"),
        (("ssli", 0), ("ssli", 0.5), "LFS"),
    ):
        assert of[one][name][0] - of[one][name][1] > of[other][name][0] + of[other][name][1]
