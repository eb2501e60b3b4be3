"""Questions of phase B about an invented drug, and a scripted model that answers them."""

import json

from deepera_graph.bioasq.questions import BioasqQuestion, Snippet, document_url

TEXTS = {
    "yesno": (
        "Does celalol lower airway resistance?",
        "Celalol lowered airway resistance by 19% in 40 adults.",
        "With celalol, airway resistance fell more than with placebo (p = 0.01).",
    ),
    "factoid": (
        "Which enzyme does celalol inhibit?",
        "Celalol inhibited the helicase ZIR3 in every assay.",
        "In mice, celalol blocked helicase ZIR3 within an hour.",
    ),
    "list": (
        "Which unwanted effects does celalol have?",
        "Of 191 adults on celalol, most reported ankle swelling.",
        "Of 444 mice on celalol, most reported muscle cramps.",
    ),
    "summary": (
        "What does celalol do to serum ferritin?",
        "Celalol did not change serum ferritin in rats.",
        "Serum ferritin stayed as it was under celalol.",
    ),
}
EXACT = {
    "yesno": "yes",
    "factoid": (("helicase ZIR3", "ZIR3"),),
    "list": (("ankle swelling",), ("muscle cramps",)),
    "summary": None,
}
IDEAL = "Celalol does so in adults and in mice."


def snippet(text, pmid="17"):
    return Snippet(
        document=document_url(pmid),
        text=text,
        begin_section="abstract",
        begin=0,
        end_section="abstract",
        end=len(text),
    )


def asked(kind, name="", texts=None):
    """A question of a type, with its snippets and no answer."""
    body, *found = TEXTS[kind]
    used = found if texts is None else texts
    return BioasqQuestion(
        id=name or f"{kind}-1",
        type=kind,
        body=body,
        documents=(document_url("17"),),
        snippets=tuple(map(snippet, used)),
    )


def answered(kind, name="example", body="What about moss?"):
    """An answered question, for a prompt; none of those asked."""
    return BioasqQuestion(
        id=f"{name}-{kind}",
        type=kind,
        body=body,
        snippets=(snippet("Moss grows in shade.", "3"), snippet("Moss needs rain.", "4")),
        exact_answer={
            "yesno": "no", "factoid": (("rain", "water"),), "list": (("shade",), ("rain",)),
            "summary": None,
        }[kind],
        ideal_answers=("Moss needs shade and rain.",),
    )  # fmt: skip


ALL = [asked(kind) for kind in TEXTS]
GOOD = {
    "yesno": {"answer": "yes"},
    "factoid": {"names": ["helicase ZIR3", "ligase BUM7"]},
    "list": {"names": ["ankle swelling", "muscle cramps"]},
}


def part_of(request):
    """Which answer a request asks for: a type's exact one, or ``ideal``."""
    if "one paragraph of at most 200 words" in request.system:
        return "ideal"
    shown = "\n".join(str(one["content"]) for one in request.messages)
    return next(kind for kind, (body, *_) in TEXTS.items() if body in shown)


def play(request):
    """Answer as a good model would."""
    part = part_of(request)
    return json.dumps({"text": IDEAL} if part == "ideal" else GOOD[part])
