"""Which questions belong together: those that are alike, or share evidence, share a group."""

from collections.abc import Mapping, Sequence
from hashlib import sha256

from deepera_graph.bench.instance import Instance


def question_key(question: str) -> str:
    """Return 16 hexadecimal digits that name a question, whatever its case and white space."""
    return _digest(" ".join(question.casefold().split()))


def groups_of(keys: Sequence[Sequence[str]]) -> list[str]:
    """Return a group for each item; two items that share a key have the same one.

    So do items that are joined through others. A group is named by its smallest key, so its name
    does not depend on the order of the items.

    Args:
        keys: The keys of each item, at least one, shape (n_items,).
    """
    parent: dict[str, str] = {}

    def root(key: str) -> str:
        parent.setdefault(key, key)
        while parent[key] != key:
            parent[key] = parent[parent[key]]
            key = parent[key]
        return key

    for its in keys:
        for key in its:
            one, two = sorted((root(its[0]), root(key)))
            parent[two] = one
    return [root(its[0]) for its in keys]


def instance_keys(instance: Instance, evidence: Mapping[str, str]) -> list[str]:
    """Return keys of a question, of its golden passages, and of its candidates as a whole.

    Args:
        instance: The question.
        evidence: Texts by id, for golden passages that are not among the candidates; one without a
            text counts by its id.
    """
    texts = [one.text for one in instance.contexts if one.is_golden]
    texts += [evidence.get(id, id) for id in instance.golden_outside]
    candidates = "\n".join(sorted(one.text for one in instance.contexts))
    return [question_key(instance.question), *map(_digest, texts), _digest(candidates)]


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
