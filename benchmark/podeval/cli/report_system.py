"""`podeval report system`: what is known of a system, as one file to read and to print."""

import sys
from pathlib import Path
from typing import Annotated

import typer


def system(
    folders: Annotated[
        list[Path], typer.Argument(metavar="RUN_FOLDER", help="runs: <runs>/<benchmark>/<split>/<system>")
    ],
    out: Annotated[Path, typer.Option(help="the HTML file to write")] = Path("report.html"),
    profile: Annotated[str | None, typer.Option(help="only results of this profile")] = None,
    language: Annotated[str, typer.Option(help="en or zh")] = "en",
) -> None:
    """Write a system's analysis report: one self-contained HTML file that prints well.

    By dimension, against the median of the other systems in the same folder of runs and against recordings of people;
    radar, distributions, drift over the recordings, every item, what was not scored and why, protocols, how to cite.
    Runs of one system become chapters of one report, several systems several reports in the file. The runs are left as
    they are.

    Example: podeval report system .demo/runs/real_pod/demo/espeak_ng --out espeak.html
    """
    from podeval.board.report_page import render_reports
    from podeval.board.report_runs import report_runs
    from podeval.reports.page import write_page

    text = render_reports(report_runs(folders, profile), language)
    write_page(text, out)
    print(f"{out}: {len(text.encode()) / 1024:.0f} kB, self-contained", file=sys.stderr)
