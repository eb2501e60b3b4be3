"""A role with a cache: asked once, answers the same ever after."""

import asyncio
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.runnables import Runnable, RunnableLambda

from deepera_graph.agents import cached as cached_module
from deepera_graph.agents.cached import CachedBatches, CachedRole
from deepera_graph.agents.role import CheckedRole
from deepera_graph.errors import AnswerError, CallError, SettingsError, StoreError
from deepera_graph.schema import (
    Answer,
    Candidate,
    Intent,
    Judgement,
    Summary,
    Unjudged,
)
from deepera_graph.settings.budget import Limiter
from deepera_graph.stores.judgements import JudgementCache
from deepera_graph.usage import Usage

TASK = {
    "question": "Does shade slow moss?",
    "intent": {
        "topic": "botany",
        "entity_type": "plant: moss",
        "intent": "causal inference",
        "expected_answer_type": "categorical",
    },
    "text": "In shade, moss grew 4 mm less.",
    "title": "Moss",
    "section": "Results",
}
FINGERPRINT = {
    "backend": {"name": "llm", "about": {"model": "m-1", "prompts": "abc"}},
    "parameters": {"temperature": 0, "base_url": "http://127.0.0.1:1/v1"},
    "schema_shown": {"type": "object"},
}
ANSWERS = [
    Judgement(score=1 / 3, reason="a β-effect", quote="moss grew", repaired=True, problem="bad"),
    Intent(topic="t", entity_type="e", intent="other", expected_answer_type="other"),
    Summary(text=""),
    Answer(text="Yes [1].", citations=[1, 2]),
]


class Counting(Runnable[Any, Any]):
    """A judge whose score tells how often it was asked, like a model that never repeats itself."""

    def __init__(self, answer=None):
        self.n_calls, self.answer = 0, answer

    def invoke(self, input, config=None, **kwargs):
        self.n_calls += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.answer is not None:
            return self.answer
        usage = Usage(calls=1, input_tokens=10, output_tokens=self.n_calls)
        return Judgement(score=1 / (1 + self.n_calls), reason="new", usage=usage)

    async def ainvoke(self, input, config=None, **kwargs):
        answer = self.invoke(input, config)
        await asyncio.sleep(0.002)
        return answer


def cached(role, cache, *, name="judge", schema=Judgement, fingerprint=FINGERPRINT):
    return CachedRole(role, name=name, schema=schema, cache=cache, fingerprint=fingerprint)


def changed(value, place, new):
    first, *rest = place
    return {**value, first: changed(value[first], rest, new) if rest else new}


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: type(answer).__name__)
def test_a_hit_is_the_answer_and_says_what_it_cost_when_new(cache, answer):
    role = Counting(answer.model_copy(update={"usage": Usage(calls=2, input_tokens=9)}))
    judge = cached(role, cache, schema=type(answer))
    first, second = judge.invoke(TASK), judge.invoke(TASK)
    assert role.n_calls == 1
    assert first is role.answer
    cost = Usage(calls=2, input_tokens=9, cached_calls=2)
    assert second == first.model_copy(update={"usage": cost})
    assert type(second) is type(answer)


async def test_sync_and_async_share_the_answers(cache):
    role = Counting()
    judge = cached(role, cache)
    first = await judge.ainvoke(TASK)
    assert judge.invoke(TASK).score == first.score
    assert (await judge.ainvoke(TASK)).usage.sent_calls == 0
    assert role.n_calls == 1


def test_answers_outlive_the_process_that_asked(cache, path):
    first = cached(Counting(), cache).invoke(TASK)
    cache.close()
    with JudgementCache(path) as later:
        role = Counting(CallError("no server"))
        assert cached(role, later).invoke(TASK).score == first.score
    assert role.n_calls == 0


@pytest.mark.parametrize(
    "error", [AnswerError("prose"), CallError("HTTP 500"), ValueError("bug")], ids=repr
)
def test_errors_are_never_stored(cache, error):
    role = Counting(error)
    judge = cached(role, cache)
    for _ in range(2):
        with pytest.raises(type(error)):
            judge.invoke(TASK)
    role.answer = None
    judge.invoke(TASK)
    assert role.n_calls == 3
    assert cache.stats().n_entries == 1


async def test_a_cancelled_call_stores_nothing(cache):
    judge = cached(Counting(), cache)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await judge.ainvoke(TASK)
    assert cache.stats().n_entries == 0


@pytest.mark.parametrize(
    "place",
    [
        ("question",),
        ("intent", "topic"),
        ("intent", "intent"),
        ("text",),
        ("title",),
        ("section",),
    ],
    ids=".".join,
)
def test_another_task_is_a_miss(cache, place):
    role = Counting()
    judge = cached(role, cache)
    judge.invoke(TASK)
    judge.invoke(changed(TASK, place, "else"))
    assert role.n_calls == 2


@pytest.mark.parametrize(
    "place",
    [
        ("backend", "name"),
        ("backend", "about", "model"),
        ("backend", "about", "prompts"),
        ("parameters", "temperature"),
        ("parameters", "base_url"),
        ("schema_shown",),
        ("anything_new",),
    ],
    ids=".".join,
)
def test_another_fingerprint_is_a_miss(cache, place):
    role = Counting()
    cached(role, cache).invoke(TASK)
    cached(role, cache, fingerprint=changed(FINGERPRINT, place, "else")).invoke(TASK)
    assert role.n_calls == 2


def test_another_role_is_a_miss(cache):
    role = Counting()
    cached(role, cache).invoke(TASK)
    cached(role, cache, name="second judge").invoke(TASK)
    assert role.n_calls == 2


def test_another_answer_schema_is_a_miss(cache):
    class Stricter(Judgement):
        """A judgement."""

        certain: bool = False

    role = Counting(Stricter(score=0.5))
    cached(role, cache).invoke(TASK)
    cached(role, cache, schema=Stricter).invoke(TASK)
    assert role.n_calls == 2


def test_another_package_version_is_a_miss(cache, monkeypatch):
    role = Counting()
    cached(role, cache).invoke(TASK)
    monkeypatch.setattr(cached_module, "__version__", "99.0")
    cached(role, cache).invoke(TASK)
    assert role.n_calls == 2


def test_a_fingerprint_changed_later_changes_nothing(cache):
    fingerprint = {"model": "m-1"}
    role = Counting()
    judge = cached(role, cache, fingerprint=fingerprint)
    judge.invoke(TASK)
    fingerprint["model"] = "m-2"
    judge.invoke(TASK)
    assert role.n_calls == 1


async def test_equal_tasks_in_flight_all_give_the_answer_that_stays(cache):
    role = Counting()
    judge = cached(role, cache)
    answers = await asyncio.gather(*(judge.ainvoke(TASK) for _ in range(8)))
    assert role.n_calls == 8
    assert len({answer.score for answer in answers}) == 1
    assert len({answer.usage for answer in answers}) == 1
    assert judge.invoke(TASK).score == answers[0].score


@pytest.mark.parametrize(
    "late",
    [
        Usage(calls=1, input_tokens=9, failed_calls=3),
        Usage(calls=2, input_tokens=18, reasked_calls=1, failed_calls=1),
    ],
)
@pytest.mark.parametrize("early", [Usage(calls=1, input_tokens=9), Usage(calls=2, reasked_calls=1)])
async def test_of_equal_tasks_in_flight_every_call_that_was_sent_is_counted(cache, early, late):
    def role(usage, seconds):
        async def judge(task):
            await asyncio.sleep(seconds)
            return Judgement(score=0.5, usage=usage)

        return RunnableLambda(judge)

    roles = [role(early, 0.0), role(late, 0.05)]
    answers = await asyncio.gather(*(cached(role, cache).ainvoke(TASK) for role in roles))
    assert [one.usage.sent_calls for one in answers] == [early.sent_calls, late.sent_calls]
    assert answers[1].usage.calls == early.calls  # as a later run will say


async def test_many_tasks_at_once_in_a_loop(cache):
    role = Counting()
    judge = cached(role, cache)
    tasks = [changed(TASK, ("text",), f"passage {number}") for number in range(200)]
    first = await asyncio.gather(*map(judge.ainvoke, tasks))
    second = await asyncio.gather(*map(judge.ainvoke, tasks))
    assert [answer.score for answer in first] == [answer.score for answer in second]
    assert role.n_calls == 200


def test_many_tasks_at_once_in_threads(cache):
    judge = cached(Counting(), cache)
    tasks = [changed(TASK, ("text",), f"passage {number}") for number in range(200)]
    with ThreadPoolExecutor(16) as pool:
        first = list(pool.map(judge.invoke, tasks))
        second = list(pool.map(judge.invoke, tasks))
    assert [answer.score for answer in first] == [answer.score for answer in second]
    assert {answer.usage.sent_calls for answer in second} == {0}


def test_a_hit_waits_for_no_other_call(cache):
    limiter = Limiter(1)
    judge = cached(CheckedRole(Counting(), Judgement, limiter), cache)
    first = judge.invoke(TASK)
    with limiter:
        assert judge.invoke(TASK).score == first.score


def test_an_unusable_answer_is_handed_on_and_not_stored(cache):
    judge = cached(Counting({"score": 70}), cache)
    assert judge.invoke(TASK) == {"score": 70}
    assert cache.stats().n_entries == 0


def test_a_plain_dict_that_fits_the_schema_is_stored(cache):
    judge = cached(RunnableLambda(lambda _: {"score": 0.5, "reason": "r"}), cache)
    assert judge.invoke(TASK) == {"score": 0.5, "reason": "r"}
    assert judge.invoke(TASK) == Judgement(
        score=0.5, reason="r", usage=Usage(calls=1, cached_calls=1)
    )


def test_a_stored_answer_the_schema_refuses_is_asked_again(cache):
    role = Counting()
    judge = cached(role, cache)
    key = judge._answers.key(TASK)
    cache.put(key, "judge", {"score": 70})
    assert judge.invoke(TASK).score == 0.5
    assert judge.invoke(TASK).score == 0.5
    assert role.n_calls == 1


def test_only_the_answer_is_stored(cache, path):
    secret = "sk-do-not-store-me"
    answer = Judgement(score=0.5, usage=Usage(calls=1, input_tokens=77_777))
    judge = cached(Counting(answer), cache, fingerprint={"headers": secret})
    judge.invoke(TASK)
    assert cache.get(judge._answers.key(TASK)) == {
        "score": 0.5,
        "reason": "",
        "quote": "",
        "evidence_unknown": False,
        "summary": "",
        "direction": None,
        "position": "",
        "repaired": False,
        "problem": "",
        "usage": {"calls": 1, "input_tokens": 77_777, "output_tokens": 0, "reasked_calls": 0},
    }
    cache.close()
    content = path.read_bytes()
    assert secret.encode() not in content
    assert secret not in repr(vars(judge._answers))
    assert TASK["text"].encode() not in content


def test_a_cache_that_breaks_in_the_middle_does_not_fail_the_run(cache, path, caplog):
    role = Counting()
    judge = cached(role, cache)
    judge.invoke(TASK)
    cache.close()
    path.write_bytes(b"not a database" * 500)
    assert judge.invoke(TASK).score == pytest.approx(1 / 3)
    assert role.n_calls == 2
    assert caplog.records


def test_a_bad_file_is_found_before_the_run(cache, path):
    path.parent.mkdir()
    path.write_bytes(b"not a database" * 500)
    with pytest.raises(StoreError, match=r"judgements\.sqlite3"):
        cached(Counting(), cache)


def test_a_bad_fingerprint_is_found_before_the_run(cache):
    with pytest.raises(SettingsError, match="got object"):
        cached(Counting(), cache, fingerprint={"model": object()})


def test_a_pickled_role_finds_its_answers(cache):
    judge = cached(Counting(), cache)
    first = judge.invoke(TASK)
    copy = pickle.loads(pickle.dumps(judge))
    assert copy.invoke(TASK).score == first.score
    copy._answers._cache.close()


def test_the_task_is_not_changed(cache):
    task = pickle.loads(pickle.dumps(TASK))
    cached(Counting(), cache).invoke(task)
    assert task == TASK


def window(text):
    return {"text": text, "title": "", "section": "", "start": 0, "end": len(text)}


def joint_batch(*texts):
    return {
        "question": TASK["question"],
        "intent": TASK["intent"],
        "windows": [window(one) for one in texts],
        "numbers": list(range(len(texts))),
        "part": "",
        "is_joint": True,
    }


class Listing(Runnable[Any, Any]):
    """A judge of batches, which notes what it is given."""

    def __init__(self, *plays):
        self.plays, self.asked = list(plays), []

    def invoke(self, input, config=None, **kwargs):
        self.asked.append([one["text"] for one in input["windows"]])
        return self.plays.pop(0)


def test_a_batch_that_belongs_together_is_taken_from_the_cache_as_a_whole_or_not_at_all(cache):
    good, failed = Judgement(score=0.4, reason="r"), Unjudged(cause="busy")
    judge = Listing([good, failed], [good, good])
    cached_judge = CachedBatches(judge, cache=cache, fingerprint=FINGERPRINT)
    batch = joint_batch("moss", "fern")
    for _ in range(3):
        verdicts = cached_judge.invoke(batch)
    assert judge.asked == [["moss", "fern"]] * 2
    assert [one.score for one in verdicts] == [0.4, 0.4]


def test_a_first_score_comes_back_from_the_cache_as_what_it_was(cache):
    judge = Listing([Candidate(first_score=0.25, by="a part")])
    cached_judge = CachedBatches(judge, cache=cache, fingerprint=FINGERPRINT)
    cached_judge.invoke(joint_batch("moss"))
    (again,) = cached_judge.invoke(joint_batch("moss"))
    assert isinstance(again, Candidate)
    assert (again.first_score, again.by, len(judge.asked)) == (0.25, "a part", 1)
