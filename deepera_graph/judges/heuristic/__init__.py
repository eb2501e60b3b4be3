"""The heuristic judge: hand-written rules over words and numbers; users call it `rules`."""
