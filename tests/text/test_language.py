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
