"""Numbers below a thousand in words: "one hundred and ninety-one"."""

import re
from typing import Final

_ONES_TEXT: Final = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    sixteen seventeen eighteen nineteen
    """
_ONES: Final = {word: number for number, word in enumerate(_ONES_TEXT.split())}
_TENS_TEXT: Final = "twenty thirty forty fifty sixty seventy eighty ninety"
_TENS: Final = {word: 10 * number for number, word in enumerate(_TENS_TEXT.split(), start=2)}
_ANY: Final = "|".join([*_TENS, *sorted(_ONES, key=len, reverse=True)])
SPELT: Final = (
    rf"(?:(?:{_ANY}|a)[\s-]hundred(?:(?:[\s-]and)?[\s-](?:{_ANY})(?:-(?:{_ANY}))?)?"
    rf"|(?:{'|'.join(_TENS)})(?:[\s-](?:{'|'.join(_ONES)}))?|(?:{'|'.join(_ONES)}))\b"
)
_SPELT_NUMBER = re.compile(rf"\b{SPELT}", re.IGNORECASE)


def read_spelt(words: str) -> int:
    """Return the number that words say which `SPELT` matches, in any capitals."""
    total = 0
    for word in re.split(r"[\s-]+", words.lower().strip()):
        if word == "hundred":
            total *= 100
        elif word != "and":
            total += 1 if word == "a" else _TENS.get(word, _ONES.get(word, 0))
    return total


def write_numbers(text: str) -> str:
    """Write numbers in words as digits."""
    return _SPELT_NUMBER.sub(lambda found: str(read_spelt(found.group())), text)
