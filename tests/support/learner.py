"""A judge that learns kinds of passages by heart, and pools to measure it on."""

from support.pools import pool

POOLS = [
    pool(f"q{n}", [0, 1, 0], group=f"g{n // 2}", kinds=["methods", "", "background"])
    for n in range(12)
]
LAMPS = [pool(f"lamp{n}", [0, 1], group=f"l{n}", set="lamps", weight=0) for n in range(4)]


class Notes:
    """Learns which kinds of passages are no evidence; remembers what it was given."""

    def __init__(self):
        self.given = []
        self.scored = []

    def __call__(self, pools, *, seed, log, without=()):
        self.given.append(pools)
        self.scored.append([])
        known = {one.kind for its in pools for one in its.passages if not one.label}
        known -= set(without)

        def scorer(one):
            self.scored[-1].append(one)
            return [0.2 if passage.kind in known else 0.9 for passage in one.passages]

        return scorer
