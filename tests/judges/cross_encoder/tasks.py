"""Passage tasks."""

QUESTION = "Do wet summers make the crust on copper grow faster?"


def task(text, *, question=QUESTION, title="", section=""):
    intent = {"topic": "", "entity_type": "", "intent": "other", "expected_answer_type": "other"}
    return {
        "question": question, "intent": intent, "text": text, "title": title, "section": section,
    }  # fmt: skip
