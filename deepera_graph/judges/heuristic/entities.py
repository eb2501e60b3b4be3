"""Entities that a question names: its noun phrases, with the kind of thing each is."""

import re
from collections.abc import Sequence
from functools import lru_cache

from deepera_graph.judges.heuristic.phrases import NO_ADJECTIVES, is_adjective, list_phrases
from deepera_graph.judges.heuristic.topicality import WORD_LISTS, is_listed
from deepera_graph.text.terms import rarity
from deepera_graph.text.words import STOP_WORDS, stem, words

MOST_ENTITIES = 4
LONGEST_ENTITY = 80
UNKNOWN_KIND = "concept"
RARE = 0.9
_WORD = re.compile(r"[^\W_]+(?:[-‐‑–/'’.+][^\W_]+)*%?")
_LISTS = WORD_LISTS["names"]
_GENERAL = frozenset(_LISTS["general"].split())
_VAGUE = frozenset(_LISTS["vague"].split())
_ASKED = frozenset(_LISTS["asked"].split())
_LONE_ADJECTIVE = re.compile(r"(?:ous|ful|ible|able|less|ic|[inr]al|ive|ient|equent|ary|ish|est)$")
_NOUN = re.compile(
    r"(?:[st]ion|ity|ness|ment|ance|ence|ancy|ency|ure|age|ism|[sx]is|tis|er|or|ist|cy|gy|phy|ium"
    r"|ide|ine|ene|ase|ose|oid|um|us)s?$"
)


def find_entities(question: str) -> list[str]:
    """List up to four entities as ``kind: name``, the longest names first chosen, in text order.

    A name is a noun phrase in the question's own words. Without one its last content word stands
    for it, or the question itself.
    """
    names = list_names(question) or _last_content_word(question)
    chosen = sorted(names, key=len, reverse=True)[:MOST_ENTITIES]
    found = [name for name in names if name in chosen] or [" ".join(question.split())]
    return [f"{guess_kind(name)}: {name[:LONGEST_ENTITY]}" for name in found]


def list_names(question: str) -> list[str]:
    """List the names in a question, each ending with another word, in text order."""
    names: dict[str, str] = {}
    for phrase in list_phrases(question):
        name = _to_name(phrase)
        if _is_telling(name):
            names.setdefault(name.split()[-1].lower(), name)
    return list(names.values())


def _to_name(phrase: Sequence[str]) -> str:
    """Return a phrase without the end that any question may give one: "heat stress effects"."""
    kept = list(phrase)
    while kept and _says_little(kept):
        kept.pop()
        if kept and _is_modifier(kept[-1]):
            return ""
    return re.sub(r"['’]s?$", "", " ".join(kept))


def _says_little(phrase: Sequence[str]) -> bool:
    """Whether the last word of a phrase adds nothing to those before it."""
    last = phrase[-1].lower()
    if last in _VAGUE:
        return len(phrase) < 2 or is_adjective(phrase[-2].lower())
    return last in _ASKED or (last in _GENERAL and len(phrase) < 2)


def _is_modifier(word: str) -> bool:
    return "-" in word or word.endswith("ed") or is_adjective(word.lower())


def _is_telling(name: str) -> bool:
    """Whether a name says something: no letter alone, nor a lone word that may be no noun."""
    if len(name) < 2:
        return False
    if " " in name or not name.islower() or "-" in name:
        return True
    if guess_kind(name) != UNKNOWN_KIND:
        return True
    if _LONE_ADJECTIVE.search(name) and name not in NO_ADJECTIVES:
        return False
    plain = words(name)[-1:]
    return any(_NOUN.search(w) or is_listed(w) or rarity(stem(w)) > RARE for w in plain)


def _last_content_word(question: str) -> list[str]:
    found = [word for word in _WORD.findall(question) if word.lower() not in STOP_WORDS]
    return found[-1:]


@lru_cache(maxsize=65_536)
def guess_kind(name: str) -> str:
    """Say what kind of thing a name names, by its last word; `UNKNOWN_KIND` if none fits.

    A number at the end is passed over: "grade 4" is of the kind of "grade".
    """
    last = "".join(re.sub(r"\s\d\S*$", "", name).split()[-1:])
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
        ("procedure", r"surg(?!es?$)|ectomy|plasty|otomy|scopy$|screening|therap|transplant|graft"
                      r"|biops|intervention|program|treatment|vaccin|training|imaging|tomograph"
                      r"|replacement|exercise|counsel|supplement", True),
        ("disease", r"itis$|(?<!gn|rc|yt|ym|at|ph|mb)osis$|[^rcg]omas?$|emia$|disease|syndrome"
                    r"|cancer|disorder|tumou?r|diabetes|asthma|stroke|infection|injur|pathy$"
                    r"|depression|hypertension|obesity|failure|dementia|epilepsy|fractures?$"
                    r"|deficiency|delirium|phobia|ulcers?$", True),
        ("drug", r"(?:mab|statin|april|opril|olol|cillin|mycin|azole|ciclovir|oxetine|azepam"
                 r"|sartan|tidine|profen|oxicam)s?$|^drugs?$|aspirin|insulin|antibiotic|metformin"
                 r"|melatonin|placebo|opioid|steroid|ketamine|vancomycin|ibuprofen", True),
        ("gene or protein", r"^(?![CNS]O[2x])[A-Za-z]?[a-z]?[A-Z]{2,}[0-9]+[A-Za-z]?$|^p\d\d$"
                            r"|protein|^genes?$|receptor|kinase|enzyme|antigen|antibod|alleles?$"
                            r"|[a-z]{3}(?<!rele)(?<!dise)(?<!cre)(?<!atab)(?<!urch)ase$"
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
        ("earth system", r"climate|glacier|^ice\b|^oceans?$|^seas?$|soils?$|^rivers?$|forest"
                         r"|(?<![bt])rain|volcan|earthquake|sediment|atmospher|monsoon|permafrost|lakes?$"
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
                     r"|velocity|frequency|amplitude|resolution|content|index|income|^wages?$"
                     r"|elongation|viscosity|attenuation|power|risk|odds|duration|latency", True),
        ("process", r"(?:ation|ition|sion|ction|ysis|ption|[a-z]{3}ing|growth|decay|transport)$",
         True),
    )
)  # fmt: skip
