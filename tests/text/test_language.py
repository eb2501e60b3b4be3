"""Whether a question may be English, by its letters and its common words."""

import pytest

from deepera_graph.text.words import looks_english

ENGLISH = """
Does low-dose aspirin reduce the risk of preeclampsia?
aspirin preeclampsia
blood pressure dialysis
de novo lipogenesis NAFLD
van der Waals forces in graphene
von Willebrand factor bleeding
El Niño La Niña rainfall
Los Angeles ozone trends
TNF-α and IL-1β in COVID-19
IL-6 signaling plays a major role in atherosclerotic disease.
Why do cells die in vitro?
in vivo CRISPR screens
Metformin reduce cancer?
Guillain-Barré syndrome after influenza vaccine
Do Schrödinger cat states decohere?
Clostridium difficile recurrence
p53
Escherichia coli O157:H7 shedding cattle
Does Saccharomyces cerevisiae var. boulardii prevent Clostridioides difficile?
Aedes aegypti Wolbachia dengue
Drosophila melanogaster lifespan rapamycin
Vaccinium macrocarpon urinary tract infection
Camellia sinensis var. assamica polyphenols
Mentha × piperita irritable bowel
Salmonella enterica serovar Typhi carriage
Olea europaea leaf extract blood pressure
Ginkgo biloba dementia
β-carotene lung cancer smokers
α-synuclein aggregation Parkinson
γ-aminobutyric acid sleep latency
μ-opioid receptor tolerance
Does TGF-β1 cause fibrosis?
ω-3 fatty acids arrhythmia
para-aminobenzoic acid solubility
amoxicillin clavulanate sinusitis
adalimumab etanercept psoriasis
il-6 blockade covid
il6 gli1 expression medulloblastoma
het mice lifespan
per os vancomycin colitis
pour plate method counts
peer comment letters
die casting alloys
garden hoe weed control
mother son transmission
naïve T cells exhaustion
café au lait spots neurofibromatosis
açaí maté antioxidant capacity
Ménière disease betahistine
Sjögren syndrome and Behçet uveitis
Río de la Plata estuary salinity
São Paulo dengue incidence
Does a raison d'etre protect against dementia?
Do l'Hôpital d'Alembert estimates converge?
Does all's-well messaging raise vaccine uptake?
Deutsche Forschungsgemeinschaft and the funding of science
Is Lebensqualität measured in trials of palliative care?
y axis truncation
"""
OTHER = """
Verringert Blutdrucksenkung kardiovaskuläre Ereignisse bei Dialysepatienten?
Hilft Apfelwachs?
Senkt Metformin das Krebsrisiko?
Wie wirkt Rapamycin auf Epilepsie?
¿Reduce la aspirina el riesgo de preeclampsia?
¿Cómo afecta el ejercicio a la presión arterial?
L'aspirine réduit-elle le risque de prééclampsie ?
Quel est l'effet de la metformine sur le cancer ?
L'aspirina riduce il rischio di preeclampsia?
A aspirina reduz o risco de pré-eclâmpsia?
Verlaagt aspirine het risico op pre-eclampsie?
阿司匹林能降低先兆子痫的风险吗？
ACE2在COVID-19中的作用是什么？
Снижает ли аспирин риск преэклампсии?
Reduziert Vitamin D die Stürze?
Verbessert Kreatin die Muskelkraft?
Schützt Aspirin vor Darmkrebs?
Beeinflusst Stickstoff das Wachstum?
Fördert Koffein Schlafstörungen?
Hemmt Curcumin Entzündungen?
Korreliert Schlafdauer mit Blutdruck?
Löst Koffein Migräne aus?
Nutzen Statine älteren Patienten?
Wirksamkeit von Melatonin
La vitamine D réduit-elle les chutes ?
Le café prévient-il la démence ?
Jeûner prolonge-t-il la durée de vie ?
L'aspirine prévient l'éclampsie ?
Reduce la vitamina D las caídas?
Previene el café la diabetes?
¿Funciona la creatina?
Mortalidad y metformina
Mejora la creatina la fuerza muscular?
Il caffè previene la demenza?
Migliora la memoria con il sonno?
Prevenzione dell'ictus con aspirina
O café previne a demência?
Melhora a creatina a força muscular?
Helpt thee of koffie tegen hoofdpijn?
Voorkomt aspirine darmkanker?
Minskar vitamin D risken för fall?
Czy aspiryna zmniejsza ryzyko?
"""


@pytest.mark.parametrize("question", ENGLISH.strip().splitlines())
def test_english_and_its_terms_look_english(question):
    assert looks_english(question)


@pytest.mark.parametrize("question", OTHER.strip().splitlines())
def test_another_language_does_not(question):
    assert not looks_english(question)


@pytest.mark.parametrize("text", ["", "?", "42", "H₂O"])
def test_what_has_no_words_may_be_english(text):
    assert looks_english(text)
