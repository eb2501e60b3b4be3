"""The scripted model behind the server: reads a prompt, knows the truth, errs where it is told."""

import json
import re
from collections import Counter
from collections.abc import Iterable

from answers import Form, Verdict
from loopback import Reply, Request, texts
from questions import Question

from faults import FAULTS, Call, Fault, good

_CODE = re.compile(r"F\d\dQ\d\dP\d\d")
_SECRET_LINE = re.compile(r"^.*[0-9a-f]{8}.*$", re.MULTILINE)
_INTENT = {
    "topic": "botany",
    "entity_type": "plant: reed moss",
    "intent": "causal inference",
    "expected_answer_type": "categorical",
}


class ScriptedModel:
    """Answers one rival's requests about many questions, in that rival's form.

    A request that shows no passage is DeepEra's question about the intent.
    """

    def __init__(self, form: Form, questions: Iterable[Question]) -> None:
        self._form = form
        self._question = {code: one for one in questions for code in one.passages}
        self._attempts: Counter[str] = Counter()

    def __call__(self, request: Request) -> Reply:
        """Answer; a fault hits every call that shows its victim."""
        prompt = "\n".join(texts(request.messages))
        shown = list(dict.fromkeys(_CODE.findall(prompt)))
        if not shown:
            return Reply(content=json.dumps(_INTENT))
        question = self._question[shown[0]]
        fault = FAULTS.get(question.fault, Fault(good))
        hit = question.victim in shown and (not fault.order or _obeys(prompt, fault.order))
        call = Call(
            request,
            self._form,
            [
                Verdict(label, question.grades[code])
                for label, code in enumerate(shown, start=self._form.first_label)
            ],
            shown.index(question.victim) if hit else 0,
            self._attempts[question.victim],
        )
        if not hit:
            return call.good()
        self._attempts[question.victim] += 1
        return fault.answer(call) or call.good()


def _obeys(prompt: str, order: str) -> bool:
    """Whether the order stands outside every block that a passage cannot close.

    Such a block has the same line before and after it, with at least 8 hexadecimal digits that
    whoever wrote the passage could not know.
    """
    before, _, after = prompt.partition(order)
    fences = set(_SECRET_LINE.findall(before)) & set(_SECRET_LINE.findall(after))
    return order in prompt and not fences
