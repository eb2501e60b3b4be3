"""Sciences, each with words that point to it."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache

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
