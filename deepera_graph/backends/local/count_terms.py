"""Makes `term_counts.json`: in how many background documents each stem occurs.

Run as ``python -m deepera_graph.backends.local.count_terms FILE.jsonl ... -o term_counts.json``.
A line of a file holds one document under ``text``, or several under ``contexts``; a text that
occurs twice counts once. Only stems of words without digits are counted.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from deepera_graph.text.words import stems


def count_terms(texts: Iterable[str], *, least: int = 1) -> dict[str, object]:
    """Count the documents each stem occurs in.

    Args:
        texts: The background documents.
        least: Stems in fewer documents are left out, >= 1.

    Returns:
        ``documents``, the number of different texts, and ``counts``, stem to number of documents.
    """
    seen: set[int] = set()
    counts: Counter[str] = Counter()
    for text in texts:
        if hash(text) not in seen:
            seen.add(hash(text))
            counts.update({stem for stem in stems(text) if stem.isascii() and stem.isalpha()})
    kept = {stem: counts[stem] for stem in sorted(counts) if counts[stem] >= least}
    return {"documents": len(seen), "counts": kept}


def main(arguments: Sequence[str] | None = None) -> None:
    """Count the terms of files and write the table."""
    parser = argparse.ArgumentParser(description="Count background document frequencies.")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--least", type=int, default=8, help="documents a stem must occur in")
    parser.add_argument("--source", default="", help="which data the files hold")
    chosen = parser.parse_args(arguments)
    table = count_terms(_texts(chosen.files), least=chosen.least)
    text = json.dumps({"source": chosen.source, **table}, separators=(",", ":"))
    chosen.output.write_text(text + "\n", encoding="utf-8")


def _texts(files: Iterable[Path]) -> Iterator[str]:
    for file in files:
        with file.open(encoding="utf-8") as lines:
            for line in lines:
                record = json.loads(line)
                for document in record.get("contexts") or [record]:
                    yield document["text"]


if __name__ == "__main__":
    main()
