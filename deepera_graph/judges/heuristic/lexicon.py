"""Words and patterns that tell a stated result from aims, methods, background and speculation.

Each cue is a list of word forms, because the form matters: ``increased`` reports, ``to increase``
plans. The lists are general English of science, drawn up by hand.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache

from deepera_graph.text.words import stem

CUE_WORDS: Mapping[str, str] = {
    "report": """
        showed shown revealed demonstrated found observed indicated confirmed detected identified
        yielded exhibited displayed experienced occurred developed reached achieved remained
        accounted ranged obtained resulted led averaged survived died relapsed recurred noted
        reported seen appeared proved turned emerged agreed present documented correctly failed
        outperforms outperformed outperform performs achieves
        """,
    "direction": """
        increased decreased reduced improved declined rose fell grew dropped elevated doubled
        halved worsened enhanced lowered raised increases decreases reduces improves declines
        increasing decreasing increase decrease reduction improvement higher lower greater fewer
        larger smaller longer shorter faster slower better worse more less stronger weaker highest
        lowest younger older earlier later superior inferior similar comparable equal equivalent
        unchanged same gain gains loss most least
        """,
    "relation": """
        associated correlated predicted predictor predictors related independent independently
        correlation correlations association associations likely risk odds ratio ratios hazard
        explained attributable linked contributed dependent affected influenced factor factors
        difference differences differ differed varied
        """,
    "significance": """
        significant significantly nonsignificant insignificant statistically confidence interval
        respectively median mean
        """,
    "mechanism": """
        binds inhibits activates encodes catalyzes catalyses regulates mediates induces blocks
        suppresses phosphorylates converts consists produces transports causes triggers generates
        releases drives bound inhibited activated catalyzed catalysed regulated mediated induced
        blocked suppressed phosphorylated converted produced caused triggered released abolished
        prevented restored required controls prevents requires arises originates contains forms
        formed emits absorbs dissolves melts decays depends determines expressed
        """,
    "contrast": """
        than whereas while but both overall when those compared versus alone among half twice
        there each per unlike instead
        """,
    "negation": "no not none neither nor without never only",
    "aim": """
        aim aims aimed objective objectives purpose purposes goal goals sought investigate examine
        evaluate assess determine explore test whether hypothesis hypotheses hypothesized
        hypothesised hypothesize investigates examines evaluates assesses explores compare question
        questions describe identify clarify intended wished attempted verify ascertain elucidate
        propose proposes present
        """,
    "method": """
        recruited enrolled enrolling randomized randomised randomly assigned allocated
        questionnaire questionnaires interview interviews interviewed survey surveys surveyed
        measured collected performed conducted retrospective retrospectively prospective
        prospectively consecutive regression analyzed analysed eligible eligibility criteria
        included excluded database databases cohort design trial underwent reviewed records
        participants stratified calculated defined scale scales assessed evaluated compared
        examined investigated tested used using undergoing completed administered selected sample
        sampled followed monitored recorded determined estimated categorized categorised
        classified divided treated invited obtained staged carried applied asked placebo
        simulated solved derived trained annotated sampling
        """,
    "background": """
        is are been remains unclear unknown known controversial controversy debate debated common
        commonly recently recent increasingly previous previously literature little few important
        often widely considered believed thought recommended however although because has have
        become becoming major growing interest attention traditional traditionally frequently
        generally usually well established evidence studies lack
        """,
    "speculation": """
        may might could possibly perhaps potentially potential future further should would needed
        warranted speculate hypothesize suggest suggests suggesting suggested possible probably
        presumably seems appears need conclude concluded conclusion
        """,
    "inference": """
        therefore thus hence consequently accordingly shows show demonstrates demonstrate indicates
        indicate reveals reveal find conclude proves prove proof confirms confirm implies explains
        explain here
        """,
}
CUE_NAMES = (*CUE_WORDS, "statistic", "percentage", "figure", "intention", "passive", "active")

# Alternatives begin with a letter and look back from there for the beginning of the word: a search
# skips all other letters then, and is several times as fast as with `\b` first.
_P_VALUE = r"\s?(?:[-‐]?values?)?\s?(?:[<>=≤≥]|&lt;|&gt;)"
_PLANNED = (
    r"(?i:o (?:investigate|examine|evaluate|assess|determine|explore|test|compare|describe|identify"
    r"|clarify|study|establish|analy[sz]e|ascertain|verify|report|review|estimate|measure|find)\b)"
)
_WANTED = r"(?i:e (?:hypothesi[sz]ed?|aim|sought|wanted)\b)"
_STATISTIC = re.compile(
    rf"p(?<!\wp){_P_VALUE}|P(?<!\wP){_P_VALUE}"
    r"|C(?<!\wC)I\b|O(?<!\wO)R\b|R(?<!\wR)R\b|H(?<!\wH)R\b|S(?<!\wS)(?:D|EM)\b|a(?<!\wa)OR\b"
    r"|I(?<!\wI)QR\b|A(?<!\wA)UC\b|B(?<!\wB)LEU\b|F(?<!\wF)1\b"
    r"|o(?<!\wo)dds ratio|h(?<!\wh)azard ratio|r(?<!\wr)(?:elative risk|\s?=\s?-?\.?\d)"
    r"|±|\+/-|v(?<!\wv)(?:ersus\b|s?\b\.?)"
)
_PERCENTAGE = re.compile(r"\d\s?(?:%|percent|per cent)")
_FIGURE = re.compile(r"\d+(?:[.,·]\d+)*")
_INTENTION = re.compile(
    rf"t(?<!\wt){_PLANNED}|T(?<!\wT){_PLANNED}|w(?<!\ww){_WANTED}|W(?<!\wW){_WANTED}|\?"
)
_PASSIVE = re.compile(r"\b(?:was|were|been|be|being|are|is) (?:\w+ly |then |also )?\w{2,}ed\b")
_ACTIVE = re.compile(
    r"\b[Ww]e (?:\w+ly |then |also )?(?!show|f[io]u?nd|observ|demonstrat|detect|conclu|identif"
    r"|reveal|confirm|infer|report|saw|see)\w+"
)
PATTERNS = {
    "statistic": _STATISTIC,
    "percentage": _PERCENTAGE,
    "figure": _FIGURE,
    "intention": _INTENTION,
    "passive": _PASSIVE,
    "active": _ACTIVE,
}
_WORD_SETS = {name: frozenset(text.split()) for name, text in CUE_WORDS.items()}


def words_of_cue(name: str) -> frozenset[str]:
    """Return the word forms of a cue."""
    return _WORD_SETS[name]


def count_cues(text: str, words: Iterable[str]) -> list[int]:
    """Count each cue in one sentence.

    Args:
        text: The sentence.
        words: Its words in lower case.

    Returns:
        Counts in the order of `CUE_NAMES`, each >= 0.
    """
    counts = [0] * len(CUE_WORDS)
    for word in words:
        for place in _PLACES.get(word, ()):
            counts[place] += 1
    counts.extend(len(pattern.findall(text)) for pattern in PATTERNS.values())
    return counts


def _places() -> dict[str, tuple[int, ...]]:
    places: dict[str, tuple[int, ...]] = {}
    for place, forms in enumerate(_WORD_SETS.values()):
        for word in forms:
            places[word] = (*places.get(word, ()), place)
    return places


_PLACES = _places()

_GENERAL = """
    effect affect influence impact role relation relationship association difference compare
    comparison study evidence result finding question increase decrease change improve reduce
    cause lead use useful value good better best important possible necessary really still
    determine depend mean kind type happen work show
    """
_STEMS = frozenset(stem(word) for word in _GENERAL.split())


def is_general(word: str) -> bool:
    """Whether a word is a number or common in questions of any science."""
    return word[0].isdigit() or stem(word) in _STEMS


_RULES = tuple(
    (re.compile(pattern, re.IGNORECASE), weight)
    for pattern, weight in (
        (r"result|finding|outcomes?$", 0.5),
        (r"conclu|discussion|abstract$|summary", 0.0),
        (r"method|material|design|procedure|participants|statistical|setting|protocol", -1.5),
        (r"background|introduction|objective|\baims?\b|purpose|related work|rationale", -1.5),
        (r"reference|acknowledg|competing|contribution|abbreviation|funding|supporting", -3.0),
    )
)


def section_weight(section: str) -> float:
    """Log odds that a section label adds to evidence; 0 for none or one that says nothing.

    Source:
        Set by hand.
    """
    last = section.rsplit(".", maxsplit=1)[-1]
    return next((weight for pattern, weight in _RULES if pattern.search(last)), 0.0)


_GROUPS = """
heart cardiac cardiovascular
kidney renal
liver hepatic
lung pulmonary
brain cerebral
stomach gastric
cancer carcinoma tumor malignancy neoplasm
child pediatric
elderly old geriatric
birth delivery
pregnancy gestation antenatal prenatal
drug medication
doctor physician
surgery operation
death mortality survival
woman female
man male
obesity bmi
smoking smoker tobacco cigarette
skin cutaneous
infant neonate newborn
glucose glycemia
therapy treatment
illness disease
student undergraduate
sun solar
star stellar
moon lunar
heat thermal
sea ocean marine
water aquatic
speed velocity
earthquake seismic
volcano volcanic eruption
"""


def same_meaning(key: str) -> str:
    """Return the stem that stands for all stems of a meaning; other stems stand for themselves."""
    return _HEADS.get(key, key)


def _heads() -> Mapping[str, str]:
    heads: dict[str, str] = {}
    for group in _GROUPS.strip().splitlines():
        names = group.split()
        heads.update((stem(name), stem(names[0])) for name in names)
    return heads


_HEADS = _heads()

TOPICS: Mapping[str, str] = {
    "medicine": """
        patient clinic hospital disease therap surger surgic syndrome cancer tumor tumour carcinoma
        diabet asthma stroke cardi hypertens infect vaccin symptom diagnos prognos mortal pregnan
        obes treat drug dose trial pain nurse nursing physician doctor care health screening prosta
        breast renal hepat pulmon chemotherap radiotherap laparoscop postoperat preoperat women men
        children infant neonat elderly adolescen smok alcohol depress anxiety dement -itis -ectomy
        -plasty -scopy -otomy -oma -emia -pathy -therapy -graphy -osis
        """,
    "molecular biology": """
        gene genetic genom dna rna mrna protein enzyme receptor kinase transcription mutation
        mutant mutated phosphorylat chromatin crispr promoter peptide ligand signaling signalling
        pathway plasmid histone epigen ribosom
        """,
    "cell biology": """
        cell apopto mitochond lysosom cytoskelet mitosis membrane organelle stem autophag
        macrophage lymphocyte neutrophil neuron fibroblast
        """,
    "neuroscience": """
        brain neural neuro cortex cortical hippocamp synap dopamin seroton axon cognit memory eeg
        """,
    "microbiology": """
        bacteri virus viral fungal fungus microb antibiotic pathogen plasmid biofilm yeast phage
        """,
    "ecology": """
        species ecosystem habitat forest biodivers predator prey pollinat soil plant tree bird
        insect coral reef fish bee grazing invasive seagrass wetland
        """,
    "earth science": """
        climate glacier ice sea ocean sediment volcan magma earthquake fault mantle atmosphere
        rainfall drought monsoon aerosol geolog rock mineral groundwater permafrost basin
        """,
    "astronomy": """
        star stellar galax planet exoplanet orbit supernova quasar telescope
        cosmic solar lunar comet asteroid redshift
        """,
    "physics": """
        quantum photon electron phonon laser superconduct magnet plasma particle neutrino spin
        lattice semiconductor thermal friction optic entangle turbul
        """,
    "chemistry": """
        cataly molecule solvent reaction synthes polymer ligand oxid acid ion adsorp
        electrolyt zeolite isomer bond crystal
        """,
    "materials science": """
        alloy steel ceramic composite battery batteri electrode cathode anode perovskite graphene
        nanopartic coating corrosion concrete lithium glass fatigue
        """,
    "computational linguistics": """
        translation parser parsing corpus corpora linguist sentence word semantic syntactic
        tagging tagger discourse treebank grammar lexic text summar sentiment coreference
        """,
    "computer science": """
        algorithm software network classifier learning comput robot encryption
        database graph benchmark compiler
        """,
    "mathematics": "theorem proof conjecture integer prime manifold polynomial algebra topolog",
    "psychology": """
        behavio attention emotion personality motivation stress sleep attitude
        belief perception bias
        """,
    "economics": """
        price market income wage trade tax inflation firm household employment poverty cost
        """,
    "agriculture": "crop yield wheat maize rice livestock cattle fertili irrigat pest harvest",
}
UNKNOWN_TOPIC = "science"
SHORT = 4


def find_topic(words: Sequence[str]) -> str:
    """Name the science that most words of a question point to, the first listed of equals.

    A listed word of up to four letters stands for itself and its plural, a longer one for every
    word that begins like it, one after a hyphen for every word that ends like it.
    """
    points = {topic: sum(map(_test(topic), words)) for topic in TOPICS}
    best = max(points, key=points.__getitem__)
    return best if points[best] else UNKNOWN_TOPIC


@cache
def _test(topic: str) -> Callable[[str], bool]:
    listed = TOPICS[topic].split()
    whole = {form for word in listed if len(word) <= SHORT for form in (word, word + "s")}
    beginnings = tuple(word for word in listed if len(word) > SHORT and word[0] != "-")
    endings = tuple(word[1:] for word in listed if word[0] == "-")
    return lambda word: word in whole or word.startswith(beginnings) or word.endswith(endings)
