"""Chat models of a planted world: they write its questions, and grade with a given accuracy."""

import json
import re
from collections import Counter
from hashlib import blake2b
from threading import Lock

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import ConfigDict, Field

from papers.planted import FIELDS, METHODS, VENUES, make_world

_BLOCK = re.compile(r"=====\w+-([0-9a-f]{8})=====\n(.*?)\n=====\w+-\1=====", re.DOTALL)
_PAPER = re.compile(r"^\[(\d+)\] (.*) \((\d{4}), (.*)\)\n    (.*)$", re.MULTILINE)
STEPS = {
    "Name the classes": "map",
    "Write the four": "questions",
    "Review these": "review",
    "Write ": "rewrite",
    "Grade these": "grade",
    "Settle the": "adjudicate",
    "Say which": "filter",
}


class Planted:
    """A world: its papers, its questions, and what grade a pair has."""

    def __init__(self, n=100, *, seed=1):
        self.papers = make_world(n, seed=seed)
        self._by_text = {
            (one["title"], str(one["year"]), one["venue"], one["abstract"]): one
            for one in self.papers
        }
        self.questions = {
            topic: dict(zip(("method", "setting", "comparison", "scope"), four, strict=True))
            for place, topic in enumerate(FIELDS)
            for four in [_questions_on(topic, place)]
        }
        self._conditions = {
            text: condition for four in self.questions.values() for text, condition in four.values()
        }

    def grade(self, query, paper):
        """The true grade of a pair."""
        condition = self._conditions[query]
        if paper["field"] != condition["domain"]:
            return 0
        wrong = condition.get("exclude_technique")
        holds = all(
            (
                condition.get("technique", paper["method"]) == paper["method"],
                condition.get("venue", paper["venue"]) == paper["venue"],
                condition.get("comparison", paper["rival"]) == paper["rival"],
                paper["method"] != wrong,
            )
        )
        return 2 if holds else 1

    def answers(self, query):
        """The ids of a question's answers."""
        return {one["id"] for one in self.papers if self.grade(query, one) == 2}

    def condition(self, query):
        return self._conditions[query]

    def shown(self, block):
        """The papers of a prompt, by their numbers."""
        return {
            int(number): self._by_text[title, year, venue, abstract]
            for number, title, year, venue, abstract in _PAPER.findall(block)
        }


def _questions_on(field, place):
    method, other = (list(METHODS)[(place + step) % 5] for step in (0, 1))
    venue = VENUES[place % 3]
    return (
        (f"Papers on {field} whose own system relies on {method}",
         {"domain": field, "technique": method}),
        (f"Papers on {field} that were presented at {venue}", {"domain": field, "venue": venue}),
        (f"Papers on {field} that report results above those of {other}",
         {"domain": field, "comparison": other}),
        (f"Papers on {field} with approaches other than {method}",
         {"domain": field, "exclude_technique": method}),
    )  # fmt: skip


def draw(*what):
    """A number in [0, 1) that depends on nothing else."""
    digest = blake2b("\0".join(map(str, what)).encode(), digest_size=8).digest()
    return int.from_bytes(digest) / 2**64


class Scripted(BaseChatModel):
    """Plays all parts; *bend* changes what it replies to a step."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    model_name: str
    planted: Planted
    accuracy: float = 1.0
    bend: dict = Field(default_factory=dict)
    asked: Counter = Field(default_factory=Counter)
    pairs: Counter = Field(default_factory=Counter)
    lock: object = Field(default_factory=Lock)

    @property
    def _llm_type(self):
        return "scripted"

    def reply(self, text):
        """What it replies to a prompt, as a server would send it."""
        step = next(name for start, name in STEPS.items() if text.startswith(start))
        reply = getattr(self, f"_{step}")(text)
        with self.lock:
            self.asked[step] += 1
            if step in ("grade", "adjudicate"):
                for one in self.planted.shown(text).values():
                    self.pairs[step, self.question_of(text), one["id"]] += 1
        return self.bend[step](text, reply) if step in self.bend else reply

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        text = next(str(one.content) for one in messages if one.type == "human")
        reply = self.reply(text)
        used = {"input_tokens": len(text) // 4, "output_tokens": len(json.dumps(reply)) // 4}
        used["total_tokens"] = sum(used.values())
        message = AIMessage(json.dumps(reply), usage_metadata=used)
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(self, messages, stop=None, run_manager=None, **kwargs):
        return self._generate(messages)

    @staticmethod
    def question_of(text):
        return re.search(r"^Question: (.*)$", text, re.MULTILINE).group(1)

    @staticmethod
    def block_of(text):
        return _BLOCK.search(text).group(2)

    def _map(self, text):
        return {"classes": ["field notes"]}

    def _questions(self, text):
        four = self.planted.questions[self.block_of(text).rpartition(" > ")[2]]
        return {
            intent: {
                "query": query,
                "constraints": [{"key": key, "value": one} for key, one in condition.items()],
            }
            for intent, (query, condition) in four.items()
        }

    def _review(self, text):
        numbers = re.findall(r"^\[(\d+)\]", self.block_of(text), re.MULTILINE)
        return {
            "questions": [
                {"question": int(one), "reason": "fine", "verdict": "ok"} for one in numbers
            ]
        }

    def _rewrite(self, text):
        query = self.block_of(text).partition(": ")[2].partition("\n")[0]
        condition = self.planted.condition(query)
        field = condition["domain"]
        method = condition.get("technique") or condition.get("comparison") or "approach"
        return {
            "method": [f"{field} {method}", f"{field} {METHODS.get(method, 'system')}"],
            "task": [field, f"{field} by hand"],
            "broader": [FIELDS[field], f"{FIELDS[field]} system"],
            "narrower": [f"{field} {condition.get('venue', 'points')}", f"{field} results"],
            "terms": [f"{FIELDS[field]} {method}", f"{FIELDS[field]} by hand"],
        }

    def told_grade(self, query, paper, step):
        """The true grade as often as it is accurate, else one of the others."""
        true = self.planted.grade(query, paper)
        key = (self.model_name, step, query, paper["id"])
        if draw(*key) < self.accuracy:
            return true
        return [one for one in (0, 1, 2) if one != true][int(draw("which", *key) * 2)]

    def _grade(self, text, step="grade"):
        query = self.question_of(text)
        return {
            "papers": [
                {
                    "paper": number,
                    "reason": "as it says",
                    "quote": one["abstract"].partition(". ")[0],
                    "unmet": [],
                    "grade": self.told_grade(query, one, step),
                }
                for number, one in self.planted.shown(text).items()
            ]
        }

    def _adjudicate(self, text):
        return self._grade(text, "adjudicate")

    def _filter(self, text):
        query = self.question_of(text)
        choices = []
        for number, one in self.planted.shown(text).items():
            keep = self.planted.grade(query, one) == 2
            choices.append({"paper": number, "unmet": [] if keep else ["technique"], "keep": keep})
        return {"papers": choices}
