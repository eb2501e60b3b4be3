"""Invented abstracts on lakes, as many as are wanted, each with findings of its own."""

from random import Random

from deepera_graph.lab.build.corpus import Document

_FISH = ("trout", "perch", "pike", "roach", "char", "tench", "bream", "eel", "whitefish", "burbot")
_PLANTS = ("reed", "milfoil", "pondweed", "stonewort", "duckweed", "lily", "sedge", "bladderwort")
_STUFFS = ("phosphate", "nitrate", "lime", "copper", "iron", "silica", "humus", "chloride")
_SIGNS = ("growth", "survival", "hatching", "feeding", "migration", "respiration", "colour")
_PLACES = ("Alder", "Birch", "Cedar", "Dogwood", "Elm", "Fir", "Gorse", "Hazel", "Ivy", "Juniper")


def lake_abstract(number, seed=0):
    chance = Random(f"{seed} {number}")
    fish, plant, stuff, sign, place = map(chance.choice, (_FISH, _PLANTS, _STUFFS, _SIGNS, _PLACES))
    weeks, share, depth = chance.randrange(3, 40), chance.randrange(5, 95), chance.randrange(2, 60)
    text = (
        f"The {sign} of {fish} in cold lakes depends on {stuff}, but its share is not known. "
        f"We added {stuff} to {weeks} enclosures of {place} Lake and counted {fish} and {plant} "
        f"every week at a depth of {depth} metres. "
        f"In enclosures with {stuff}, {sign} of {fish} rose by {share} percent in {weeks} weeks, "
        f"while {plant} covered {100 - share} percent of the bottom of {place} Lake. "
        f"Lakes with {plant} may thus keep their {fish} when {stuff} is added at {depth} metres."
    )
    subject = "fish" if number % 2 else "plants"
    return Document(id=f"L{number}", title=f"{fish} and {stuff}", text=text, subject=subject)


def lake_abstracts(n=40):
    return [lake_abstract(number) for number in range(n)]
