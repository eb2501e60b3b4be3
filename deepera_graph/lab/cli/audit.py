"""`deepera-lab bench quest audit draw`, `label` and `report`: people check the judge's grades."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from deepera_graph.cli.shared import options
from deepera_graph.cli.shared.console import (
    check_folder,
    check_input,
    needing,
    say,
    tell,
    tell_done,
)
from deepera_graph.cli.shared.declaring import arg, opt, split_files
from deepera_graph.errors import SettingsError
from deepera_graph.lab.cli import running
from deepera_graph.text.plain import count

if TYPE_CHECKING:
    from deepera_graph.lab.quest.audit.drawing import Audit

_WRITTEN = ("audit.md", "audit.json", "report.html", "manifest.json")
_measure = partial(opt, panel="Measure")
_Folder = Annotated[Path, arg("AUDIT", "Folder of the audit.")]


@dataclass(frozen=True, kw_only=True)
class DrawOptions:
    """What is drawn, and where it goes."""

    out: Path = opt("Folder of the audit.", "--out", "-o", metavar="AUDIT", needed=True)
    per_grade: int = opt("Pairs drawn of each grade.", metavar="N", default=150, least=1)
    seed: int = opt("Random seed of the draw.", metavar="S", default=0, least=0)
    overwrite: bool = opt("Replace an audit that has no labels yet.", default=False)


@dataclass(frozen=True, kw_only=True)
class LabelOptions:
    """How the page is served."""

    rater: str | None = opt(
        "Who labels.", "--rater", "-r", metavar="NAME", shown="asked on the page"
    )
    blind: bool = opt(
        "Never show the judge's grade, not even after one's own label.", default=False
    )
    port: int = opt(
        "Port of the page on this machine; 0 takes a free one.", metavar="N", default=0, least=0
    )
    open: bool = opt("Open the page in the browser.", default=False)


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """What is read, and how it is measured."""

    sheets: str | None = opt(
        "Filled-in copies of sheet.csv, by rater, besides what the page has kept.",
        metavar="NAME=FILE,...",
        shown="none",
    )
    resamples: int = _measure("Resamples for intervals.", metavar="N", default=10_000, least=1)
    seed: int = _measure("Random seed of the resamples.", metavar="S", default=0, least=0)


def draw(
    build: Annotated[Path, arg("BUILD", "Folder of `deepera-lab bench quest build`.")],
    *,
    chosen: DrawOptions,
    output: options.OutputOptions,
) -> None:
    """Draw pairs of each grade for people to label."""
    if not build.is_dir():
        raise SettingsError(f"no such folder: {str(build)!r}")
    check_folder(chosen.out, (), overwrite=True)
    from deepera_graph.lab.quest.audit.drawing import draw_audit

    audit = draw_audit(
        build, chosen.out, per_grade=chosen.per_grade, seed=chosen.seed, overwrite=chosen.overwrite
    )
    plain = {"audit": str(chosen.out), "pairs": len(audit.pairs), **audit.about}
    tell_done(output, plain, lambda: _describe(audit))


def _describe(audit: Audit) -> str:
    lines = [f"{count(len(audit.pairs), 'pair')} in {audit.folder}"]
    for grade, one in audit.about["grades"].items():
        few = "" if one["drawn"] == audit.about["per_grade"] else ": all that there are"
        lines.append(f"  grade {grade}: {one['drawn']} of {one['judged']:,}{few}")
    lines += [f"  {n:,} judged pairs {why} left out" for why, n in audit.about["left_out"].items()]
    lines.append(f"label them: deepera-lab bench quest audit label {audit.folder} --rater NAME")
    return "\n".join([*lines, f"or in a spreadsheet: a copy of {audit.folder / 'sheet.csv'} each"])


def label(folder: _Folder, *, chosen: LabelOptions, output: options.OutputOptions) -> None:
    """Serve the page on which people label the pairs, until interrupted."""
    from deepera_graph.lab.quest.audit.drawing import Audit
    from deepera_graph.lab.quest.audit.labels import read_rater

    audit = Audit.open(folder)
    rater = "" if chosen.rater is None else f"#rater={read_rater(chosen.rater)}"

    from deepera_graph.lab.quest.audit.server import serve_audit

    def tell_address(address: str) -> None:
        tell(output, {"address": f"{address}{rater}"}, lambda: f"{address}{rater}")
        if not output.quiet:
            say("label at this address; Ctrl-C ends it, every label is on disk at once")
        if chosen.open:
            import webbrowser

            webbrowser.open(f"{address}{rater}")

    serve_audit(audit, port=chosen.port, blind=chosen.blind, on_ready=tell_address)


def report(
    folder: _Folder,
    *,
    chosen: ReportOptions,
    results: running.ResultOptions,
    output: options.OutputOptions,
) -> None:
    """Compare the judge's grades with the labels: confusion, kappas, precision, failure types."""
    if results.out is not None and results.out.resolve() == folder.resolve():
        raise SettingsError("--out must be another folder than that of the audit")
    check_folder(results.out, _WRITTEN, overwrite=results.overwrite)
    sheets = split_files("--sheets", chosen.sheets)
    check_input(*sheets.values())
    from deepera_graph.lab.quest.audit.drawing import Audit
    from deepera_graph.lab.quest.audit.labels import read_labels

    audit = Audit.open(folder)
    labels = read_labels(audit, sheets)
    with needing("bench quest audit", "bench"):
        from deepera_graph.lab.quest.audit.report import (
            AUDIT,
            describe_audit,
            shorten,
            study_audit,
            write_audit,
        )
        from deepera_graph.lab.studies.run import format_study

    how = {"n_resamples": chosen.resamples, "seed": chosen.seed}
    result = study_audit(audit, labels, **how)
    plain = running.plain_result(AUDIT.name, result)
    if results.out is not None:
        write_audit(results.out, result, describe_audit(audit, labels, how), plain)
    tell(
        output, plain, lambda: format_study(AUDIT, shorten(result), figures=False), out=results.out
    )
