"""What is made of a text is held, unless the text is long."""

from deepera_graph.text.words import LONGEST_HELD, MOST_TEXTS, forget_all, held


@held()
def split(text, mark):
    return text.split(mark)


def test_what_is_made_of_a_text_is_made_once():
    assert split("a b-c", " ") == ["a", "b-c"]
    assert split("a b-c", " ") is split("a b-c", " ")
    assert split("a b-c", "-") == ["a b", "c"]


def test_a_long_text_is_not_held():
    held_still, too_long = "a " * (LONGEST_HELD // 2), "a " * (LONGEST_HELD // 2) + "b"
    assert split(held_still, " ") is split(held_still, " ")
    assert split(too_long, " ") == split(too_long, " ")
    assert split(too_long, " ") is not split(too_long, " ")


def test_what_was_asked_for_longest_ago_gives_way():
    first = split("first", " ")
    for number in range(MOST_TEXTS):
        split(f"other {number}", " ")
    assert split("first", " ") == first
    assert split("first", " ") is not first


def test_all_that_is_held_can_be_let_go_of():
    first = split("let go", " ")
    forget_all()
    assert split("let go", " ") == first
    assert split("let go", " ") is not first
