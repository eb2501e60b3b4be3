"""Invented questions about lakes for experiments, and rankers whose scores are known."""

from types import SimpleNamespace

from bench.lakes import make_instance
from deepera_graph.calibration.instance import Dataset
from deepera_graph.lab.metrics.answers import Produced, Verdict
from deepera_graph.lab.rankers.base import Note, Ranker, rank_by_score
from deepera_graph.lab.studies.base import StudyConfig, StudyRunner
from deepera_graph.lab.studies.run import TABLE, format_study, run_studies
from deepera_graph.lab.tables import format_csv

QUICK = {"n_resamples": 50, "cutoffs": (1, 2, 5)}


class Judge(Ranker):
    """Says why; `score` gives the score of a passage in [0, 1], -1 for a failed one."""

    says_why = True

    def __init__(self, score, *, name="judge", unproven=(), version=1):
        self.name, self.score, self.unproven = name, score, unproven
        self.fingerprint = {"judge": name, "version": version}
        self.asked, self.notes = [], []

    def rank_many(self, jobs):
        self.notes = []
        rankings = []
        for question, passages in jobs:
            self.asked.append(question)
            scores = [self.score(question, int(one["id"])) for one in passages]
            rankings.append(rank_by_score(passages, scores))
            self.notes.append({
                one["id"]: Note(f"because of {one['id']}", one["text"][:9],
                                int(one["id"]) not in self.unproven)
                for one in passages
            })  # fmt: skip
        return rankings


class Writer:
    """A generator; `answer` gives the answer to a question from passages, or raises."""

    name = "writer"

    def __init__(self, answer):
        self.answer, self.asked = answer, []

    def answer_many(self, tasks):
        self.asked += tasks
        return [self._produce(*task) for task in tasks]

    def _produce(self, question, passages):
        try:
            return Produced(self.answer(question, passages))
        except ValueError as error:
            return Produced("", str(error))


class Marker:
    """A judge of answers; `score` gives the score of an answer, None where judging fails."""

    name, low, high = "marker", 1, 5

    def __init__(self, score):
        self.score = score

    def judge_many(self, tasks):
        scores = (self.low if not one.answer else self.score(one) for one in tasks)
        return [Verdict(one, "no verdict" if one is None else "") for one in scores]


def answered(data, gold):
    """The same questions with answers; `gold` gives that of an instance."""
    found = [one.model_copy(update={"gold_answer": gold(one)}) for one in data]
    return Dataset(data.name, lambda: found, data.first_stage)


def fixed(*scores):
    """Scores by place, the same for every question."""
    return lambda question, place: scores[place - 1]


def lakes(n_questions=4, *, setting="ssli", name=None, subject="limnology", **changes):
    """Questions with a setting and a subject."""
    extra = {"setting": setting, "dataset": "lakes", "subject": subject}
    found = [
        make_instance(number, **changes).model_copy(update=extra)
        for number in range(1, n_questions + 1)
    ]
    return Dataset(name or setting, lambda: found, "by hand")


def lab(rankers, datasets, **changes):
    """A lab that resamples little."""
    return StudyRunner(rankers, datasets, StudyConfig(**{**QUICK, **changes}))


class Compared:
    """What the table of rankers says, row by row."""

    def __init__(self, runner, result):
        self.result, self.summaries = result, [*runner.data()]
        self.missing, self.failures = runner.missing, runner.failures
        self.grids = {one.name: one for one in result.grids}
        metrics = len(runner.config.metrics)
        self.rows = [
            SimpleNamespace(dataset=row[0], ranker=row[1], n_repeats=row[2],
                            estimates=row[3:3 + metrics], failed=row[-1],
                            seconds=row[-4])
            for row in self.grids["results"].rows
        ]  # fmt: skip

    def of(self, dataset, ranker):
        return next(one for one in self.rows if (one.dataset, one.ranker) == (dataset, ranker))

    def text(self):
        return format_study(TABLE, self.result)

    def csv(self):
        return "".join(map(format_csv, self.result.grids))


def compare(rankers, datasets, config=None, **how):
    """Compare rankers as `deepera-lab bench table` does."""
    runner = StudyRunner(rankers, datasets, config, **how)
    return Compared(runner, run_studies([TABLE], runner)[0][1])


def column(grid, name):
    """The cells of one column; the mean of one with an interval."""
    place = [one.name for one in grid.columns].index(name)
    return [getattr(row[place], "mean", row[place]) for row in grid.rows]
