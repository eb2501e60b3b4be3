"""What a benchmark of searches for papers takes to make: calls, tokens, time, and on paper money.

    python benchmarks/quest/measure.py papers.jsonl.gz --topics 20

All of `deepera-lab bench quest build` runs over a base of these papers, but for the models: they
are scripted, and answer at once, at the usual length. A token is taken for 4 characters. What comes
out is carried over to the 1 638 topics and 1 111 questions of ScholarQuest, with prices and times
of a call that are given.
"""

import argparse
import json
import re
import shutil
import time
from hashlib import blake2b
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage

from deepera_graph.lab.construction import Built
from deepera_graph.lab.quest.builder import build_quest
from deepera_graph.lab.quest.records import Topic
from deepera_graph.lab.settings import QuestPlan
from deepera_graph.papers import PaperBase
from deepera_graph.testing import ScriptedChat
from deepera_graph.text.words import stems

TOPICS = (
    "machine translation", "dialogue systems", "question answering", "named entity recognition",
    "sentiment analysis", "text summarization", "semantic parsing", "speech recognition",
    "word embeddings", "coreference resolution", "relation extraction", "language modeling",
    "hate speech detection", "information retrieval", "fact checking",
    "grammatical error correction", "discourse parsing", "entity linking", "text simplification",
    "paraphrase generation",
)  # fmt: skip
METHODS = (
    "reinforcement learning", "contrastive learning", "graph neural networks", "active learning",
    "knowledge distillation", "multi-task learning", "adversarial training", "data augmentation",
)  # fmt: skip
SETTINGS = ("low-resource languages", "social media", "clinical text", "news articles", "children")
PAPER_TOPICS, PAPER_QUESTIONS = 1638, 1111  # ScholarQuest, section 3
_BLOCK = re.compile(r"=====\w+-([0-9a-f]{8})=====\n(.*?)\n=====\w+-\1=====", re.DOTALL)
_PAPER = re.compile(r"^\[(\d+)\] (.*) \((?:\d{4}|no year), .*\)\n    (.*)$", re.MULTILINE)
_WHY = "Title and abstract name the subject of the question; what it asks for beside that is "


class QuestChat(ScriptedChat):
    """Plays all parts by the words of prompts; as a judge it errs now and then."""

    accuracy: float = 1.0

    def reply(self, messages: list[BaseMessage]) -> dict[str, Any]:
        """Answer the last message."""
        text = messages[-1].text
        block = _BLOCK.search(text)
        assert block is not None  # every prompt has one
        first, shown = text.split(maxsplit=1)[0], block[2]
        if text.startswith("Write the four"):
            return write_questions(shown)
        if first == "Review":
            numbers = re.findall(r"^\[(\d+)\]", shown, re.MULTILINE)
            said = "It names its subject and its limits, and abstracts show whether they hold."
            return {
                "questions": [
                    {"question": int(one), "reason": said, "verdict": "ok"} for one in numbers
                ]
            }
        if first == "Write":
            return rewrite(shown)
        return self._judge(text, shown, first)

    def _judge(self, text: str, shown: str, first: str) -> dict[str, Any]:
        question = re.search(r"^Question: (.*)$", text, re.MULTILINE)
        assert question is not None  # these prompts name it
        papers = []
        for number, title, abstract in _PAPER.findall(shown):
            grade = self._grade(question[1], f"{title}. {abstract}", step=first)
            quote = abstract.partition(". ")[0]
            unmet = [] if grade == 2 else ["technique"]
            one: dict[str, Any] = {"paper": int(number), "unmet": unmet}
            if first == "Say":
                papers.append({**one, "keep": grade == 2})
            else:
                why = f"{_WHY}{'shown' if grade == 2 else 'not shown'}."
                papers.append({**one, "reason": why, "quote": quote, "grade": grade})
        return {"papers": papers}

    def _grade(self, question: str, text: str, *, step: str) -> int:
        true = grade_by_words(question, text)
        if step == "Say" or _draw(self.model_name, step, question, text) < self.accuracy:
            return true
        wrong = [one for one in (0, 1, 2) if one != true]
        return wrong[int(2 * _draw("which", self.model_name, step, question, text))]


def _draw(*what: str) -> float:
    digest = blake2b("\0".join(what).encode(), digest_size=8).digest()
    return int.from_bytes(digest) / 2**64


def grade_by_words(question: str, text: str) -> int:
    """Return 2 if a text has the words of both parts of a question, 1 if of its topic, else 0."""
    topic, _, rest = question.removeprefix("Which papers on ").partition(" | ")
    kind, _, facet = rest.rstrip("?").partition(": ")
    has = set(stems(text))
    if not set(stems(topic)) <= has:
        return 0
    names = set(stems(facet)) <= has
    return 2 if names != (kind == "do without") else 1


def write_questions(topic: str) -> dict[str, Any]:
    """Return four questions on a topic."""
    at = int(_draw("facets", topic) * 1000)
    method, other = METHODS[at % len(METHODS)], METHODS[(at + 3) % len(METHODS)]
    setting = SETTINGS[at % len(SETTINGS)]
    facets = {
        "method": ("use as their own technique", "technique", method),
        "setting": ("are set among", "setting", setting),
        "comparison": ("compare other techniques with", "comparison", other),
        "scope": ("do without", "exclude_technique", method),
    }
    return {
        intent: {
            "query": f"Which papers on {topic} | {words}: {facet}?",
            "constraints": [{"key": "task", "value": topic}, {"key": key, "value": facet}],
        }
        for intent, (words, key, facet) in facets.items()
    }


def rewrite(shown: str) -> dict[str, Any]:
    """Return two queries of each kind for a question."""
    question = shown.partition(": ")[2].partition("\n")[0]
    topic, _, rest = question.removeprefix("Which papers on ").partition(" | ")
    kind, _, facet = rest.rstrip("?").partition(": ")
    facet = "approaches" if kind == "do without" else facet
    return {
        "method": [f"{facet} for {topic}", f"{topic} by {facet}"],
        "task": [topic, f"{topic} corpus"],
        "broader": [f"{facet} for natural language", f"advances in {topic}"],
        "narrower": [f"{topic} {facet} neural", f"{topic} {facet} evaluation shared task"],
        "terms": [f"automatic {topic}", f"{facet} and {topic} analysis"],
    }


def open_base(papers: Path, file: Path) -> PaperBase:
    """Open a base of papers, made if it is not there."""
    return PaperBase.open(file) if file.exists() else PaperBase.build(file, papers)


def main() -> None:
    """Build, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("papers", type=Path)
    parser.add_argument("--topics", type=int, default=20)
    parser.add_argument("--prefilter", default="local", choices=("local", "words", "none"))
    parser.add_argument("--group", type=int, default=10, help="papers in a call of a judge")
    parser.add_argument("--folder", type=Path, default=Path("quest-bench"))
    parser.add_argument("--input-price", type=float, default=0.25, help="a million prompt tokens")
    parser.add_argument("--output-price", type=float, default=2.0, help="a million reply tokens")
    parser.add_argument("--seconds", type=float, default=4.0, help="that a call takes")
    parser.add_argument("--at-once", type=int, default=16, help="calls in flight")
    given = parser.parse_args()
    given.folder.mkdir(exist_ok=True)
    out = given.folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    judges = [QuestChat(model_name=f"judge-{one}", accuracy=0.95) for one in "abc"]
    topics = [Topic(id=f"t{at:02}", name=one) for at, one in enumerate(TOPICS[: given.topics])]
    with open_base(given.papers, given.folder / "quest.papers") as base:
        began, cpu = time.perf_counter(), time.process_time()
        made = build_quest(
            topics,
            out,
            sources=base,
            model=QuestChat(model_name="writer"),
            judges=judges,
            plan=QuestPlan(prefilter=given.prefilter, group=given.group, min_answers=1),
        )
        seconds = time.perf_counter() - began, time.process_time() - cpu
    report(made, given, len(topics), seconds)


def report(
    made: Built, given: argparse.Namespace, n_topics: int, seconds: tuple[float, float]
) -> None:
    """Print what the steps took, and what they would take for as many questions as the paper's."""
    manifest = made.manifest
    n = manifest["questions"]["judged"]
    records = [json.loads(line) for line in (made.folder / "records.jsonl").open()]
    searches = sum(one["tool"] == "search" for each in records for one in each["calls"])
    found = sum(sum(one["new"] for one in each["calls"] if one["tool"] == "search")
                for each in records)  # fmt: skip
    left = {why: sum(len(each["left_out"].get(why, ())) for each in records)
            for why in ("far", "no_abstract", "out_of_years", "pruned")}  # fmt: skip
    _say(f"{n_topics} topics, {n} questions, stops {manifest['stops']}")
    _say(f"searches {searches}, papers found by them {found}, left out {left}")
    _say(f"pairs {manifest['pairs']}, answers {manifest['answers']}")
    _say(f"wall {seconds[0]:.0f} s, CPU {seconds[1]:.0f} s\n")
    _say("| step | calls | prompt tokens | reply tokens | 1 111 questions: calls | tokens |")
    _say("|---|---|---|---|---|---|")
    total = [0.0] * 5
    for step, used in manifest["usage"].items():
        scale = PAPER_TOPICS / n_topics if step in ("questions", "review") else PAPER_QUESTIONS / n
        row = [used["calls"], used["input_tokens"], used["output_tokens"]]
        row += [scale * row[0], scale * (row[1] + row[2])]
        total = [one + other for one, other in zip(total, row, strict=True)]
        _say(f"| {step} | {' | '.join(f'{one:,.0f}' for one in row)} |")
    _say(f"| all | {' | '.join(f'{one:,.0f}' for one in total)} |\n")
    cost = _cost(manifest["usage"], n_topics, n, given)
    hours = total[3] * given.seconds / given.at_once / 3600
    cpu = seconds[1] * PAPER_QUESTIONS / n / 3600
    _say(
        f"1 111 questions: {total[3]:,.0f} calls, {total[4] / 1e6:,.0f} million tokens, "
        f"{hours:.1f} h at {given.seconds:g} s a call and {given.at_once} in flight, {cpu:.1f} h "
        f"of one core, {cost:,.0f} at {given.input_price:g} and {given.output_price:g} a million"
    )


def _cost(
    usage: dict[str, dict[str, int]], n_topics: int, n: int, given: argparse.Namespace
) -> float:
    cost = 0.0
    for step, used in usage.items():
        scale = PAPER_TOPICS / n_topics if step in ("questions", "review") else PAPER_QUESTIONS / n
        paid = used["input_tokens"] * given.input_price
        paid += used["output_tokens"] * given.output_price
        cost += scale * paid / 1e6
    return cost


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
