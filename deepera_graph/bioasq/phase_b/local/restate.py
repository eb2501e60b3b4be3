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
_STANDS_FOR_TOPIC = frozenset(["it", "they", "this", "these"])
_IS_SENTENCE = re.compile(r"\s(?:is|are|was|were)\s", re.IGNORECASE)
_STOPS = re.compile(r"[.?!;:](?:\s|$)")
_IS_ABOUT = re.compile(  # what is asked is said of what follows
    r"(?:an?\s+|the\s+)?(?:\w+\s+)?(?:analysis|comparison|investigation|review|study|survey)\b",
    re.IGNORECASE,
)
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
_ASKING_TEXT = """
    what when where which who whose why how whether if
    """
_NO_SUBJECT_BEGINS = _PREPOSITIONS | frozenset(_ASKING_TEXT.split())
_BEFORE_PREPOSITION = re.compile(rf"\s(?:{'|'.join(sorted(_PREPOSITIONS))})\s", re.IGNORECASE)
_PLURAL = re.compile(r"\w[^\Wsiu]s$")
_VERBS_TEXT = """
    accelerate accept account achieve act activate add address adhere affect aggravate agree aid
    alleviate allow alter ameliorate antagonize appear assist attend attenuate augment avoid be
    become begin benefit bind block bring broaden call carry cause change cleave coincide
    compare complicate comply compromise confer confirm constitute contain continue contribute
    control convey correlate correspond counteract cross cure damage deactivate decline decrease
    define delay deliver depend detect deteriorate determine develop diagnose differ
    differentiate diminish direct discriminate display disrupt distinguish do elevate eliminate
    elucidate enable encode encourage endanger enhance ensure eradicate escape exacerbate
    exhibit exist experience explain expose express extend face facilitate fail favor favour
    follow form generalise generalize generate get give guarantee guide happen harm have help
    hinder identify impact impair impede imply improve include increase induce influence inhibit
    initiate interact interfere involve justify know lead learn lessen limit lose lower maintain
    make manage matter mean measure mediate meet mirror mitigate mobilise mobilize modify
    modulate need obtain occur offer outperform outweigh overcome participate penetrate perceive
    perform permit persist play pose possess potentiate practice precede preclude predict
    predispose prefer present preserve prevent produce prognosticate progress prolong promote
    protect provide push raise reach read receive recognise recognize recover recur reduce
    reflect regenerate regulate relate relieve rely remain remove replace represent request
    require resemble respond restore restrict result retain reveal reverse rise save screen
    secrete seek sensitise sensitize serve shorten show simplify slow solve spare stabilise
    stabilize stimulate stop strengthen substitute succeed suffer support suppress survive
    sustain take target teach tend threaten tolerate transmit treat trigger undergo
    underprescribe understand use vary want warrant weaken withstand work worsen yield
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
_CALLED = re.compile(  # "Tea: a cause of sleep?", "Tea: safe and effective?"
    r"^(?P<topic>[^:,.;?]{3,}?)(?::|,|\s-|--|–|—)\s*"
    rf"(?P<name>(?:an?|another|{'|'.join(sorted(_PREDICATES, key=len, reverse=True))})\b[^:.;?]+)"
    r"[\s?]*$",
    re.IGNORECASE,
)
_IS_HAD = re.compile(  # a topic has it, or is not what is so called
    r"^(?:an?|another)\s+(?:\S+\s+){0,2}?(?:association|benefit|case|chance|comparison|difference|"
    r"effect|link|need|place|relation|relationship|review|role|study)\b",
    re.IGNORECASE,
)
_ADVERBS_TEXT = """
    also still always really truly actually currently often routinely usually ever even just
    only ultimately necessarily commonly equally already clinically more less as too
    """
_ADVERBS = frozenset(_ADVERBS_TEXT.split())
_SURE = 1.0
_ADVERB = re.compile(r"^(?!family|anomaly|assembly|supply|early|elderly|daily)\w{3,}ly$")


def restate(question: str, answer: YesNo) -> str:
    """Return the answer to a question as a sentence of the question's own words.

    It is put as what the results suggest, since whoever asks for it has understood nothing. "It"
    becomes the topic before it: ``Tea: is it safe?`` is ``Tea is safe, the results suggest.``, and
    so is ``Tea: safe?``. Where the question cannot be turned it is repeated with its answer:
    ``Tea: a role in sleep? Yes.``
    """
    asked = " ".join(question.split()).strip("\"“”' ")
    begins = _begins_asking(asked)
    called = None if begins else _CALLED.match(asked)
    if called and _may_be_subject(called["topic"]) and not _IS_HAD.search(called["name"]):
        return _call(called["topic"], called["name"], answer)
    found = None if begins else _HEAD.match(asked)
    topic, rest = (found["topic"].strip(" ?.:"), found["asked"]) if found else ("", asked)
    claim = _as_claim(rest.rstrip(" ?.!"), answer)
    if claim is None:
        return f"{asked.rstrip(' ?.!')}? {answer.capitalize()}."
    if not topic:
        return f"The results suggest that {claim}."
    pronoun, _, said = claim.partition(" ")
    if pronoun in _STANDS_FOR_TOPIC and _may_be_subject(topic) and _is_alone(pronoun, said):
        return f"{topic[0].upper()}{topic[1:]} {said}, the results suggest."
    return f"{topic}: the results suggest that {claim}."


def _call(topic: str, name: str, answer: YesNo) -> str:
    head = _BEFORE_PREPOSITION.split(topic, maxsplit=1)[0]
    is_plural = _PLURAL.search(head.lower()) or " and " in head
    verb = f"{'are' if is_plural else 'is'}{' not' if answer == 'no' else ''}"
    return f"{topic[0].upper()}{topic[1:]} {verb} {name[0].lower()}{name[1:]}, the results suggest."


def _may_be_subject(topic: str) -> bool:
    """Tell whether a topic is one phrase, of which what is asked can be said."""
    if topic.split(maxsplit=1)[0].lower() in _NO_SUBJECT_BEGINS:
        return False
    return not (_STOPS.search(topic) or _IS_ABOUT.match(topic) or _IS_SENTENCE.search(topic))


def _is_alone(pronoun: str, said: str) -> bool:
    return pronoun in _PRONOUNS or said.split(maxsplit=1)[0] in _AUXILIARIES


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
    if answer == "yes":
        asks_for_any = words and words[0].lower() == "any"
        return " ".join(["there", auxiliary, *(["some", *words[1:]] if asks_for_any else words)])
    while words and words[0].lower() in ("a", "an", "any", "still"):
        words = words[1:]
    return " ".join(["there", auxiliary, "no", *words])


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
    if plain[0] in _PRONOUNS or (plain[0] in ("this", "these") and plain[1] in ("a", "an", "the")):
        return 1
    weigh = _WEIGHS.get(auxiliary, _weigh_verb)
    scored = [(weigh(plain, place) - 0.06 * place, place) for place in range(1, len(plain))]
    best, place = max(scored, key=lambda one: one[0])
    if best < _SURE - 0.6:
        return None
    while place > 1 and (plain[place - 1] in _ADVERBS or _ADVERB.search(plain[place - 1])):
        place -= 1
    return place


_PARTICIPLE = re.compile(r"^(?:[a-z]{3,}ed|been|become|made|led|gone|had|given|risen|fallen|lost)$")


def _weigh_participle(plain: list[str], place: int) -> float:
    is_one = _PARTICIPLE.search(plain[place]) and plain[place - 1] not in _NO_PREDICATE_AFTER
    return 1.8 if is_one else _NEVER


def _weigh_verb(plain: list[str], place: int) -> float:
    word, before = plain[place], plain[place - 1]
    after = plain[place + 1] if place + 1 < len(plain) else ""
    if word not in _VERBS or before in _NO_PREDICATE_AFTER:
        return _NEVER
    if word in _ALSO_NOUNS:
        if _PLURAL.search(before) and after not in ("of", "and", "or"):
            return 1.7
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
        return 2.2 if ends or word == "worth" else 1.4
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
_WEIGHS = {
    **dict.fromkeys(("is", "are", "was", "were"), _weigh_adjective),
    **dict.fromkeys(("has", "have", "had"), _weigh_participle),
}
