"""A chat model that plays the roles of a search for papers, by what its prompts say."""

import json
import re

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult


class Told(BaseChatModel):
    """A chat model that answers each prompt of a search by what it is asked for."""

    replies: dict
    asked: list = []  # noqa: RUF012  # a field of pydantic, copied for each
    systems: dict = {}  # noqa: RUF012

    @property
    def _llm_type(self):
        return "told"

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        system = str(messages[0].content)
        name = next(one for one in self.replies if one in system)
        self.systems[name] = system
        self.asked.append((name, str(messages[1].content)))
        reply = self.replies[name]
        said = reply(len([one for one in self.asked if one[0] == name]), self.asked[-1][1])
        text = said if isinstance(said, str) else json.dumps(said)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])


LIMITS = {
    "topic": "kelp counting", "exclude": ["swarm search"], "year_from": None, "year_to": 2022,
    "venues": [], "not_venues": [], "better": [],
}  # fmt: skip


def judged(_, shown):
    numbers = re.findall(r"^\[(\d+)\] .*$", shown, re.M)
    lines = {int(one[1]): one[0] for one in re.finditer(r"^\[(\d+)\] .*$", shown, re.M)}
    return {
        "papers": [
            {
                "paper": int(number),
                "reason": "told",
                "quote": "words that are not there" if int(number) % 2 else "Work on",
                "score": 0.9 if "kelp" in lines[int(number)].lower() else 0.1,
                "breaks": "swarm search" if "on swarm search" in lines[int(number)] else "",
            }
            for number in numbers
        ]
    }


def prompts_of(model, name):
    """Return what a role was shown, call by call."""
    return [text for role, text in model.asked if role == name]
