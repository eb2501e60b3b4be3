import json
import random
import re
import time
import unicodedata
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepera_graph.text import quotes
from deepera_graph.text.quotes import FoundQuote, _rewrite_characters, find_quote
from deepera_graph.text.words import split_sentences

_CORPUS = files("deepera_graph").joinpath("demo", "corpus.jsonl").read_text("utf-8")
PASSAGES = [json.loads(line)["text"] for line in _CORPUS.splitlines()]
SENTENCES = [(text, one.text) for text in PASSAGES for one in split_sentences(text)]
NOT_FOUND = FoundQuote("not_found", None, None)


@pytest.mark.parametrize(
    ("text", "quote", "found"),
    [
        pytest.param("the dye-\nfree film", "the dye-free film", None, id="hyphen-kept"),
        pytest.param(
            "slow inhi-\nbition of it", "slow inhibition of it", None, id="hyphen-dropped"
        ),
        pytest.param("slow inhi- bition of it", "slow inhibition of it", None, id="line-joined"),
        pytest.param("slow inhi\u00ad\nbition of it", "slow inhibition of it", None, id="soft-end"),
        pytest.param("slow inhi\u00adbition of it", "slow inhibition of it", None, id="soft"),
        pytest.param("pre- and  post-test", "pre- and post-test", None, id="pre-and"),
        pytest.param(
            "pre-\nand post-test mean", "pre- and post-test mean", None, id="pre-line-and"
        ),
        pytest.param("blood IL-\n6 levels fell", "blood IL-6 levels fell", None, id="name-number"),
        pytest.param("two\nlong\r\n lines of text", "two long lines of text", None, id="lines"),
        pytest.param("5\u00a0mg of\u2009the dye", "5 mg of the dye", None, id="odd-spaces"),
        pytest.param("ze\u200bro wi\ufeffdth signs", "zero width signs", None, id="zero-width"),
        pytest.param("eﬃcient ﬁbre ﬂow", "efficient fibre flow", None, id="ligatures"),
        pytest.param("efficient fibre flow", "eﬃcient ﬁbre ﬂow", None, id="ligatures-in-quote"),
        pytest.param("the cafe\u0301 was full", "the café was full", None, id="decomposed"),
        pytest.param("the café was full", "the cafe\u0301 was full", None, id="decomposed-quote"),
        pytest.param("it was ‘so’ and “thus”", "it was 'so' and \"thus\"", None, id="quotes"),
        pytest.param("it was ``thus'' done", 'it was "thus" done', None, id="latex-quotes"),
        pytest.param("the animal’s 5′ end", "the animal's 5' end", None, id="apostrophe-prime"),
        pytest.param("cooled to −5 °C fast", "cooled to -5 ºC fast", None, id="minus-degree"),
        pytest.param("some 10–15 of them", "some 10-15 of them", None, id="en-dash"),
        pytest.param("some 10 – 15 of them", "some 10-15 of them", None, id="spaced-range"),
        pytest.param("all cells—alas—died", "all cells -- alas -- died", None, id="em-dash"),
        pytest.param("add 5 µm of ∆T now", "add 5 μm of ΔT now", None, id="micro-delta"),
        pytest.param("it fell ( p<0.05 ) .", "it fell (p < 0.05).", None, id="spaced-signs"),
        pytest.param("mean 10² units more", "mean 10² units\nmore", None, id="superscript-same"),
        pytest.param("it 𝑟𝑜𝑠𝑒 very fast", "it rose very fast", None, id="mathematical-letters"),
        pytest.param("so on … and then on", "so on ... and then on", None, id="ellipsis-sign"),
        pytest.param(
            "the film was dry, too", "“the film was dry.”", "the film was dry", id="wrapped"
        ),
        pytest.param("the film was dry. So", "“the film was dry.”", "the film was dry.", id="stop"),
        pytest.param("the film was dry, too", "the film was…", "the film was", id="trailing-dots"),
        pytest.param(
            "so the film was dry", "...the film was dry", "the film was dry", id="lead-dots"
        ),
        pytest.param(
            "the heart; heart\nof the sun", "heart of the sun", "heart\nof the sun", id="2nd"
        ),
    ],
)
def test_a_quote_is_found_in_another_form(text, quote, found):
    start = text.index(found or text)
    assert find_quote(text, quote) == FoundQuote("normalised", start, start + len(found or text))


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        pytest.param("it rose to 102 units", "it rose to 10² units", id="superscript"),
        pytest.param("it rose to 10² units", "it rose to 102 units", id="superscript-flattened"),
        pytest.param("some 5½ units of it", "some 51/2 units of it", id="fraction"),
        pytest.param("much CO₂ was freed", "much CO2 was freed", id="subscript"),
        pytest.param("The film was dry", "the film was dry", id="case"),
        pytest.param("the heart of it all", "art of it all", id="inside-a-word"),
        pytest.param("all of it in the heart", "all of it in the he", id="word-cut-short"),
        pytest.param("it rose by 15 units", "5 units", id="too-short"),
        pytest.param("rats rose by 15 units", "5 units rats rose", id="order"),
        pytest.param("rose by 15 units in all", "5 units in all", id="inside-a-number"),
        pytest.param("the dose rose by 5.2 mg", "the dose rose by 5", id="decimals-cut"),
        pytest.param("the dose rose by 5.2 mg", "the dose rose by 5.", id="decimals-cut-stop"),
        pytest.param("the dose of .5 mg a day", "5 mg a day", id="point-cut"),
        pytest.param("the sum of 1,200 units", "200 units of the sum", id="not-there"),
        pytest.param("a sum of 1,200 units was", "200 units was", id="thousands-cut"),
        pytest.param("a sum of 1 200 units was", "200 units was", id="spaced-thousands-cut"),
        pytest.param("a change of −5 mg a day", "5 mg a day", id="sign-cut"),
        pytest.param("a dose < 5 mg a day", "5 mg a day", id="comparison-cut"),
        pytest.param("a dose of 10–15 mg a day", "15 mg a day", id="range-cut"),
        pytest.param("a dose of 10 – 15 mg a day", "15 mg a day", id="spaced-range-cut"),
        pytest.param("yields that rose by 5 %", "yields that rose by 5", id="percent-cut"),
        pytest.param("counts that rose by 10⁻² of", "counts that rose by 10", id="power-cut"),
        pytest.param("counts of 5 × 10⁶ cells", "with counts of 5", id="other"),
        pytest.param("many counts of 5 × 10⁶ cells", "many counts of 5", id="factor-cut"),
        pytest.param("at most 5 mg/kg a day", "at most 5 mg", id="unit-cut"),
        pytest.param("a non-inferior drug it was", "inferior drug it was", id="compound-cut"),
        pytest.param("a non-\ninferior drug it was", "inferior drug it was", id="compound-line"),
        pytest.param("blood levels of IL-6 fell", "blood levels of IL", id="name-cut"),
        pytest.param("of all the CD4+ cells", "of all the CD4", id="charge-cut"),
        pytest.param("it surely doesn’t help", "it surely doesn", id="apostrophe-cut"),
        pytest.param("a cafe\u0301 it is, too", "so a cafe it is", id="mark"),
        pytest.param("here is the cafe\u0301", "here is the cafe", id="mark-cut"),
        pytest.param("here is the Raﬀ", "here is the Raf", id="ligature-cut"),
        pytest.param("a noninferior drug it was", "a non-inferior drug it was", id="hyphen-added"),
        pytest.param("in the 10–15 of them", "in the 1015 of them", id="range-glued"),
        pytest.param("some 10 −15 of them", "some 10-15 of them", id="minus-is-no-range"),
        pytest.param("in group 5. 2 rats died", "in group 5.2 rats died", id="stop-is-no-point"),
        pytest.param("the oil was now here", "the oil was nowhere", id="space-dropped"),
        pytest.param("the film was cast, then it was dry", "the film ... was dry", id="ellipsis"),
        pytest.param("the film was cast, then it was dry", "the film […] was dry", id="brackets"),
        pytest.param("the film was not dry", "the film was dry", id="negation"),
        pytest.param("so ... !? - -- ... so", "... !? - -- ...", id="punctuation"),
        pytest.param("in an a to be of it", "in an a to be of", id="no-telling-word"),
        pytest.param("any text at all", "", id="empty"),
        pytest.param("", "any text at all", id="empty-text"),
        pytest.param("any text at all", "“ … ”", id="only-quotation-marks"),
    ],
)
def test_what_does_not_stand_there_is_not_found(text, quote):
    assert find_quote(text, quote) == NOT_FOUND


@pytest.mark.parametrize(
    "quote", ["the film dried", "electrochemistry", "5.2 mg lost", "−5 mg a day", "(n = 12 rats)"]
)
def test_a_telling_quote_is_long_enough(quote):
    assert find_quote(f"So {quote}, too.", quote).status == "verbatim"


@pytest.mark.parametrize("quote", ["the film", "yes", "5.2 mg", "dry"])
def test_a_short_quote_is_no_evidence(quote):
    assert find_quote(f"So {quote}, too.", quote) == NOT_FOUND


def test_white_space_around_a_quote_leaves_it_verbatim():
    assert find_quote("So the film dried.", " the film dried\n") == FoundQuote("verbatim", 3, 17)


def test_an_exact_place_comes_before_an_earlier_normalised_one():
    text = "the film\ndried, and the film dried"
    assert find_quote(text, "the film dried") == FoundQuote("verbatim", 20, 34)


def test_a_text_without_spaces_can_be_quoted_between_any_letters():
    text = "本研究では細胞を三十日間培養し、温度を一定に保ったところ増殖が速まった。"
    assert find_quote(text, text[5:30]) == FoundQuote("verbatim", 5, 30)


def test_only_the_window_is_searched_but_the_words_around_it_are_seen():
    text = "the ﬁlm dried; the ﬁlm dried; the ﬁlm dried"
    assert find_quote(text, "the film dried", start=3, end=28) == FoundQuote("normalised", 15, 28)
    assert find_quote(text, "the film dried", start=3, end=27) == NOT_FOUND
    assert find_quote(text, "the ﬁlm dried", start=16) == FoundQuote("verbatim", 30, 43)
    assert find_quote("a non-inferior drug it was", "inferior drug it was", start=6) == NOT_FOUND


@pytest.mark.parametrize(("start", "end"), [(-1, None), (3, 2), (0, 8), (8, None)])
def test_a_window_outside_the_text_is_an_error(start, end):
    with pytest.raises(ValueError, match=r"must lie in \[0, 7\], got"):
        find_quote("the oil", "the oil was", start=start, end=end)


@given(st.data())
def test_whole_sentences_of_a_passage_are_verbatim(data):
    text = data.draw(st.sampled_from(PASSAGES))
    sentences = split_sentences(text)
    first = data.draw(st.integers(0, len(sentences) - 1))
    last = data.draw(st.integers(first, len(sentences) - 1))
    start, end = sentences[first].start, sentences[last].end
    assert find_quote(text, text[start:end]) == FoundQuote("verbatim", start, end)


@pytest.mark.full
@given(st.data())
def test_words_in_a_row_are_verbatim(data):
    text = data.draw(st.sampled_from(PASSAGES))
    words = list(re.finditer(r"(?<=\s)[A-Za-z]{2,}(?=\s)", text))
    first = data.draw(st.integers(0, len(words) - 4))
    last = data.draw(st.integers(first + 3, len(words) - 1))
    quote = text[words[first].start() : words[last].end()]
    found = find_quote(text, quote)
    assert found.status == "verbatim"
    assert text[found.start : found.end] == quote


@given(st.text(), st.text(min_size=15), st.text())
def test_a_place_has_the_letters_and_digits_of_its_quote(before, middle, after):
    quote = " ".join(middle.split())
    text = f"{before} {middle} {after}"
    found = find_quote(text, quote)
    if found.status == "verbatim":
        assert text[found.start : found.end] == quote
    if found.status == "normalised":
        assert _letters(text[found.start : found.end]) == _letters(quote)


def _letters(text):
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKD", text)))


@pytest.mark.full
def test_true_quotes_survive_the_noise_of_a_printed_page():
    seed = random.Random(1)
    lost = [pair for pair in SENTENCES * 8 if not _is_found_in_print(*pair, seed)]
    assert len(lost) <= 0.01 * len(SENTENCES) * 8, lost[:3]


def _is_found_in_print(text, quote, seed):
    at = text.index(quote)
    before, middle, after = (
        _printed(part, seed) for part in (text[:at], quote, text[at + len(quote) :])
    )
    clean = seed.choice([quote, quote, f"“{quote}”", _printed(quote, seed)])
    found = find_quote(before + middle + after, clean)
    return (found.start, found.end) == (len(before), len(before) + len(middle))


def _printed(text, seed):
    """Give a text as a PDF reader might: broken lines, ligatures, other signs for the same."""
    text = re.sub(r"(?<=[a-z]{3})(?=[a-z]{3})", lambda _: _seldom(seed, 40, "-\n", "\u00ad"), text)
    text = re.sub(r"(?<=[a-z])-(?=[a-z])", lambda _: seed.choice(["-", "‐", "‑", "-\n"]), text)
    for plain, signs in {
        " ": [" "] * 16 + ["\n", "\r\n", "  ", "\u00a0", "\u2009", " \u200b"],
        "-": ["-", "-", "‐", "–"],
        "'": ["'", "’", "ʼ"],
        "µ": ["µ", "μ"],
        "fi": ["fi", "ﬁ"],
        "ffi": ["ffi", "ﬃ"],
        "fl": ["fl", "ﬂ"],
        "°": ["°", "º"],
        "–": ["–", "-", "‒"],
        "−": ["−", "-", "–"],
    }.items():
        text = re.sub(rf"{re.escape(plain)}(?!\n)", lambda _, signs=signs: seed.choice(signs), text)
    return unicodedata.normalize("NFD", text) if seed.random() < 0.2 else text


def _seldom(seed, one_in, *choices):
    return seed.choice(choices) if seed.randrange(one_in) == 0 else ""


@pytest.mark.full
@pytest.mark.parametrize(
    "kind", ["other_word", "other_number", "negated", "not_negated", "swapped", "other_passage"]
)
def test_fake_quotes_are_rejected(kind):
    seed = random.Random(2)
    makers = {
        "other_word": _with_other_word,
        "other_number": _with_other_number,
        "negated": _with_not,
        "not_negated": _without_not,
        "swapped": _with_two_swapped,
        "other_passage": _from_elsewhere,
    }
    fakes = [(text, makers[kind](text, quote, seed)) for text, quote in SENTENCES * 8]
    fakes = [(text, fake) for text, fake in fakes if fake is not None]
    believed = [
        fake
        for text, fake in fakes
        if find_quote(seed.choice([text, _printed(text, seed)]), fake).status != "not_found"
    ]
    assert len(fakes) >= 100
    assert len(believed) <= 0.01 * len(fakes), believed[:3]


def _with_other_word(text, quote, seed):
    words = re.findall(r"\b[a-z]{5,}\b", quote)
    others = [one for one in re.findall(r"\b[a-z]{5,}\b", text) if one not in words]
    if not words or not others:
        return None
    return re.sub(rf"\b{seed.choice(words)}\b", seed.choice(others), quote, count=1)


def _with_other_number(text, quote, seed):
    numbers = list(re.finditer(r"\d", quote))
    if not numbers:
        return None
    place = seed.choice(numbers).start()
    digit = seed.choice([one for one in "0123456789" if one != quote[place]])
    return quote[:place] + digit + quote[place + 1 :]


def _with_not(text, quote, seed):
    fake = re.sub(r" (is|are|was|were|did|can|may|had|has) ", r" \1 not ", quote, count=1)
    return None if fake == quote else fake


def _without_not(text, quote, seed):
    negation = r"\b(?:(?:not|no|never|without|neither|nor|none) (?=\w)|non-|un(?=\w{4}))"
    fake = re.sub(negation, "", quote, count=1)
    # Without its first or last word a quote is only shorter, and still stands in the text.
    return None if quote.endswith(fake) else fake


def _with_two_swapped(text, quote, seed):
    words = sorted(set(re.findall(r"\b[A-Za-z]{4,}\b", quote)))
    if len(words) < 2:
        return None
    one, two = seed.sample(words, 2)
    return re.sub(rf"\b(?:{one}|{two})\b", lambda m: two if m.group() == one else one, quote)


def _from_elsewhere(text, quote, seed):
    return seed.choice([other for home, other in SENTENCES if home != text])


@pytest.mark.full
def test_a_long_text_takes_milliseconds():
    seed = random.Random(3)
    text = ""
    while len(text) < 200_000:
        text += _printed(seed.choice(PASSAGES), seed) + "\n"
    quote = re.sub(r"\s+", " ", text[150_000:152_000]).partition(" ")[2].rpartition(" ")[0]
    spent = []
    for turn in range(3):
        began = time.process_time()
        find_quote(f"{turn} {text}", quote)
        spent.append(time.process_time() - began)
    assert min(spent) < 0.5  # 0.03 s on a quiet core


@pytest.mark.full
@pytest.mark.parametrize("unit", ["a ", "ab-ab ", "a-\n", "\u00ad\n", "ﬁ ", "e\u0301", "- ", "'' "])
def test_a_hostile_text_takes_no_more_than_linear_time(unit):
    text = unit * (100_000 // len(unit))
    began = time.process_time()
    for quote in (unit * 500 + "end", unit.strip() * 500, "abab ab-ab " * 100):
        find_quote(text, quote)
    assert time.process_time() - began < 5


def test_places_alike_are_looked_at_once(monkeypatch):
    looked_at = []

    def rewrite(text):
        looked_at.append(text)
        return _rewrite_characters(text)

    monkeypatch.setattr(quotes, "_rewrite_characters", rewrite)
    text = "Moth 7" * 900
    assert find_quote(text, text[1803:3605]).status == "not_found"
    assert len(looked_at) < 40
