"""A scripted model for the builder's prompts: it answers each kind validly, from the prompt."""

import json
import re
from random import Random

_BLOCK = re.compile(r"=====\w+-([0-9a-f]{8})=====\n(.*?)\n=====\w+-\1=====", re.DOTALL)
_SENTENCE = re.compile(r"[^.]+\.")


def step_of(request):
    """Which prompt of the builder a request carries."""
    first = next(m["content"] for m in request.messages if m["role"] == "user")
    for start, step in (
        ("Note the methods", "extract"),
        ("Make up to", "lmqg"),
        ("Write up to", "guided"),
        ("Plan ", "guidance"),
        ("Write the passage", "distractor"),
        ("Check the passage", "verify"),
    ):
        if first.startswith(start):
            return step
    raise AssertionError(f"not a prompt of the builder: {first[:80]!r}")


def block_of(request):
    first = next(m["content"] for m in request.messages if m["role"] == "user")
    return _BLOCK.search(first).group(2)


def line_of(request, name):
    first = next(m["content"] for m in request.messages if m["role"] == "user")
    return re.search(rf"^{name}: (.*)$", first, re.MULTILINE).group(1)


def n_tries(request):
    return sum(m["role"] == "assistant" for m in request.messages)


def answer(request):
    """A valid answer to any prompt of the builder."""
    return globals()[f"_{step_of(request)}"](request)


def _extract(request):
    text = block_of(request).partition("\n\n")[2]
    sentences = _SENTENCE.findall(text) or [text]
    return {"methods": sentences[0], "results": sentences[-1], "significance": ""}


def _lmqg(request):
    return _pairs(block_of(request))


def _guided(request):
    return _pairs(block_of(request).partition("Passage:\n")[2])


def _pairs(passage):
    """Ask for the end of the passage's longest sentence, by its beginning."""
    longest = max(_SENTENCE.findall(passage) or [passage], key=len)
    words = longest.rstrip(".").split()
    half = max(len(words) - 4, 1)
    question = f"Which words end the statement that begins with {' '.join(words[:half])}?"
    return {"pairs": [{"question": question, "answer": " ".join(words[half:])}]}


def _guidance(request):
    types = re.search(r"order of types: (.*)\.", request.messages[-1]["content"]).group(1)
    lengths = line_of(request, "Lengths in words, in the same order").split(", ")
    return {
        "guides": [
            {"type": one, "focus": f"{one} {n} of {line_of(request, 'Question')}", "avoid": [],
             "length": int(lengths[n])}
            for n, one in enumerate(types.split(", "))
        ]
    }  # fmt: skip


def _distractor(request):
    return {"text": passage_for(request)}


_FORMS = (
    "In trial {n} the {0} was kept apart from the {1}, while {2} and {3} were counted every week.",
    "At the second site {0} and {1} were weighed in {n} nets, and {2} was left out with {3}.",
    "Of the {n} samples with {0}, most came from {1}, but the {2} of {3} was not known.",
    "We added {0} to {1} at a depth of {n} metres and counted {2} in the enclosures with {3}.",
    "Lakes with {0} may thus keep their {1}, whereas {2} depends on the {3} of {n} weeks.",
)


def passage_for(request):
    """Prose of the question's words, without those to avoid, as long as wanted."""
    chance = Random(line_of(request, "Focus") + str(n_tries(request)))
    avoided = set(re.findall(r"[\w-]+", line_of(request, "Never mention").lower()))
    question = line_of(request, "Question").removeprefix("Which words end the statement that")
    asked = [w for w in re.findall(r"[a-zA-Z-]{4,}", question) if w.lower() not in avoided]
    text, n_words = [], 0
    while n_words < 0.9 * int(line_of(request, "Words").split()[-1]):
        words = [chance.choice(asked) for _ in range(4)]
        text.append(chance.choice(_FORMS).format(*words, n=chance.randrange(1000, 9999)))
        n_words += 16
    return " ".join(text)


def _verify(request):
    return {"quote": "", "relation": "silent"}


def dumped(value):
    return json.dumps(value)
