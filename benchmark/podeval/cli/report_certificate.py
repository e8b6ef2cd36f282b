"""`podeval report certificate`: what of a run's figure is the system, and what are the choices that led to it."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podeval.cli.completion import complete_key
from podeval.cli.output import AsJson, emit
from podeval.errors import BadInput

if TYPE_CHECKING:
    from podeval.runs.run_folder import RunFolder


def certificate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="folder of a run: RUNS/BENCHMARK/SPLIT/SYSTEM")],
    key: Annotated[str, typer.Option(help="figure to examine, as metric.key", autocompletion=complete_key)] = "wer.wer",
    printed: Annotated[
        float | None, typer.Option(help="figure to compare with, as a paper prints it (error rates in per cent)")
    ] = None,
    against: Annotated[
        list[Path] | None, typer.Option(help="run of another system, to look for rank flips (repeatable)")
    ] = None,
    people: Annotated[Path | None, typer.Option(help="run of recordings of people, for the recogniser's floor")] = None,
    as_json: AsJson = False,
) -> None:
    """Show how seeds, recogniser, normaliser and averaging change a run's figure, and whether a printed one lies
    within.

    Error rates are recomputed from the transcripts that the run keeps; no audio is needed.

    Example: podeval report certificate runs/real_pod/demo/hibari_piper --printed 1.30
    """
    from podeval.leaderboard.certificate import ERROR_RATES, certify, explain

    unit = 100.0 if key in ERROR_RATES else 1.0
    certified = certify(
        _open(run),
        key,
        others=[_open(path) for path in against or []],
        people=_open(people) if people else None,
        printed=None if printed is None else printed / unit,
    )
    if as_json:
        more = {"extent": certified.extent, "inside": certified.is_inside, "inside_interval": certified.is_in_interval}
        emit(asdict(certified) | more)
    else:
        print("\n".join(explain(certified, unit)))


def _open(path: Path) -> "RunFolder":
    """Open the folder of a run.

    Raises:
        BadInput: it is none.
    """
    from podeval.runs.run_folder import RunFolder

    folder = path.resolve()
    if not (folder / "run.json").is_file():
        raise BadInput(f"{path} is not a run: it contains no run.json; give a folder such as runs/real_pod/demo/SYSTEM")
    return RunFolder(folder.parents[2], folder.parent.parent.name, folder.parent.name, folder.name)
