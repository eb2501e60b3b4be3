import pytest

UNKNOWN = {
    "topic": "",
    "entity_type": "",
    "intent": "other",
    "expected_answer_type": "other",
}


@pytest.fixture
def task():
    def build(question, text, *, title="", section="", **intent):
        return {
            "question": question,
            "intent": {**UNKNOWN, **intent},
            "text": text,
            "title": title,
            "section": section,
        }

    return build


@pytest.fixture
def question():
    return "Does shade reduce leaf rust in coffee plants?"


@pytest.fixture
def passages():
    """One passage of each kind about the same question, invented."""
    return {
        "result": (
            "Leaf rust covered 12% of the leaves of shaded coffee plants and 31% of those in full "
            "sun (p = 0.002). Shade reduced rust severity in both seasons."
        ),
        "aim": (
            "The aim of this study was to determine whether shade can reduce leaf rust in coffee "
            "plants."
        ),
        "methods": (
            "Coffee plants were randomly assigned to shade or full sun. Leaf rust was scored "
            "monthly using a standard scale, and records were analysed by regression."
        ),
        "background": (
            "Leaf rust is the most common disease of coffee plants, and it remains unknown whether "
            "shade has been of any use."
        ),
        "speculation": (
            "Shade might possibly reduce leaf rust in coffee plants, and future work should "
            "perhaps look into it."
        ),
        "elsewhere": (
            "Mean walking speed was 1.2 m/s in trained dogs and 0.9 m/s in others (p < 0.001)."
        ),
    }
