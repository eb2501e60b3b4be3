"""Noun phrases of a question: where names begin and end, by short word lists and its clauses."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

from deepera_graph.judges.heuristic.topicality import WORD_LISTS
from deepera_graph.text.words import STOP_WORDS

COMPARATIVE = (
    r"(?:more|less|fewer|better|worse|(?:high|low|larg|small|long|short|fast|slow|strong|weak|great"
    r"|earli|lat|cheap|saf|clos|narrow|wid|thick|thin|warm|cool|hott|cold|hard|soft|light|heavi"
    r"|common|rar|scarc|deep|old|young|rich|poor|clean|easi|bright|dens|fre|soon|near|furth|bigg"
    r"|steep|quick|tight|sharp|smooth|rough|tall|dri|wett|dark|sick|happi|health|fair)er)"
)
SUPERLATIVE = (
    r"(?:most|least|fewest|best|worst|latest|(?:high|low|larg|small|long|short|fast|slow|strong"
    r"|weak|great|earli|cheap|saf|clos|narrow|wid|thick|thin|warm|cool|hott|cold|light|heavi"
    r"|deep|old|young|rich|easi|quick|bigg)est)"
)
LONGEST_CLAUSE = 40
_WORD = re.compile(r"[^\W_]+(?:[-‐‑–/'’.+][^\W_]+)*%?")


def _inflect(verb: str) -> Iterator[str]:
    yield verb
    if verb.endswith("y") and verb[-2] not in "aeiou":
        yield f"{verb[:-1]}ies"
    else:
        yield verb + ("es" if verb.endswith(("s", "sh", "ch", "x", "z", "o")) else "s")


_SETS = {name: frozenset(text.split()) for name, text in WORD_LISTS["names"].items()}
_PARTICLES = _SETS["function"] | STOP_WORDS
_BASE_FORMS = _SETS["verbs"]
_VERBS = frozenset(form for verb in _BASE_FORMS for form in _inflect(verb))
_THIRD_PERSONS = _VERBS - _BASE_FORMS
_NOUNS_OR_VERBS = frozenset(form for verb in _SETS["both"] for form in _inflect(verb))
_ARTICLES = _SETS["articles"]
_OBJECTS = (_ARTICLES - {"that", "each", "every"}) | _SETS["objects"]
_PRONOUNS = _SETS["pronouns"]
_CLOSED = _ARTICLES | _SETS["prepositions"]
_CLEAR_VERBS = _BASE_FORMS | _SETS["mainly_verbs"]
_OPENED_BY = {word: name for name, text in WORD_LISTS["openings"].items() for word in text.split()}
_HAVE, _RELATIVE = (
    frozenset(WORD_LISTS["openings"][name].split()) for name in ("have", "relative")
)
_ASKS = frozenset(word for word, name in _OPENED_BY.items() if name in ("do", "be", "have"))
NO_ADJECTIVES = _SETS["no_adjectives"]
_DEGREE = re.compile(rf"(?:{COMPARATIVE}|{SUPERLATIVE}|\w{{3,}}ly)$")
_ADJECTIVE = re.compile(
    r"(?:[aeiourn]al|ic|ive|ous|ful|ary|less|[^tri]able|ible|ient|[lne]ar|quate|[lp]evant"
    r"|valent|ferent|quent|ficient|pendent|sist[ea]nt"
    r"|-\w+(?:[ea]nt|ed|free|like))$"
)
_NEVER_NOUN = re.compile(r"(?:ous|ful|ible|ical|[^tri]able|less)$")
_AFTER_PLURAL = re.compile(r"(?:[^m]ent|tant|ial|spread|specific)$")
_VERB_ENDING = re.compile(r"\w{2}(?:[^rc]is|iz|[^aeiou]if|lys|lyz)(?:e|es|y|ies)$")
_NOUN_ENDING = re.compile(r"(?:[st]ion|ity|ness|ment|ance|ence|ogy|phy|ism|sis|itis)$")
_PLURAL = re.compile(r"\w{2}(?:[^suic'’]|[^i]c)s$")
_UNIT = re.compile(r"\w{1,2}$|[a-zA-Zµμ][A-Z][a-z]?$|[kMG][a-z]+[A-Z]?$|\w+/")
_NUMERAL = re.compile(r"\d{1,2}(?:/\d+)?$|i$")
_BREAK = re.compile(r"[:;?.–—]")


@dataclass(frozen=True, slots=True)
class _Word:
    """A word, and what its form alone tells of it."""

    token: str
    text: str  # in lower case
    opens: str  # the clause that it opens, one of the openings of the lexicon
    is_name_like: bool  # it has a capital within, or letters and digits
    is_number: bool
    is_particle: bool  # or a number or degree, as "more"
    is_plural: bool  # maybe, of a noun
    is_adjective: bool
    is_past: bool
    is_gerund: bool
    ends_as_verb: bool


@lru_cache(maxsize=16_384)
def _read_word(token: str) -> _Word:
    text, has_digit = token.lower(), any(map(str.isdigit, token))
    has_letter, root = any(map(str.isalpha, token)), text.removesuffix("ing")
    is_degree = bool(_DEGREE.match(text)) and text not in _SETS["no_adverbs"]
    return _Word(
        token,
        text,
        opens=_OPENED_BY.get(text, ""),
        is_name_like=token[1:] != token[1:].lower() or (has_digit and has_letter),
        is_number=text[:1].isdigit() and not has_letter,
        is_particle=text in _PARTICLES or text[:1].isdigit() or is_degree,
        is_plural=bool(_PLURAL.search(text)),
        is_adjective=is_adjective(text),
        is_past=text.endswith("ed") and len(text) > 4 and text not in _SETS["no_participles"],
        is_gerund=root in _VERBS or f"{root}e" in _VERBS,
        ends_as_verb=bool(_VERB_ENDING.match(text)) and text not in _SETS["no_verb_endings"],
    )


def is_adjective(word: str) -> bool:
    """Whether a word ends as adjectives do."""
    return bool(_ADJECTIVE.search(word)) and word not in NO_ADJECTIVES


_NOTHING = _read_word("")


@dataclass(slots=True)
class _Clause:
    """What has been read of a clause: whether its verb may come now, and has come."""

    asks: str = ""  # what opened it
    has_subject: bool = False
    has_verb: bool = False
    outer: "_Clause | None" = None  # the clause that still waits for its verb

    def expects_verb(self) -> bool:
        return self.has_subject and not self.has_verb and self.asks not in ("", "have")


@dataclass(slots=True)
class _Reader:
    """The words of a question, the clause that is read, and whether the last word was in a name."""

    question: str
    words: list[_Word]
    gaps: list[str]  # what stands between a word and the one before it; nothing at both ends
    clause: _Clause = field(default_factory=_Clause)
    in_name: bool = False

    def before(self, place: int) -> _Word:
        """Return the word before; nothing if a sign stands between."""
        return _NOTHING if place < 1 or self.gaps[place] else self.words[place - 1]

    def after(self, place: int) -> _Word:
        """Return the word after; nothing if a sign stands between."""
        is_last = place + 1 >= len(self.words)
        return _NOTHING if is_last or self.gaps[place + 1] else self.words[place + 1]

    def places_after(self, place: int) -> range:
        """Return the places of the next words, as many as a clause has at most."""
        return range(place + 1, min(place + LONGEST_CLAUSE, len(self.words)))


def list_phrases(question: str) -> list[tuple[str, ...]]:
    """List the noun phrases of a question as tuples of words, in text order."""
    found = list(_WORD.finditer(question))
    gaps = [question[one.end() : other.start()].strip() for one, other in pairwise(found)]
    reader = _Reader(question, [_read_word(one.group()) for one in found], ["", *gaps, ""])
    phrases: list[tuple[str, ...]] = []
    run: list[_Word] = []
    clause = ""
    for place, word in enumerate(reader.words):
        within = _is_in_name(reader, place)
        if run and (not within or reader.gaps[place]):
            phrases.append(_cut(run, clause))
            run = []
        if within:
            clause = clause if run else reader.clause.asks
            run.append(word)
    return [phrase for phrase in (*phrases, _cut(run, clause)) if phrase]


def _cut(run: list[_Word], clause: str) -> tuple[str, ...]:
    """Return a run of words without adjectives at its end: after a plural or "is", or any."""
    kept = list(run)
    while kept:
        last = kept[-1]
        if _NEVER_NOUN.search(last.text):
            is_extra = last.text not in NO_ADJECTIVES
        elif len(kept) < 2 or not (kept[-2].is_plural or clause == "be"):
            is_extra = False
        else:
            after_plural = clause != "be" and bool(_AFTER_PLURAL.search(last.text))
            is_extra = last.is_adjective or after_plural
        if not is_extra:
            break
        kept.pop()
    return tuple(word.token for word in kept)


def _is_in_name(reader: _Reader, place: int) -> bool:
    """Read a word, and say whether it is part of a name."""
    word = reader.words[place]
    if _BREAK.search(reader.gaps[place]):
        reader.clause, reader.in_name = _Clause(), False
    if word.opens and not (word.opens == "have" and reader.clause.asks == "do"):
        reader.clause = _open_clause(reader, word.opens, place)
        reader.in_name = False
    elif _is_numeral(reader, place):
        return True
    elif _is_outside(reader, place):
        clause = reader.clause
        clause.has_subject |= word.text in _PRONOUNS
        is_verb = word.text in _HAVE or (word.text == "lower" and reader.in_name)
        clause.has_verb |= clause.asks == "do" and is_verb
        reader.in_name = False
    elif not word.is_name_like and _is_verb(reader, place):
        _read_verb(reader, place)
    else:
        reader.in_name = reader.clause.has_subject = True
    return reader.in_name


def _open_clause(reader: _Reader, asks: str, place: int) -> _Clause:
    """Return the clause that a word opens, or the one around it that waits for its verb."""
    clause = reader.clause
    if asks in ("be", "have"):
        return clause.outer or _Clause(asks, has_subject=True, has_verb=asks == "be")
    waits = clause.asks == "do" and clause.expects_verb() and asks == "relative"
    follows = reader.in_name or reader.before(place).text in _PRONOUNS
    subject = asks == "relative" or (asks == "do" and clause.asks != "relative" and follows)
    return _Clause(asks, has_subject=subject, outer=clause if waits else None)


def _is_numeral(reader: _Reader, place: int) -> bool:
    """Whether a short number belongs to the name before it, as in "type 2 diabetes"."""
    is_short = _NUMERAL.match(reader.words[place].text) and not reader.gaps[place]
    if not (reader.in_name and is_short):
        return False
    is_last = place + 1 == len(reader.words)
    return is_last or not (
        reader.words[place + 1].text[:1].isdigit() or _is_unit(reader, place + 1)
    )


def _is_unit(reader: _Reader, place: int) -> bool:
    """Whether a word is the unit of the number before it."""
    follows = place > 0 and reader.words[place - 1].is_number and reader.gaps[place] in ("", "°")
    return follows and bool(_UNIT.match(reader.words[place].token))


def _is_outside(reader: _Reader, place: int) -> bool:
    """Whether a word is part of no name and no verb: a particle, a unit, a degree."""
    word = reader.words[place]
    if _is_unit(reader, place):
        return True
    if word.is_name_like:
        return False
    after = reader.after(place).text
    is_degree = reader.before(place).text == "how" and (after in _ASKS or after in _ARTICLES)
    return word.is_particle or is_degree


def _read_verb(reader: _Reader, place: int) -> None:
    word = reader.words[place].text
    if reader.before(place).text in _RELATIVE or reader.after(place).text in _OBJECTS:
        is_participle = word.endswith("ing")
    else:  # it only says more about a noun, as in "drugs given before surgery"
        is_participle = word in _SETS["participles"] or word.endswith(("ed", "ing"))
    reader.clause.has_verb |= not is_participle
    if reader.clause.has_verb and reader.clause.outer:
        reader.clause = reader.clause.outer
    if word in _SETS["make"]:
        reader.clause = _Clause("do", has_subject=True)
    reader.in_name = False


def _is_verb(reader: _Reader, place: int) -> bool:
    word, before = reader.words[place], reader.before(place)
    if before.text in _PRONOUNS:
        return True
    if before.text == "to" and reader.before(place - 1).text not in _SETS["before_to"]:
        return word.ends_as_verb or word.text in _VERBS or word.text in _NOUNS_OR_VERBS
    if word.is_past or word.text in _SETS["participles"]:
        is_plain = "-" not in word.text + before.text and not before.is_adjective
        return (reader.in_name and is_plain) or _is_closed(reader, place)
    if word.text.endswith("ing") and len(word.text) > 5:
        return _is_verb_in_ing(reader, place)
    return _is_plain_verb(reader, place)


def _is_closed(reader: _Reader, place: int) -> bool:
    after = reader.after(place)
    return after is _NOTHING or after.is_particle


def _is_verb_in_ing(reader: _Reader, place: int) -> bool:
    word, before = reader.words[place], reader.before(place)
    if reader.after(place).text in _ARTICLES:
        return True
    if before.text in _SETS["before_gerund"] and not reader.before(place - 1).is_past:
        return word.is_gerund or not _is_closed(reader, place)
    if not word.is_gerund:
        return False
    if reader.in_name:
        return before.is_plural and not _is_closed(reader, place)
    return before.text not in _ARTICLES


def _is_plain_verb(reader: _Reader, place: int) -> bool:
    clause, before = reader.clause, reader.before(place)
    if before.text in ("and", "or") and reader.words[place].text in _BASE_FORMS:
        return reader.after(place).text in _OBJECTS
    if clause.has_verb or before.is_adjective or before.text.endswith(("'s", "’s")):
        return False
    if clause.asks == "do":
        return clause.has_subject and _is_infinitive(reader, place)
    return _is_finite(reader, place)


def _is_infinitive(reader: _Reader, place: int) -> bool:
    """Whether the verb that a question with "does" needs is here."""
    word, before = reader.words[place], reader.before(place)
    if not reader.in_name and before.text in _CLOSED:
        return False
    if word.text in _BASE_FORMS or (word.ends_as_verb and not word.text.endswith("s")):
        return True
    clear = _BASE_FORMS if word.text in _SETS["mainly_verbs"] else _CLEAR_VERBS
    if word.is_plural or _has_verb_later(reader, place, clear):
        return False
    if word.text in _NOUNS_OR_VERBS:
        return reader.in_name or before.text not in _SETS["make"]
    return reader.in_name and _must_be_verb(reader, place)


def _is_finite(reader: _Reader, place: int) -> bool:
    """Whether the verb of a statement, or of a clause after "which" or "when", is here."""
    word, before = reader.words[place], reader.before(place)
    opens = reader.clause.asks == "relative" and before.text in _RELATIVE
    if _has_question_later(reader, place) or (before.text in _CLOSED and not opens):
        return False
    if not (reader.in_name or opens) or _is_noun_before_verb(reader, place, opens):
        return False
    if word.text in _VERBS or word.ends_as_verb:
        return True
    if not reader.clause.expects_verb():
        return word.text in _NOUNS_OR_VERBS and _states(reader, place)
    if word.text in _NOUNS_OR_VERBS:
        ends_phrase = reader.after(place) is _NOTHING
        return word.text.endswith("s") or before.is_plural or ends_phrase
    return reader.in_name and _must_be_verb(reader, place)


def _states(reader: _Reader, place: int) -> bool:
    """Whether a noun or verb is the verb of a statement, which agrees with the noun before."""
    is_closed = _is_closed(reader, place) and reader.after(place).text not in _OBJECTS
    if "?" in reader.question or is_closed:
        return False
    return reader.before(place).is_plural != bool(re.search(r"[^s]s$", reader.words[place].text))


def _is_noun_before_verb(reader: _Reader, place: int, opens: bool) -> bool:
    """Whether a clear verb comes later that agrees with the word as its subject."""
    if reader.words[place].text.endswith("s"):
        return not opens and _has_verb_later(reader, place, _BASE_FORMS)
    return _has_verb_later(reader, place, _THIRD_PERSONS)


def _has_verb_later(reader: _Reader, place: int, verbs: frozenset[str]) -> bool:
    """Whether the same clause has one of these verbs later, or a word that only a verb can be."""
    for later in reader.places_after(place):
        word, before = reader.words[later], reader.before(later).text
        is_clear = word.text in verbs or (
            word.text in _NOUNS_OR_VERBS and reader.after(later).text in _OBJECTS
        )
        if is_clear and before not in _CLOSED and before != "to":
            return True
        if word.opens or _BREAK.search(reader.gaps[later]):
            return word.text in _HAVE and reader.clause.asks == "do"
    return False


def _has_question_later(reader: _Reader, place: int) -> bool:
    """Whether "does" or "is" follows in the same clause, so that it has no verb before."""
    for later in reader.places_after(place):
        word = reader.words[later]
        if word.text in _ASKS:
            return reader.clause.asks == "relative"
        if word.opens or _BREAK.search(reader.gaps[later]):
            return False
    return False


def _must_be_verb(reader: _Reader, place: int) -> bool:
    """Whether a word that follows a noun can be none: a plural, or an object, stands beside it."""
    word = reader.words[place]
    if _NOUN_ENDING.search(word.text) or "-" in word.text:
        return False
    follows_plural = reader.before(place).is_plural
    agrees = follows_plural and not word.is_plural and not word.is_adjective
    return agrees or reader.after(place).text in _OBJECTS
