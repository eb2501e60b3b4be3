"""Noun phrases of a question: where names begin and end, by short word lists and its clauses."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
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


def _to_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _inflect(verb: str) -> Iterator[str]:
    yield verb
    if verb.endswith("y") and verb[-2] not in "aeiou":
        yield f"{verb[:-1]}ies"
    else:
        yield verb + ("es" if verb.endswith(("s", "sh", "ch", "x", "z", "o")) else "s")


_LISTS = WORD_LISTS["names"]
_PARTICLES = frozenset(_LISTS["function"].split()) | STOP_WORDS
_PARTICIPLES = frozenset(_LISTS["participles"].split())
_NO_PARTICIPLES = frozenset(_LISTS["no_participles"].split())
_BASE_FORMS = frozenset(_LISTS["verbs"].split())
_VERBS = frozenset(form for verb in _LISTS["verbs"].split() for form in _inflect(verb))
_THIRD_PERSONS = _VERBS - _BASE_FORMS
_NOUNS_OR_VERBS = frozenset(form for verb in _LISTS["both"].split() for form in _inflect(verb))
_ARTICLES = _to_set(
    "a an the this that these those their its his her our your no every each any all some"
)
_OBJECTS = (_ARTICLES - {"that", "each", "every"}) | _to_set(
    "it them us me more fewer less themselves itself"
)
_BEFORE_GERUND = _to_set("by when while without")
_PRONOUNS = _to_set("you we they he she it someone")
_CLOSED = _ARTICLES | _to_set(
    "of in on at by for with from into onto between among without through over under after before"
    " during per than"
)
_MAINLY_VERBS = _to_set(
    "increase decrease change cause influence impact limit drop rise fall slow cut matter vary use"
)
_CLEAR_VERBS = _BASE_FORMS | _MAINLY_VERBS
_HAVE = _to_set("has have had")
_DO = _to_set("do does did can could will would should may might must")
_BE = _to_set("is are was were")
_ASKS = _DO | _BE | _HAVE
_MAKE = _to_set("make makes made let lets help helps")  # with a bare infinitive
_OPENINGS = {
    "do": _DO,
    "be": _BE,
    "have": _HAVE,
    "relative": _to_set("which what who that how why"),
    "conjunction": _to_set("when where if because once while whether unless although until till"),
}
_OPENED_BY = {word: name for name, its in _OPENINGS.items() for word in its}
# after these "to" is a preposition
_BEFORE_TO = _to_set(
    "prone due exposed exposure response resistance relative related compared similar"
)
_NO_VERB_AFTER = _CLOSED | {"to"}
_RELATIVE = _OPENINGS["relative"]
_DEGREE = re.compile(rf"(?:{COMPARATIVE}|{SUPERLATIVE}|\w{{3,}}ly)$")
_NO_ADVERBS = frozenset(_LISTS["no_adverbs"].split())
_ADJECTIVE = re.compile(
    r"(?:[aeiourn]al|ic|ive|ous|ful|ary|less|[^tri]able|ible|ient|[lne]ar|quate|[lp]evant"
    r"|valent|ferent|quent|ficient|pendent|sist[ea]nt"
    r"|-\w+(?:[ea]nt|ed|free|like))$"
)
NO_ADJECTIVES = frozenset(_LISTS["no_adjectives"].split())
_NEVER_NOUN = re.compile(r"(?:ous|ful|ible|ical|[^tri]able|less)$")
_AFTER_PLURAL = re.compile(r"(?:[^m]ent|tant|ial|spread|specific)$")
_VERB_ENDING = re.compile(r"\w{2}(?:[^rc]is|iz|[^aeiou]if|lys|lyz)(?:e|es|y|ies)$")
_NO_VERB_ENDINGS = _to_set("noise noises size sizes prize prizes franchise premise premises")
_NOUN_ENDING = re.compile(r"(?:[st]ion|ity|ness|ment|ance|ence|ogy|phy|ism|sis|itis)$")
_PLURAL = re.compile(r"\w{2}(?:[^suic'’]|[^i]c)s$")
_UNIT = re.compile(r"\w{1,2}$|[a-zA-Zµμ][A-Z][a-z]?$|[kMG][a-z]+[A-Z]?$|\w+/")
_NUMERAL = re.compile(r"\d{1,2}(?:/\d+)?$|i$")
_BREAK = re.compile(r"[:;?.–—]")


@dataclass(slots=True)
class _Clause:
    """What has been read of a clause: whether its verb may come now, and has come."""

    asks: str = ""  # what opened it, a key of `_OPENINGS`
    has_subject: bool = False
    has_verb: bool = False
    outer: "_Clause | None" = None  # the clause that still waits for its verb

    def expects_verb(self) -> bool:
        return self.has_subject and not self.has_verb and self.asks not in ("", "have")


@dataclass(slots=True)
class _Reader:
    """The words of a question, the clause that is read, and whether the last word was in a name."""

    question: str
    tokens: list[str]
    words: list[str]  # the same in lower case
    gaps: list[str]  # what stands between a word and the one before it; nothing at both ends
    clause: _Clause = field(default_factory=_Clause)
    in_name: bool = False

    def word(self, place: int) -> str:
        """Return a word in lower case; nothing beyond the ends."""
        return self.words[place] if 0 <= place < len(self.words) else ""

    def before(self, place: int) -> str:
        """Return the word before, unless a sign stands between."""
        return "" if place < 1 or self.gaps[place] else self.words[place - 1]

    def after(self, place: int) -> str:
        """Return the word after, unless a sign stands between."""
        return "" if self.gaps[place + 1] else self.word(place + 1)

    def places_after(self, place: int) -> range:
        """Return the places of the next words, as many as a clause has at most."""
        return range(place + 1, min(place + LONGEST_CLAUSE, len(self.words)))


def list_phrases(question: str) -> list[tuple[str, ...]]:
    """List the noun phrases of a question as tuples of words, in text order."""
    found = list(_WORD.finditer(question))
    gaps = [question[one.end() : other.start()].strip() for one, other in pairwise(found)]
    tokens = [token.group() for token in found]
    reader = _Reader(question, tokens, [one.lower() for one in tokens], ["", *gaps, ""])
    phrases: list[tuple[str, ...]] = []
    run: list[int] = []
    clause = ""
    for place in range(len(tokens)):
        within = _is_in_name(reader, place)
        if run and (not within or reader.gaps[place]):
            phrases.append(_cut(reader, run, clause))
            run = []
        if within:
            clause = clause if run else reader.clause.asks
            run.append(place)
    return [phrase for phrase in (*phrases, _cut(reader, run, clause)) if phrase]


def _cut(reader: _Reader, run: list[int], clause: str) -> tuple[str, ...]:
    """Return a run of words without adjectives at its end."""
    kept = list(run)
    while kept and _ends_in_adjective([reader.words[place] for place in kept], clause):
        kept.pop()
    return tuple(reader.tokens[place] for place in kept)


def _ends_in_adjective(words: list[str], clause: str) -> bool:
    """Whether the last word is an adjective: always, or after a plural or "is"."""
    last = words[-1]
    if _NEVER_NOUN.search(last):
        return last not in NO_ADJECTIVES
    if len(words) < 2 or not (_is_plural(words[-2]) or clause == "be"):
        return False
    return is_adjective(last) or (clause != "be" and bool(_AFTER_PLURAL.search(last)))


def _is_plural(word: str) -> bool:
    """Whether a word may be the plural of a noun."""
    return bool(_PLURAL.search(word))


def is_adjective(word: str) -> bool:
    """Whether a word ends as adjectives do."""
    return bool(_ADJECTIVE.search(word)) and word not in NO_ADJECTIVES


def _is_in_name(reader: _Reader, place: int) -> bool:
    """Read a word, and say whether it is part of a name."""
    if _BREAK.search(reader.gaps[place]):
        reader.clause, reader.in_name = _Clause(), False
    opened = _find_opening(reader.words[place])
    if opened and not (opened == "have" and reader.clause.asks == "do"):
        reader.clause = _open_clause(reader, opened, place)
        reader.in_name = False
    elif _is_numeral(reader, place):
        return True
    elif _is_outside(reader, place):
        _read_particle(reader, place)
    elif not _is_name_like(reader.tokens[place]) and _is_verb(reader, place):
        _read_verb(reader, place)
    else:
        reader.in_name = reader.clause.has_subject = True
    return reader.in_name


def _is_outside(reader: _Reader, place: int) -> bool:
    """Whether a word is part of no name and no verb: a particle, a unit, a degree."""
    if _is_unit(reader, place):
        return True
    if _is_name_like(reader.tokens[place]):
        return False
    return _is_particle(reader.words[place]) or _is_degree_of_how(reader, place)


def _open_clause(reader: _Reader, asks: str, place: int) -> _Clause:
    """Return the clause that a word opens, or the one around it that waits for its verb."""
    clause = reader.clause
    if asks in ("be", "have"):
        return clause.outer or _Clause(asks, has_subject=True, has_verb=asks == "be")
    waits = clause.asks == "do" and clause.expects_verb() and asks == "relative"
    follows = clause.asks != "relative" and (reader.in_name or reader.before(place) in _PRONOUNS)
    subject = asks == "relative" or (asks == "do" and follows)
    return _Clause(asks, has_subject=subject, outer=clause if waits else None)


def _find_opening(word: str) -> str:
    return _OPENED_BY.get(word, "")


def _is_numeral(reader: _Reader, place: int) -> bool:
    """Whether a short number belongs to the name before it, as in "type 2 diabetes"."""
    if not (reader.in_name and _NUMERAL.match(reader.words[place])) or reader.gaps[place]:
        return False
    return not reader.word(place + 1)[:1].isdigit() and not _is_unit(reader, place + 1)


def _is_unit(reader: _Reader, place: int) -> bool:
    """Whether a word is the unit of the number before it."""
    if not _is_number(reader.word(place - 1)) or reader.gaps[place] not in ("", "°"):
        return False
    return bool(_UNIT.match(reader.tokens[place])) if place < len(reader.tokens) else False


def _is_number(word: str) -> bool:
    return word[:1].isdigit() and not any(letter.isalpha() for letter in word)


def _is_degree_of_how(reader: _Reader, place: int) -> bool:
    after = reader.after(place)
    return reader.before(place) == "how" and (after in _ASKS or after in _ARTICLES)


def _is_particle(word: str) -> bool:
    return word in _PARTICLES or word[0].isdigit() or _is_degree(word)


def _read_particle(reader: _Reader, place: int) -> None:
    word, clause = reader.words[place], reader.clause
    clause.has_subject |= word in _PRONOUNS
    is_verb = word in _HAVE or (word == "lower" and reader.in_name)
    clause.has_verb |= clause.asks == "do" and is_verb
    reader.in_name = False


def _read_verb(reader: _Reader, place: int) -> None:
    word = reader.words[place]
    reader.clause.has_verb |= not _is_participle(reader, place)
    if reader.clause.has_verb and reader.clause.outer:
        reader.clause = reader.clause.outer
    if word in _MAKE:
        reader.clause = _Clause("do", has_subject=True)
    reader.in_name = False


def _is_participle(reader: _Reader, place: int) -> bool:
    """Whether a verb only says more about a noun, as in "drugs given before surgery"."""
    word = reader.words[place]
    if reader.before(place) in _RELATIVE or reader.after(place) in _OBJECTS:
        return word.endswith("ing")
    return word in _PARTICIPLES or word.endswith(("ed", "ing"))


def _is_verb(reader: _Reader, place: int) -> bool:
    word, before = reader.words[place], reader.before(place)
    if before in _PRONOUNS:
        return True
    if before == "to" and reader.before(place - 1) not in _BEFORE_TO:
        return _may_be_verb(word)
    if word in _PARTICIPLES or _is_past(word):
        follows_noun = reader.in_name and "-" not in word + before and not is_adjective(before)
        return follows_noun or _is_closed(reader, place)
    if word.endswith("ing") and len(word) > 5:
        return _is_verb_in_ing(reader, place)
    return _is_plain_verb(reader, place)


def _may_be_verb(word: str) -> bool:
    return word in _VERBS or word in _NOUNS_OR_VERBS or _ends_as_verb(word)


def _ends_as_verb(word: str) -> bool:
    return bool(_VERB_ENDING.match(word)) and word not in _NO_VERB_ENDINGS


def _is_past(word: str) -> bool:
    return word.endswith("ed") and len(word) > 4 and word not in _NO_PARTICIPLES


def _is_closed(reader: _Reader, place: int) -> bool:
    after = reader.after(place)
    return not after or _is_particle(after)


def _is_verb_in_ing(reader: _Reader, place: int) -> bool:
    word, before, after = reader.words[place], reader.before(place), reader.after(place)
    if after in _ARTICLES:
        return True
    if before in _BEFORE_GERUND and not _is_past(reader.before(place - 1)):
        return _is_gerund(word) or not _is_closed(reader, place)
    if not _is_gerund(word):
        return False
    if reader.in_name:
        return _is_plural(before) and not _is_closed(reader, place)
    return before not in _ARTICLES


def _is_plain_verb(reader: _Reader, place: int) -> bool:
    clause, before = reader.clause, reader.before(place)
    if before in ("and", "or") and reader.words[place] in _BASE_FORMS:
        return reader.after(place) in _OBJECTS
    if clause.has_verb or before.endswith(("'s", "’s")) or is_adjective(before):
        return False
    if clause.asks == "do":
        return clause.has_subject and _is_infinitive(reader, place)
    return _is_finite(reader, place)


def _is_infinitive(reader: _Reader, place: int) -> bool:
    """Whether the verb that a question with "does" needs is here."""
    word = reader.words[place]
    if not reader.in_name and reader.before(place) in _CLOSED:
        return False
    if word in _BASE_FORMS or (_ends_as_verb(word) and not word.endswith("s")):
        return True
    clear = _BASE_FORMS if word in _MAINLY_VERBS else _CLEAR_VERBS
    if _is_plural(word) or _has_verb_later(reader, place, clear):
        return False
    if word in _NOUNS_OR_VERBS:
        return reader.in_name or reader.before(place) not in _MAKE
    return reader.in_name and _must_be_verb(reader, place)


def _is_finite(reader: _Reader, place: int) -> bool:
    """Whether the verb of a statement, or of a clause after "which" or "when", is here."""
    word, before = reader.words[place], reader.before(place)
    opens = reader.clause.asks == "relative" and before in _RELATIVE
    if _has_question_later(reader, place) or (before in _CLOSED and not opens):
        return False
    if not (reader.in_name or opens) or _is_noun_before_verb(reader, place, opens):
        return False
    if word in _VERBS or _ends_as_verb(word):
        return True
    if not reader.clause.expects_verb():
        return word in _NOUNS_OR_VERBS and _states(reader, place)
    if word in _NOUNS_OR_VERBS:
        return word.endswith("s") or _is_plural(before) or not reader.after(place)
    return reader.in_name and _must_be_verb(reader, place)


def _states(reader: _Reader, place: int) -> bool:
    """Whether a noun or verb is the verb of a statement, which agrees with the noun before."""
    word, after = reader.words[place], reader.after(place)
    if "?" in reader.question or (_is_closed(reader, place) and after not in _OBJECTS):
        return False
    return _is_plural(reader.before(place)) != bool(re.search(r"[^s]s$", word))


def _is_noun_before_verb(reader: _Reader, place: int, opens: bool) -> bool:
    """Whether a clear verb comes later that agrees with the word as its subject."""
    if reader.words[place].endswith("s"):
        return not opens and _has_verb_later(reader, place, _BASE_FORMS)
    return _has_verb_later(reader, place, _THIRD_PERSONS)


def _has_verb_later(reader: _Reader, place: int, verbs: frozenset[str]) -> bool:
    """Whether the same clause has one of these verbs later, or a word that only a verb can be."""
    for later in reader.places_after(place):
        word = reader.words[later]
        clear = word in verbs or (word in _NOUNS_OR_VERBS and reader.after(later) in _OBJECTS)
        if clear and reader.before(later) not in _NO_VERB_AFTER:
            return True
        if _BREAK.search(reader.gaps[later]) or _find_opening(word):
            return word in _HAVE and reader.clause.asks == "do"
    return False


def _has_question_later(reader: _Reader, place: int) -> bool:
    """Whether "does" or "is" follows in the same clause, so that it has no verb before."""
    for later in reader.places_after(place):
        word = reader.words[later]
        if word in _ASKS:
            return reader.clause.asks == "relative"
        if _BREAK.search(reader.gaps[later]) or _find_opening(word):
            return False
    return False


def _must_be_verb(reader: _Reader, place: int) -> bool:
    """Whether a word that follows a noun can be none: a plural, or an object, stands beside it."""
    word = reader.words[place]
    if _NOUN_ENDING.search(word) or "-" in word:
        return False
    return (
        _is_plural(reader.before(place)) and not _is_plural(word) and not is_adjective(word)
    ) or reader.after(place) in _OBJECTS


def _is_gerund(word: str) -> bool:
    root = word.removesuffix("ing")
    return root in _VERBS or f"{root}e" in _VERBS


def _is_degree(word: str) -> bool:
    return bool(_DEGREE.match(word)) and word not in _NO_ADVERBS


def _is_name_like(token: str) -> bool:
    """Whether a word has a capital within, or letters and digits."""
    if token[1:] != token[1:].lower():
        return True
    return not token.isalpha() and (any(map(str.isdigit, token)) and any(map(str.isalpha, token)))
