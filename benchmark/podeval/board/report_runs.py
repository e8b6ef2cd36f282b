"""Make reports of runs on disk, without a board; the tables are written elsewhere and the runs are not changed."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from podeval.board.build import write_tables
from podeval.board.report import SystemReport, list_places, report_system
from podeval.board.runs_folder import RunsFolder
from podeval.errors import BadInput
from podeval.runs.run_folder import RunFolder


def report_runs(folders: Sequence[Path], profile: str | None = None) -> list[SystemReport]:
    """Return a report for each system of some runs, compared with the other runs, a chapter for each run and profile.

    Args:
        folders: folders of runs, `<runs>/<benchmark>/<split>/<system>`.
        profile: only what was measured under it.

    Raises:
        BadInput: a folder holds no run, does not lie as runs do, or has not been measured.
    """
    by_folder: dict[Path, list[RunFolder]] = {}
    for path in folders:
        run = find_run(path)
        by_folder.setdefault(run.runs, []).append(run)
    return [one for runs, some in by_folder.items() for one in _reports(runs, some, profile)]


def _reports(runs: Path, some: Sequence[RunFolder], profile: str | None) -> list[SystemReport]:
    with tempfile.TemporaryDirectory(prefix="podeval-report-") as aside:
        write_tables(runs, Path(aside))
        folder = RunsFolder(Path(aside))
        chapters: dict[str, list[str]] = {}
        for run in some:
            plan = run.plan()
            start = f"{plan.benchmark}/{plan.split}/" + (profile or "")
            places = [where for where in list_places(folder.board(), plan.system) if where.startswith(start)]
            if not places:
                under = f" under the profile {profile}" if profile else ""
                raise BadInput(f"{run.path} has not been measured{under}; measure it with `podeval run`")
            chapters.setdefault(plan.system, []).extend(places)
        return [report_system(folder, system, dict.fromkeys(places)) for system, places in chapters.items()]


def find_run(path: Path) -> RunFolder:
    """Open the run in a folder.

    Raises:
        BadInput: there is none, or the folder is not where its plan says.
    """
    path = path.resolve()
    if not (path / "run.json").is_file():
        raise BadInput(f"{path} contains no run; give a folder such as runs/real_pod/demo/espeak_ng")
    run = RunFolder(path.parents[2], *path.parts[-3:])
    plan = run.plan()
    if (plan.benchmark, plan.split, plan.system) != path.parts[-3:]:
        where = "/".join((plan.benchmark, plan.split, plan.system))
        raise BadInput(f"the run in {path} belongs in a folder {where} of a folder of runs; put it there")
    return run
