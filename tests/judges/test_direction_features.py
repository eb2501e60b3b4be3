"""The order of a passage's features, in which their weights are added up."""

from deepera_graph.judges.trained.direction.model import describe, find_grams, relate_signs
from deepera_graph.judges.trained.direction.wording import read_question, read_words

QUESTION = "Does low-dose aspirin reduce the risk of preeclampsia?"
STUDY = (
    "In 45 trials, aspirin significantly lowered the risk of preeclampsia compared with placebo, "
    "but did not increase bleeding (odds ratio 0.57, 95% CI 0.43 to 0.75)."
)


def test_runs_of_signs_come_in_the_order_of_the_text_under_any_hash_seed() -> None:
    signs = relate_signs(read_question(QUESTION), read_words(STUDY))
    runs = list(dict.fromkeys(find_grams(signs, 2)))
    assert len(runs) > 10
    assert [name for name in describe(QUESTION, STUDY) if name in runs] == runs
