"""Words that are signs: up, down, good, bad, a negation, a finding of no difference, a hedge."""

import re
from functools import lru_cache
from typing import Final

_SIGNS: Final = {  # the first that fits; each is a list of beginnings, or of whole words after `=`
    "not": "=not =no =never =neither =nor =none =cannot =without =fail =fails =failed =failing "
    "failure =lack lacks lacked lacking absen =nothing =hardly =little =barely =unlikely =nowhere "
    "=nobody insufficien =unable n't",
    "null": "=similar =similarly similarit comparabl equivalen equal =same indistinguish identical "
    "unchanged unaffected unalter unrelated independen irrespective regardless nonsignifican "
    "insignifican =ns noninferior negligib =alike =flat =constant stable =parity coincid "
    "unassociated uncorrelated nonsuperior =chance =stayed =stay =remained",
    "sig": "significan",
    "than": "=than =versus =vs compared relative comparison against",
    "but": "=but =however =although =though =whereas =while =yet =despite nevertheless nonetheless "
    "=except =unless =instead conversely =albeit contrary contrast unlike",
    "mix": "=only =some =depend =depends depended depending =varied varies vary varying =subgroup "
    "subgroups subset interaction =both partial partly inconsisten mixed heterogene confined "
    "restricted conflicting disagree =half modest transient =otherwise =reversed revers offset",
    "hedge": "=may =might =could suggest possibl =perhaps seem appear potential =likely probabl",
    "worry": "=unclear inconclusive uncertain unknown remains warrant",
    "bad": "worse worst harm poor inferior advers deteriorat detriment toxic damag aggravat "
    "exacerbat unsafe unfavo disadvantag unnecessar useless ineffect inadequate unreliable "
    "unsuccess inaccura overestimat underestimat mislead incorrect limited useles",
    "good": "improv better best benefi effective efficac superior safe success favo advantag "
    "reliab valid accura adequate useful sufficien necessar feasible appropriate helpful help "
    "protect =well robust satisf good excellent alleviat ameliorat reliev resolv rescue restor "
    "recover worthwhile justified suitable important valuable essential required",
    "down": "decreas reduc lower less lesser fewer declin "
    "diminish attenuat suppress inhibit impair "
    "block prevent abolish short smaller smallest =fall falls "
    "fallen =fell =falling drop loss =lose "
    "=loses =lost deficien downregulat =down slow delay weak "
    "blunt lessen limits limit minimi eliminat "
    "remov hinder impede restrain restrict deplet shrink shrank "
    "shrunk =cut =cuts curb halve halved "
    "dampen antagoni disrupt abrogat ablat knockout knockdown knock silenc null-mutant depress low "
    "=thin thinner undercut =shed absent inactivat degrad quench dwindl erod retard mitigat hypo "
    "underrepresent narrow cool cooler =below =under subtract sparse scarce rarer rare "
    "discourag avert avoid interfer lowest negative negatively inverse inversely declines",
    "up": "increas rais rise rises rising =rose risen elevat higher highest greater greatest more "
    "enhanc augment upregulat promot stimulat induc activat gain grow grew exceed longer "
    "larger largest accelerat boost strengthen facilitat expand double doubled tripl amplif "
    "potentiat stronger faster =up =high additional extra excess overrepresent climb widen wider "
    "deepen trigger elicit provok heighten quicker earlier accumulat warmer thicker =above "
    "outperform surpass support stabili maximi intensif hyper multipli swell lengthen prolong "
    "enrich overexpress positive positively quadrupl soar spur encourag foster "
    "produc generat yield creat form speed =sped hasten deeper denser",
    "link": "associat correlat link relat predict affect influenc effect impact differ chang caus "
    "contribut role determin modif alter =drive drives driven =play respons depend matter "
    "modulat regulat mediat lead leads leading result explain account require "
    "involv exist occur detect evidence =show shows shown demonstrat possess contain "
    "express persist allow permit enable =can work works worked match agree confirm",
}  # fmt: skip
BAD_OUTCOME: Final = re.compile(
    r"(?:death|dead|die|mortal|fatal|risk|pain|complicat|relaps|recur|disease|disorder|symptom|"
    r"infect|injur|cancer|tumou?r|carcino|metast|inflam|fail|stroke|infarct|bleed|h(?:a)?emorrh|"
    r"depress|anxi|stress|fatigue|obes|diabet|hypert|hospitali|readmi|adverse|error|"
    r"bias|loss|toxic|damage|delay|mutation|pollut|emission|conflict|crime|poverty|unemploy|"
    r"inequal|deficit|apopto|resist|incidence|sever(?!al)|fracture|seizure|nausea|vomit|drop-?out|cost)"
)
POLAR: Final = {"up": 1, "down": -1, "good": 1, "bad": -1}


@lru_cache(maxsize=32_768)
def sign_of(word: str) -> str:
    """Return the sign a word in lower case is; empty for none."""
    if word.endswith(("n't", "n’t")):
        return "not"
    if word in _WHOLE:
        return _WHOLE[word]
    found = _STARTS.match(word)
    return found.lastgroup or "" if found else ""


_WHOLE: Final = {
    one.removeprefix("="): name
    for name, listed in reversed(_SIGNS.items())
    for one in listed.split()
    if one.startswith("=")
}
_STARTS: Final = re.compile(
    "|".join(
        f"(?P<{name}>{'|'.join(one for one in listed.split() if not one.startswith('='))})"
        for name, listed in _SIGNS.items()
    )
)
