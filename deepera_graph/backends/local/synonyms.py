"""Words that name the same thing in different registers, so that one may answer for the other."""

from collections.abc import Mapping

from deepera_graph.text.words import stem

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
