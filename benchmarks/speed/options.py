"""The command line of `run.py`."""

import argparse
from pathlib import Path

from latency import Speed
from rankers import BASE, RANKERS
from scene import Scene
from tokens import CHARACTERS, ENCODINGS

_EXAMPLES = f"""examples:
  python benchmarks/speed/run.py --n 30 --rankers deepera
  python benchmarks/speed/run.py --rival-python .venv-rivals/bin/python --json all.json
  python benchmarks/speed/run.py --n 1000 --questions 1 --rankers {BASE},deepera-separate
  python benchmarks/speed/run.py --merge all.json more.json     # one table of several runs

rankers: {", ".join(RANKERS)}; a part of a name chooses all that have it."""


def scene_of(options: argparse.Namespace, n_passages: int) -> Scene:
    """Return what the server is to serve."""
    speed = Speed(
        ttft=options.ttft,
        prefill=options.prefill,
        decode=options.decode,
        at_once=options.at_once,
        block=options.block,
        requests_per_minute=options.requests_per_minute,
        straggler_share=options.stragglers,
    )
    return Scene(
        speed=speed,
        tokens=options.tokens,
        seed=options.seed,
        questions=options.questions,
        passages=n_passages,
        reason=options.reason,
        cold=options.cold,
    )


def read_options(description: str | None) -> argparse.Namespace:
    """Read and check the command line."""
    parser = argparse.ArgumentParser(
        description=description,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--n", type=_numbers, default=[10, 30, 100], metavar="N,N", help="passages a question")
    add("--questions", type=int, default=5, help="questions measured, after a warm-up; default 5")
    add("--rankers", type=_rankers, default=list(RANKERS), metavar="A,B", help="default all")
    add("--rival-python", action="append", default=[], metavar="PATH",
        help="interpreter that has rivals installed; may be given several times")  # fmt: skip
    add("--json", metavar="FILE", help="also write the results here")
    add("--merge", nargs="+", metavar="FILE", help="measure nothing, print these results")
    server = parser.add_argument_group("the server")
    add = server.add_argument
    add("--ttft", type=float, default=0.25, help="seconds to the first token; default 0.25")
    add("--prefill", type=float, default=4000, help="prompt tokens a second; default 4000")
    add("--decode", type=float, default=80, help="output tokens a second; default 80")
    add("--at-once", type=int, default=64, help="calls served together; default 64")
    add("--block", type=int, default=16, help="tokens a block of the prefix cache; default 16")
    add("--cold", action="store_true", help="empty the prefix cache before every question")
    add("--requests-per-minute", type=float, default=0, help="refuse what is above; default none")
    add("--stragglers", type=float, default=0, help="share of calls that take 5 x as long")
    add("--reason", type=int, default=25, help="tokens of a reason; default 25")
    add("--tokens", choices=(CHARACTERS, *ENCODINGS), default=CHARACTERS,
        help=f"what a token is; default {CHARACTERS}")  # fmt: skip
    add("--seed", type=int, default=7, help="of texts and stragglers; default 7")
    options = parser.parse_args()
    _check(parser, options)
    return options


def _check(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    for name in ("questions", "prefill", "decode", "at_once", "block", "reason"):
        if getattr(options, name) <= 0:
            parser.error(f"--{name.replace('_', '-')} must be > 0, got {getattr(options, name)}")
    if options.questions > 99:
        parser.error(f"--questions must be at most 99, got {options.questions}")
    for path in [*options.rival_python, *(options.merge or [])]:
        if not Path(path).exists():
            parser.error(f"there is no {path}")


def _numbers(text: str) -> list[int]:
    try:
        found = [int(one) for one in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"numbers with commas between, got {text!r}") from None
    if not all(2 <= one <= 9999 for one in found):
        raise argparse.ArgumentTypeError(f"each must be from 2 to 9999, got {text!r}")
    return found


def _rankers(text: str) -> list[str]:
    found = [key for key in RANKERS if any(part in key for part in text.split(",") if part)]
    if not found:
        raise argparse.ArgumentTypeError(f"no ranker {text!r}; there are {', '.join(RANKERS)}")
    return found
