"""A question that yes or no answers, written as the claim that its answer is.

"Does exercise lower blood pressure?" with no becomes "Exercise does not lower blood pressure." No
parser is at hand: where a subject ends is read from the words after it, and where that cannot be
told the question is repeated with its answer.
"""

import re
from typing import Literal

YesNo = Literal["yes", "no"]
_AUXILIARY_TEXT = (
    "is are was were do does did can could should would will may might must has have had"
)
_AUXILIARIES = _AUXILIARY_TEXT.split()
_HEAD = re.compile(
    rf"^(?P<topic>.{{3,}}?)(?::|\.|;|\?|,|\s-|--|–|—)\s*"
    rf"(?P<asked>(?:{'|'.join(_AUXILIARIES)})\s.+)$",
    re.IGNORECASE | re.DOTALL,
)
_PRONOUNS_TEXT = "it they we you he she i"
_PRONOUNS = frozenset(_PRONOUNS_TEXT.split())
_DETERMINERS_TEXT = """
    a an the this that these those its their his her our your any some all each every no both
    either neither
    """
_DETERMINERS = frozenset(_DETERMINERS_TEXT.split())
_PREPOSITIONS_TEXT = """
    of in on at by for with without from to into during after before between among against
    through under over via within per versus vs than as about
    """
_PREPOSITIONS = frozenset(_PREPOSITIONS_TEXT.split())
_LINKS_TEXT = """
    and or nor but
    """
_LINKS = frozenset(_LINKS_TEXT.split())
_ATTRIBUTES_TEXT = """
    that which who whose more most less very highly well newly early late high low new current
    increased decreased reduced elevated
    """
_NO_PREDICATE_AFTER = _DETERMINERS | _PREPOSITIONS | _LINKS | frozenset(_ATTRIBUTES_TEXT.split())
_VERBS_TEXT = """
    accelerate accept achieve activate act add address adhere affect aggravate aid allow
    alleviate alter ameliorate antagonize appear assist attenuate augment avoid be become
    begin benefit bind block bring broaden carry cause change cleave coincide compare complicate
    comply compromise confer confirm constitute contain continue contribute control convey
    correlate correspond cross cure deactivate decline decrease define delay deliver depend
    detect deteriorate determine develop diagnose differ differentiate diminish direct
    discriminate display disrupt distinguish do eliminate elevate enable encode encourage
    endanger enhance ensure eradicate escape exacerbate exhibit exist experience explain
    expose express extend face facilitate fail favor favour follow form generalise generalize
    generate get give guarantee guide happen harm have help hinder identify impact impair
    impede imply improve include increase induce influence inhibit initiate interact interfere
    involve justify know lead learn lessen limit rely attend agree account counteract damage
    underprescribe lose lower maintain make manage matter mean measure mediate meet mirror
    mitigate mobilise mobilize modify modulate need obtain occur offer outperform outweigh
    overcome participate penetrate perceive perform permit persist play pose possess
    potentiate practice precede preclude predict predispose prefer present preserve prevent
    produce prognosticate progress prolong promote protect provide push raise reach receive
    recognise recognize recover recur reduce reflect regenerate regulate relate relieve remain
    remove replace represent require resemble respond restore restrict result retain reveal
    reverse rise save screen secrete seek sensitise sensitize serve shorten show simplify slow
    solve spare stabilise stabilize stimulate stop strengthen substitute succeed suffer
    suppress support survive sustain take target teach tend threaten tolerate transmit treat
    trigger undergo understand use vary want warrant weaken withstand work worsen yield
    """
_VERBS = frozenset(_VERBS_TEXT.split())
_ALSO_NOUNS_TEXT = """
    act aid benefit block bring cause change control correlate cross cure decline decrease
    delay display do experience express form guide harm help impact increase influence limit
    matter measure mean meet need play practice present progress raise reach result rise
    screen show support target treat trigger use want work yield
    """
_ALSO_NOUNS = frozenset(_ALSO_NOUNS_TEXT.split())
_PREDICATES_TEXT = """
    able absent acceptable accurate adequate advantageous affected altered always applicable
    appropriate associated available aware beneficial better caused changed characterized
    comparable consistent correlated cost-effective dangerous decreased dependent detectable
    detrimental different due effective efficacious efficient elevated enough equal equally
    equivalent essential expressed false feasible generalizable good harmful helpful high
    higher identical important impaired improved inadequate increased independent
    independently indicated indispensable ineffective inferior influenced inherited involved
    justified known less likely linked low lower mandatory meaningful mutated necessary needed
    normal obligatory obsolete optimal part possible predictive prevalent present protective
    proven rare really reasonable recommended reduced related relevant reliable representative
    required responsible robust safe satisfactory secreted sensitive significant significantly
    similar specific sufficient suitable superior sustainable toxic true truly unlikely under-
    recognised underestimated unnecessary unsafe useful valid valuable viable warranted wise
    worse worth worthwhile
    """
_PREDICATES = frozenset(_PREDICATES_TEXT.split())
_ADVERBS_TEXT = """
    also still always really truly actually currently often routinely usually ever even just
    only ultimately necessarily commonly equally already clinically more less as too
    """
_ADVERBS = frozenset(_ADVERBS_TEXT.split())
_SURE = 1.0
_ADVERB = re.compile(r"^(?!family|anomaly|assembly|supply|early|elderly|daily)\w{3,}ly$")


def restate(question: str, answer: YesNo) -> str:
    """Return the answer to a question as a sentence of the question's own words.

    It is put as what the results suggest, since whoever asks for it has understood nothing. Where
    the question cannot be turned it is repeated with its answer: ``Tea: a cause of sleep? Yes.``
    """
    asked = " ".join(question.split()).strip("\"“”' ")
    found = None if _begins_asking(asked) else _HEAD.match(asked)
    topic, rest = (found["topic"], found["asked"]) if found else ("", asked)
    claim = _as_claim(rest.rstrip(" ?.!"), answer)
    if claim is None:
        return f"{asked.rstrip(' ?.!')}? {answer.capitalize()}."
    head = f"{topic.strip(' ?.:')}: t" if topic else "T"
    return f"{head}he results suggest that {claim}."


def _begins_asking(text: str) -> bool:
    return text.split(maxsplit=1)[0].lower() in _AUXILIARIES if text else False


def _as_claim(asked: str, answer: YesNo) -> str | None:
    auxiliary, _, rest = asked.partition(" ")
    auxiliary, words = auxiliary.lower(), rest.split()
    if auxiliary not in _AUXILIARIES or len(words) < 2:
        return None
    if words[0].lower() == "there":
        return _existence(auxiliary, words[1:], answer)
    end = _find_predicate(auxiliary, words)
    if end is None:
        return None
    if words[0].lower() in _DETERMINERS | _PRONOUNS:
        words[0] = words[0].lower()
    return f"{' '.join(words[:end])} {_verb_phrase(auxiliary, words[end:], answer)}"


def _existence(auxiliary: str, words: list[str], answer: YesNo) -> str:
    left_out = {"a", "an", "any", "still"} if answer == "no" else {"any"}
    while words and words[0].lower() in left_out:
        words = words[1:]
    return " ".join(["there", auxiliary, *(["no"] if answer == "no" else []), *words])


def _verb_phrase(auxiliary: str, predicate: list[str], answer: YesNo) -> str:
    rest = " ".join(predicate)
    if answer == "no":
        return f"{auxiliary} not {rest}" if auxiliary != "can" else f"cannot {rest}"
    if auxiliary == "do":
        return rest
    if auxiliary == "does":
        place = next((n for n, one in enumerate(predicate) if one.lower() in _VERBS), 0)
        said = [*predicate[:place], _third_person(predicate[place]), *predicate[place + 1 :]]
        return " ".join(said)
    return f"{auxiliary} {rest}"


def _third_person(verb: str) -> str:
    irregular = {"have": "has", "do": "does", "be": "is"}
    if verb in irregular:
        return irregular[verb]
    if re.search(r"(?:s|x|z|ch|sh|o)$", verb):
        return f"{verb}es"
    if re.search(r"[^aeiou]y$", verb):
        return f"{verb[:-1]}ies"
    return f"{verb}s"


def _find_predicate(auxiliary: str, words: list[str]) -> int | None:
    """Return where the predicate begins; None if that cannot be told."""
    plain = [one.lower().strip(",;:()\"'") for one in words]
    if plain[0] in _PRONOUNS:
        return 1
    weigh = _weigh_adjective if auxiliary in _BEING else _weigh_verb
    scored = [(weigh(plain, place) - 0.06 * place, place) for place in range(1, len(plain))]
    best, place = max(scored, key=lambda one: one[0])
    if best < _SURE - 0.6:
        return None
    while place > 1 and (plain[place - 1] in _ADVERBS or _ADVERB.search(plain[place - 1])):
        place -= 1
    return place


_BEING_TEXT = """
    is are was were
    """
_BEING = frozenset(_BEING_TEXT.split())


def _weigh_verb(plain: list[str], place: int) -> float:
    word, before = plain[place], plain[place - 1]
    after = plain[place + 1] if place + 1 < len(plain) else ""
    if word not in _VERBS or before in _NO_PREDICATE_AFTER:
        return _NEVER
    if word in _ALSO_NOUNS:
        if after in ("of", "and", "or") or after in _VERBS - _ALSO_NOUNS:
            return -1.0
        return 1.4 if after in _DETERMINERS | _PREPOSITIONS or not after else 1.1
    return 2.0


def _weigh_adjective(plain: list[str], place: int) -> float:
    word, before = plain[place], plain[place - 1]
    after = plain[place + 1] if place + 1 < len(plain) else ""
    if before in _NO_PREDICATE_AFTER - _DEGREES:
        return _NEVER
    ends = not after or after in _BEFORE_WHAT_FOLLOWS
    if word in _PREDICATES:
        return 2.2 if ends else 1.4
    if word in _WEIGHTS:
        return _WEIGHTS[word]
    if not ends:
        return _NEVER
    return next((weight for form, weight in _FORMS if form.search(word)), _NEVER)


_NEVER = -9.0
_DEGREES = frozenset(["more", "most", "less", "very", "highly", "well"])
_BEFORE_WHAT_FOLLOWS = _PREPOSITIONS | _LINKS | frozenset(["when", "if", "whether", "enough"])
_WEIGHTS = {**dict.fromkeys(_ADVERBS, 1.3), "a": 1.8, "an": 1.8, "the": 1.5}
_FORMS = (
    (re.compile(r"(?:ed|able|ible)$"), 1.6),
    (re.compile(r"(?:ing|ive|ous|ful|ant|ent|ic|al)$"), 0.9),
)
