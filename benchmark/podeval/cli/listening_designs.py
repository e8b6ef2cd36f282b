"""`podeval listening new`, `check` and `add`: draft, check and add designs of listening tests."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podeval.cli.database import DEFAULT, RUNS, Place, Runs, open_database, resolve_database
from podeval.errors import BadInput

if TYPE_CHECKING:
    from podeval.listening.designs import Design

PROLIFIC = "PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"
DESIGN = Annotated[Path, typer.Argument(metavar="DESIGN", help="a YAML file, as described in docs/listening-tests.md")]


def new(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="kind of test: mos, mushra or abx")],
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="YAML file of the design, in a folder that contains all recordings")
    ],
    more: Annotated[list[Path] | None, typer.Argument(metavar="[FOLDER]...", help="more folders of systems")] = None,
    systems: Annotated[
        list[Path] | None, typer.Option(metavar="FOLDER...", help="folders of recordings, one for each system")
    ] = None,
    reference: Annotated[Path | None, typer.Option(metavar="FOLDER", help="references of a MUSHRA test")] = None,
    high: Annotated[Path | None, typer.Option(metavar="FOLDER", help="folder of the hidden high anchors")] = None,
    low: Annotated[Path | None, typer.Option(metavar="FOLDER", help="folder of the hidden low anchors")] = None,
    scales: Annotated[list[str] | None, typer.Option("--scale", help="scale of a MOS test; ACR by default")] = None,
) -> None:
    """Write the design of a test from folders of recordings; recordings are matched by file name.

    Example: podeval listening new mos --systems aria/ basso/ --out test.yaml
    """
    import yaml

    from podeval.files import write_whole
    from podeval.listening.designs import measure_durations
    from podeval.listening.planning import draft_design

    if out.exists():
        raise BadInput(f"{out} already exists; delete it, or choose another file with --out")
    anchors = {"reference": reference, "high": high, "low": low}
    roles = {name: folder for name, folder in anchors.items() if folder is not None}
    design = draft_design(kind, [*(systems or ()), *(more or ())], out, roles, scales or ["ACR"])
    _print_design(measure_durations(design, out.parent))
    content = design.model_dump(mode="json", exclude_defaults=True)
    write_whole(out, yaml.safe_dump(content, sort_keys=False, allow_unicode=True).encode())
    print(f"wrote {out}; next, run `podeval listening add {out}`")


def check(
    design: DESIGN,
    webmushra: Annotated[bool, typer.Option("--webmushra", help="the design is a webMUSHRA configuration")] = False,
    as_yaml: Annotated[bool, typer.Option("--yaml", help="print the design with the duration of every file")] = False,
) -> None:
    """Check a design, and show a listener's pages, the time that they take, and the number of marks for each system.

    Example: podeval listening check naturalness.yaml
    """
    import yaml

    for each in _designs(design, webmushra):
        if as_yaml:
            print(yaml.safe_dump(each.model_dump(mode="json", exclude_defaults=True), sort_keys=False), end="")
        else:
            _print_design(each)


def _print_design(design: "Design") -> None:
    """Print a listener's pages, the number of marks for each system, and the standards of the scales."""
    from podeval.listening.designs import PAIRED, SPREAD
    from podeval.listening.listener_pages import count_marks
    from podeval.listening.questionnaire import describe_scales

    estimate = round(design.estimate(design.items_heard))
    minutes = f"about {estimate} minutes" if estimate > 1 else "about a minute"
    things = f"{count_of(len(design.systems), 'system')}, {count_of(len(design.items), 'item')}"
    print(
        f"{design.id}: {design.kind}, {things}; "
        f"{count_of(design.listeners, 'listener')} with {count_of(design.items_heard, 'item')} each, {minutes}"
    )
    pages, marks = count_marks(design)
    least, most = min(marks[name] for name in design.systems), max(marks.values())
    range_of_marks = count_of(most, "mark") if least == most else f"{least} to {count_of(most, 'mark')}"
    count = count_of(pages, "page")
    if design.kind in SPREAD and not design.each:
        unit, each = ("pairs", len(design.pairs)) if design.kind in PAIRED else ("recordings", len(design.systems))
        count = f"{pages} of {each * len(design.items)} {unit} (with `each: all` in the design, all of them)"
    print(
        f"  each listener rates {count}; each system gets {range_of_marks}{' per scale' if design.scales[1:] else ''}"
    )
    for line in describe_scales(design.kind, design.scales):
        print(f"  {line}")


def count_of(number: int, name: str) -> str:
    """Return a number followed by a noun in the singular or plural; `name` is the singular."""
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


def add(
    design: DESIGN,
    database: Place = DEFAULT,
    runs: Runs = RUNS,
    webmushra: Annotated[bool, typer.Option("--webmushra", help="the design is a webMUSHRA configuration")] = False,
    url: Annotated[
        str, typer.Option(envvar="PODEVAL_URL", help="address of the site, for the links")
    ] = "http://127.0.0.1:7860",
) -> None:
    """Import a test so that listeners can start, and print its links and number of pages.

    Example: podeval listening add naturalness.yaml
    """
    from podeval.listening import Listening
    from podeval.listening.designs import resolve_recordings
    from podeval.listening.listener_pages import count_marks

    tests = [resolve_recordings(each, _folder_of(each, design, webmushra)) for each in _designs(design, webmushra)]
    with open_database(resolve_database(database, runs)) as opened:
        for each in tests:
            link = f"{url.rstrip('/')}/listen/{Listening(opened).create(each)}"
            print(f"{each.id}: {count_of(count_marks(each)[0], 'page')} for each listener")
            print(f"  {link}?pid=NAME (choose a different NAME for each listener)")
            print(f"  {link}?{PROLIFIC} (on Prolific)")


def _designs(path: Path, webmushra: bool) -> "list[Design]":
    from podeval.listening import designs
    from podeval.listening import webmushra as files

    if not webmushra:
        return [designs.measure_durations(designs.read_design(path), path.parent)]
    configuration = files.read_configuration(path)
    for note in configuration.notes:
        print(note, file=sys.stderr)
    return [designs.measure_durations(each, _folder_of(each, path, webmushra)) for each in configuration.designs]


def _folder_of(design: "Design", path: Path, webmushra: bool) -> Path:
    """Return the base folder of a design's relative paths; webMUSHRA's paths start from the folder above its `configs`.

    Raises:
        BadInput: recordings of a webMUSHRA configuration are in neither folder; the message names them.
    """
    if not webmushra:
        return path.parent
    names = design.recordings
    folders = (path.parent, path.parent.resolve().parent)
    missing = [[name for name in names if not (folder / name).is_file()] for folder in folders]
    fewest = min((0, 1), key=lambda number: len(missing[number]))
    if gone := missing[fewest]:
        more = f" and {len(gone) - 5} more" if gone[5:] else ""
        raise BadInput(
            f"{len(gone)} of {len(names)} recordings are missing: {', '.join(gone[:5])}{more}; put them in "
            f"{folders[0]} or, as in webMUSHRA, in {folders[1]}"
        )
    return folders[fewest]
