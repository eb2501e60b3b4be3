"""What a writer is told when a gate rejects its passage."""

from collections.abc import Sequence

IN_WORDS = {
    "blank": "it is empty",
    "contains-answer": "it contains the correct answer or one of the phrases to avoid",
    "far-from-question": "it uses too few of the question's terms to be found by a search for it",
    "too-short": "it has far fewer words than were asked for",
    "too-long": "it has far more words than were asked for",
    "duplicate": "it is too much like another passage; choose other details and other sentences",
    "copies-golden": "it repeats a passage that answers the question",
    "repeats-question": "it repeats the question",
    "label": "it begins with a label",
    "chatter": "it speaks to the reader instead of being the passage alone",
    "refusal": "it declines the task",
    "says-it-is-false": "it says that it is false or does not answer",
    "names-the-task": "it speaks of passages, samples or the task",
    "prompt-echo": "it repeats the words of the task",
    "placeholder": "it leaves blanks or placeholders",
    "markup": "it is not plain prose: it has headings, lists or other markup",
    "cut-off": "it breaks off in the middle of a sentence",
    "repeats-itself": "it says the same sentence twice",
}


def in_words(reasons: Sequence[str]) -> str:
    """Return what is wrong with a passage, by the names of the gates it failed."""
    return "; ".join(IN_WORDS.get(name, name.replace("-", " ")) for name in reasons)
