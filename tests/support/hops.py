"""Questions of two hops over a few passages, and embeddings without a model."""

import json
import math
from zlib import crc32

from langchain_core.embeddings import Embeddings

TEXTS = {
    "salt": ("The Salt Road", "The Salt Road is a film of 1971, directed by Edda Quill."),
    "edda": ("Edda Quill", "Edda Quill grew up in Tarrow, and later taught."),
    "tarrow": ("Tarrow", "Tarrow lies at the mouth of the Ebbing."),
    "harvest": ("Grey Harvest", "Grey Harvest is a film of 1975."),
    "director": ("Film director", "A director of a film tells actors where to stand."),
    "town": ("Settlement", "In which town a director was born is seldom told by a film."),
    "born": ("Register", "A register tells in which town who was born."),
    "roads": ("Road film", "Road films were directed where roads were long."),
    "mines": ("Salt mine", "Salt is mined in a town of miners, born there."),
    "sheep": ("Sheep", "Sheep graze on hills."),
    "nets": ("Net", "Nets are made of rope."),
    "boats": ("Boat", "A boat is built of oak."),
}
PASSAGES = [{"id": name, "title": title, "text": text} for name, (title, text) in TEXTS.items()]
QUESTIONS = [
    {
        "id": "q1",
        "question": "In which town was the director of the film The Salt Road born?",
        "supporting": ["salt", "edda"],
        "subquestions": [
            {"question": "The Salt Road >> director", "answer": "Edda Quill"},
            {"question": "Where did #1 grow up?", "answer": "Tarrow"},
        ],
    },
    {
        "id": "q2",
        "question": "Which film is older, The Salt Road or Grey Harvest?",
        "supporting": ["salt", "harvest"],
        "subquestions": [
            {"question": "When was The Salt Road made?", "answer": "1971"},
            {"question": "When was Grey Harvest made?", "answer": "1975"},
        ],
    },
]


def write_hops(folder, *, passages=PASSAGES, questions=QUESTIONS):
    """Write a data set into a folder, and return the folder."""
    folder.mkdir(exist_ok=True)
    for name, records in (("passages", passages), ("questions", questions)):
        lines = "".join(json.dumps(one) + "\n" for one in records)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    return folder


class CountingEmbeddings(Embeddings):
    """Hashed words; `texts` are those that were embedded as documents."""

    def __init__(self):
        self.texts = []

    def embed_query(self, text):
        vector = [0.01] * 32
        for word in text.lower().split():
            vector[crc32(word.encode()) % 32] += 1
        return [value / math.hypot(*vector) for value in vector]

    def embed_documents(self, texts):
        self.texts += texts
        return [self.embed_query(text) for text in texts]
