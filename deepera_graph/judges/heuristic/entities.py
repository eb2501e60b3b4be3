"""What a question names: its noun phrases, by short word lists, with the kind of thing each is."""

import re
from collections.abc import Iterator, Sequence

from deepera_graph.judges.heuristic.topicality import WORD_LISTS, is_listed, rarity
from deepera_graph.text.words import STOP_WORDS, stem, words

MOST_ENTITIES = 4
LONGEST_ENTITY = 80
UNKNOWN_KIND = "concept"
RARE = 0.9
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
_WORD = re.compile(r"[^\W_]+(?:[-‐‑–/'’.+][^\W_]+)*%?")


def _to_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_LISTS = WORD_LISTS["names"]
_PARTICLES = frozenset(_LISTS["function"].split()) | STOP_WORDS
_GENERAL = frozenset(_LISTS["general"].split())
_PARTICIPLES = frozenset(_LISTS["participles"].split())
_UNITS = frozenset(["mg", "g", "kg", "ml", "mm", "cm", "nm", "μg", "µg"])
_NO_PARTICIPLES = frozenset(_LISTS["no_participles"].split())
_ARTICLES = _to_set(
    "a an the this that these those their its his her our your no every each any all some"
)
_CLOSED = _ARTICLES | _to_set(
    "of in on at by for with from into onto between among without through over under after before"
    " during per than"
)
_HAVE = _to_set("has have had")
_DO = _to_set("do does did can could will would should may might must")
_BE = _to_set("is are was were has have had")
_RELATIVE = _to_set("which what who that")
_CONJUNCTIONS = _to_set("when where if because once while whether unless although")
_DEGREE = re.compile(rf"(?:{COMPARATIVE}|{SUPERLATIVE}|\w{{3,}}ly)$")
_NO_ADVERBS = _to_set(
    "family anomaly assembly supply butterfly monopoly nightly daily weekly monthly yearly elderly"
)
_ADJECTIVE = re.compile(r"(?:ous|ful|ible|ical|[^tri]able|less)$")
_LONE_ADJECTIVE = re.compile(r"(?:ous|ful|ible|able|less|ic|ical|ive|ient|equent|ary|ish|est)$")
_NOUN = re.compile(
    r"(?:[st]ion|ity|ness|ment|ance|ence|ancy|ency|ure|age|ism|[sx]is|tis|er|or|ist|cy|gy|phy|ium"
    r"|ide|ine|ene|ase|ose|oid|um|us)s?$"
)


def _inflect(verb: str) -> Iterator[str]:
    yield verb
    if verb.endswith("y") and verb[-2] not in "aeiou":
        yield f"{verb[:-1]}ies"
    else:
        yield verb + ("es" if verb.endswith(("s", "sh", "ch", "x", "z", "o")) else "s")


_BASE_FORMS = frozenset(_LISTS["verbs"].split())
_VERBS = frozenset(form for verb in _LISTS["verbs"].split() for form in _inflect(verb))
_NOUNS_OR_VERBS = frozenset(form for verb in _LISTS["both"].split() for form in _inflect(verb))


def find_entities(question: str) -> list[str]:
    """List up to four entities as ``kind: name``, the longest names first chosen, in text order.

    A name is a noun phrase in the question's own words. Without one its last content word stands
    for it, or the question itself.
    """
    names = list_names(question) or _last_content_word(question)
    chosen = sorted(names, key=len, reverse=True)[:MOST_ENTITIES]
    found = [name for name in names if name in chosen] or [" ".join(question.split())]
    return [f"{guess_kind(name)}: {name[:LONGEST_ENTITY]}" for name in found]


def _last_content_word(question: str) -> list[str]:
    found = [token for token in _WORD.findall(question) if token.lower() not in STOP_WORDS]
    return found[-1:]


def list_names(question: str) -> list[str]:
    """List the noun phrases of a question, each ending with another word, in text order."""
    names: dict[str, str] = {}
    tokens = list(_WORD.finditer(question))
    run: list[re.Match[str]] = []
    for token, within in zip(tokens, _are_in_names(question, tokens), strict=True):
        if run and (not within or _is_apart(question, run[-1], token)):
            _add_name(names, question, run)
            run = []
        if within:
            run.append(token)
    _add_name(names, question, run)
    return list(names.values())


def _add_name(names: dict[str, str], question: str, run: list[re.Match[str]]) -> None:
    while run and _ADJECTIVE.search(run[-1].group()):
        run = run[:-1]
    while run and run[0].group().lower() in _UNITS:
        run = run[1:]
    if run:
        name = " ".join(question[run[0].start() : run[-1].end()].split())
        name = re.sub(r"['’]s?$", "", name)
        if _is_telling(name):
            names.setdefault(name.split()[-1].lower(), name)


def _is_telling(name: str) -> bool:
    """Whether a name says something: no general word, nor a lone word that may be no noun."""
    last = name.rsplit(maxsplit=1)[-1]
    if last.lower() in _GENERAL or len(name) < 2:
        return False
    if " " in name or not last.islower() or "-" in last:
        return True
    if guess_kind(last) != UNKNOWN_KIND:
        return True
    if _LONE_ADJECTIVE.search(last):
        return False
    plain = words(last)[-1:]
    return any(_NOUN.search(w) or is_listed(w) or rarity(stem(w)) > RARE for w in plain)


def _is_apart(question: str, left: re.Match[str], right: re.Match[str]) -> bool:
    return bool(question[left.end() : right.start()].strip())


class _Clause:
    """What has been read of a clause: whether its verb may come now, and has come."""

    def __init__(self) -> None:
        self.asks = ""  # what opened it: "do", "have", "relative" or "conjunction"
        self.has_subject = False
        self.has_verb = False

    def open(self, asks: str) -> None:
        self.asks, self.has_subject, self.has_verb = asks, asks == "relative", False

    def may_end_with(self, word: str, follows_noun: bool) -> bool:
        """Whether a noun or verb is the verb here."""
        if self.has_verb or self.asks in ("", "have"):
            return False
        if self.asks == "do":
            return self.has_subject and not (word.endswith("s") and word not in _VERBS)
        return follows_noun or (self.asks == "relative" and self.has_subject)


_OPENINGS = {"do": _DO, "relative": _RELATIVE, "conjunction": _CONJUNCTIONS}


def _find_opening(word: str, clause: _Clause) -> str:
    if word in _HAVE:
        return "have" if clause.asks != "do" else ""
    return next((name for name, its in _OPENINGS.items() if word in its), "")


def _are_in_names(question: str, tokens: Sequence[re.Match[str]]) -> Iterator[bool]:
    """Yield for each word whether it may be part of a name."""
    clause, before, in_name = _Clause(), "", False
    for place, token in enumerate(tokens):
        word = token.group().lower()
        if _ends_clause(question, tokens, place):
            clause.open("")
            in_name, before = False, ""
        after = _next_word(question, tokens, place)
        opened = _find_opening(word, clause)
        if opened:
            clause.open(opened)
            in_name = False
        elif _is_name_like(token.group()):
            in_name = clause.has_subject = True
        elif word in _PARTICLES or word[0].isdigit() or _is_degree(word):
            clause.has_verb |= word in _BE or (word == "lower" and in_name and clause.asks == "do")
            in_name = False
        elif _is_verb(word, before, after, in_name, clause):
            clause.has_verb = True
            in_name = False
        else:
            in_name = clause.has_subject = True
        before = word
        yield in_name


def _is_verb(word: str, before: str, after: str, in_name: bool, clause: _Clause) -> bool:
    if before == "to":
        return word in _VERBS or word in _NOUNS_OR_VERBS
    closed = not after or after in _PARTICLES or _is_degree(after)
    if word in _PARTICIPLES:
        return closed or in_name
    if word.endswith("ed") and len(word) > 4 and word not in _NO_PARTICIPLES:
        return closed or (in_name and clause.asks == "have")
    if word.endswith("ing") and len(word) > 5:
        begins = not in_name and _is_gerund(word) and before not in _ARTICLES
        return begins or after in _ARTICLES
    return _is_plain_verb(word, before, after, in_name, clause)


def _is_plain_verb(word: str, before: str, after: str, in_name: bool, clause: _Clause) -> bool:
    if word not in _VERBS:
        due = word in _NOUNS_OR_VERBS and after not in _BASE_FORMS
        return due and clause.may_end_with(word, in_name)
    if clause.asks == "do" and not clause.has_verb:
        return clause.has_subject and word in _BASE_FORMS and (in_name or before not in _CLOSED)
    return in_name or before not in _CLOSED


def _is_gerund(word: str) -> bool:
    root = word.removesuffix("ing")
    return root in _VERBS or f"{root}e" in _VERBS


def _is_degree(word: str) -> bool:
    return bool(_DEGREE.match(word)) and word not in _NO_ADVERBS


def _is_name_like(token: str) -> bool:
    """Whether a word has a capital within, or letters and digits."""
    return token[1:] != token[1:].lower() or (
        any(letter.isdigit() for letter in token) and any(letter.isalpha() for letter in token)
    )


def _ends_clause(question: str, tokens: Sequence[re.Match[str]], place: int) -> bool:
    between = question[tokens[place - 1].end() : tokens[place].start()] if place else ""
    return bool(re.search(r"[:;?.–—]", between))


def _next_word(question: str, tokens: Sequence[re.Match[str]], place: int) -> str:
    if place + 1 == len(tokens) or _is_apart(question, tokens[place], tokens[place + 1]):
        return ""
    return tokens[place + 1].group().lower()


def guess_kind(name: str) -> str:
    """Say what kind of thing a name names, by its last word; `UNKNOWN_KIND` if none fits."""
    last = name.rsplit(maxsplit=1)[-1]
    return next((kind for kind, pattern in _KINDS if pattern.search(last)), UNKNOWN_KIND)


_KINDS = tuple(
    (kind, re.compile(pattern, re.IGNORECASE if fold else 0))
    for kind, pattern, fold in (
        ("cell type", r"^cells?$|cytes?$|blasts?$|neurons?$|macrophage", True),
        ("population", r"^(?:patients?|child(?:ren)?|wom[ae]n|m[ae]n|adults?|adolescents?|infants?"
                       r"|bab(?:y|ies)|newborns?|elderly|people|students?|pupils?|mothers?|girls?"
                       r"|boys?|nurses?|doctors?|physicians?|populations?|workers?|employees?"
                       r"|teachers?|learners?|speakers?|bilinguals?|users?|drivers?|farmers?"
                       r"|customers?|households?|smokers?|volunteers?|participants?|seniors?"
                       r"|elders?|teenagers?|travellers?|citizens?|voters?|migrants?|tenants?"
                       r"|families|athletes?|veterans?|survivors?)$", True),
        ("procedure", r"surg|ectomy|plasty|otomy|scopy$|screening|therap|transplant|graft|biops"
                      r"|intervention|program|treatment|vaccin|training|imaging|tomograph"
                      r"|replacement|exercise|counsel|supplement", True),
        ("disease", r"itis$|(?<!gn|rc|yt|ym|at|ph|mb)osis$|[^rcg]omas?$|emia$|disease|syndrome"
                    r"|cancer|disorder|tumou?r|diabetes|asthma|stroke|infection|injur|pathy$"
                    r"|depression|hypertension|obesity|failure|dementia|epilepsy|fractures?$"
                    r"|deficiency|delirium|phobia|ulcers?$", True),
        ("drug", r"(?:mab|statin|april|opril|olol|cillin|mycin|azole|ciclovir|oxetine|azepam"
                 r"|sartan|tidine|profen|oxicam)s?$|^drugs?$|aspirin|insulin|antibiotic|metformin"
                 r"|melatonin|placebo|opioid|steroid|ketamine|vancomycin|ibuprofen", True),
        ("gene or protein", r"^(?![CNS]O[2x])[A-Za-z]?[a-z]?[A-Z]{2,}[0-9]+[A-Za-z]?$|^p\d\d$"
                            r"|protein|^genes?$|receptor|kinase|enzyme|antigen|antibod|[a-z]{3}ase$|alleles?$"
                            r"|RNAs?$", False),
        ("species", r"^(?:species|mice|mouse|rats?|trees?|birds?|insects?|fish|corals?|yeast|bees?"
                    r"|moths?|dogs?|cats?|horses?|cows?|cattle|calves|pigs?|sheep|chickens?"
                    r"|broilers?|foxes|wol[fv]\w*|salmon|trout|spiders?|mosquito\w*|aphids?|frogs?"
                    r"|plants?|grass\w*|oaks?|urchins?|whales?|bats?|lynx|hens|zebrafish)$"
                    r"|bacteri|virus\w*$|fung[iu]|algae|[a-z]{3}phytes?$", True),
        ("crop or food", r"^(?:wheat|maize|rice|barley|rye|soybeans?|potato\w*|tomato\w*|apples?"
                         r"|grapes?|milk|cheese|bread|wine|beer|coffee|meat|eggs?|crops?|mulch"
                         r"|vetch|landraces?|cultivars?|juice|guacamole|pur[ée]e|flour)$", True),
        ("celestial object", r"^stars?$|galax|planet|comet|asteroid|nova|^moons?$|dwarfs?$|pulsar"
                             r"|quasar|jupiter|nebula|^sun$|FRBs|black holes?$", True),
        ("earth system", r"climate|glacier|^ice\b|^oceans?$|^seas?$|soils?$|^rivers?$|rain|forest"
                         r"|volcan|earthquake|sediment|atmospher|monsoon|permafrost|lakes?$"
                         r"|reefs?$|wetland|aquifer|ice.?shel", True),
        ("material", r"alloy|steel|ceramic|polymer|electrode|batter(?:y|ies)|graphene|crystal"
                     r"|glass|concrete|membrane|lithium|catalyst|oxide|perovskite|resins?$"
                     r"|coating|fib(?:re|er)|film|laminate|powder|silic|titanium|copper|nickel"
                     r"|epox|ligand|acid|electrolyte|composite|gel$|foam|cement|nylon|cellulose"
                     r"|surfactant|zeolite|nitrate|sulfate|chloride|carbonate", True),
        ("method", r"models?$|algorithm|method|parser|translation|corpus|corpora|classifier"
                   r"|networks?$|tests?$|scales?$|index$|questionnaire|criteria|technique|systems?$"
                   r"|learning|software|sampling|estimat|regression|simulation|assays?$|spectro"
                   r"|randomi[sz]ation|smoothing|transformers?$", True),
        ("quantity", r"rates?$|levels?$|temperature|pressure|concentration|^time$|weight|mortality"
                     r"|survival|incidence|prevalence|size|density|speed|costs?$|energy|yields?$"
                     r"|ratios?$|efficiency|strength|resistance|scores?$|accuracy|error|thickness"
                     r"|angle|length|width|depth|height|radius|volume|capacity|conductivity|prices?$"
                     r"|^age$|percentage|number|intensity|loss|loads?$|friction|stiffness|toughness|mass|dose"
                     r"|velocity|frequency|amplitude|resolution|content|index|income|wages?$"
                     r"|elongation|viscosity|attenuation|power|risk|odds|duration|latency", True),
        ("process", r"(?:ation|ition|sion|ction|ysis|ption|[a-z]{3}ing|growth|decay|transport)$",
         True),
    )
)  # fmt: skip
