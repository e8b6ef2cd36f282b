"""`podeval measure`: one metric on files."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podeval.cli.completion import complete_metric, complete_profile, complete_setting
from podeval.cli.output import AsJson, emit
from podeval.errors import BadInput, PodevalError

if TYPE_CHECKING:
    from podeval.metrics.declaration import Metric
    from podeval.metrics.score import Result


class Anew(StrEnum):
    """What of a judge's records is asked anew."""

    FAILED = "failed"
    ALL = "all"


Refresh = Annotated[
    Anew | None,
    typer.Option(
        help="ask the judge again, although there are records: all questions, or only those that failed; "
        "earlier answers are kept",
    ),
]
Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE|SYSTEM", help="audio, scripts for the script metrics, or names of systems for arena, mos, mushra"
    ),
]
Name = Annotated[
    str,
    typer.Argument(
        metavar="METRIC",
        help="name of the metric; `podeval metrics list` shows all",
        autocompletion=complete_metric,
    ),
]


def measure(
    name: Name,
    files: Files,
    reference: Annotated[
        list[Path] | None,
        typer.Option(
            help="file to compare with: a voice's recording or SPEAKER=FILE (repeatable), a script, a text, or the "
            "votes, marks or answers of people"
        ),
    ] = None,
    text: Annotated[
        list[Path] | None,
        typer.Option(
            help=(
                "file with the words that should be heard, as plain text or a script; "
                "one for all recordings or one for each"
            )
        ),
    ] = None,
    request: Annotated[
        list[Path] | None,
        typer.Option(help="file with what was asked for, as text or JSON; one for all scripts or one for each"),
    ] = None,
    profile: Annotated[
        str, typer.Option(help="models to use: embedded or reference", autocompletion=complete_profile)
    ] = "embedded",
    speakers: Annotated[int | None, typer.Option(help="number of people who speak, if known")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="set a parameter of the metric, as NAME=VALUE (repeatable)",
            autocompletion=complete_setting,
        ),
    ] = None,
    judge: Annotated[
        str,
        typer.Option(help="the judge: MODEL@https://host/v1, gguf:FILE, transformers:REPO@COMMIT, records:FOLDER"),
    ] = "",
    records: Annotated[
        Path | None, typer.Option(help="folder for the judge's raw answers; podeval's cache by default")
    ] = None,
    refresh: Refresh = None,
    allow_upsampling: Annotated[
        bool, typer.Option("--allow-upsampling", help="also score recordings whose sample rate is below the model's")
    ] = False,
    timeline: Annotated[
        bool, typer.Option("--timeline", help="with --json, also print the values of every window")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Score files with one metric.

    Example: podeval measure loudness episode.wav --json

    Example: podeval measure wer episode.wav --text script.json --set normaliser=basic

    Example: podeval measure script_quality script.json --judge MODEL@https://host/v1 --records judgements

    Example: podeval measure arena kokoro --reference votes.jsonl

    Example: podeval measure instruction_following script.json --request request.json --judge judge.yaml

    Example: podeval measure dialogue_judge script.json --reference human.json --judge judge.yaml

    Example: podeval measure sim episode.wav --text script.json --reference HOST=host.wav --reference GUEST=guest.wav
    """
    from podeval.cli.progress_bar import show_progress
    from podeval.measuring.compute import describe_protocol, note_inputs, open_inputs, score_items
    from podeval.measuring.inputs import read_inputs_from_files
    from podeval.metrics import catalogue
    from podeval.metrics.judge_use import JudgeConfig
    from podeval.metrics.score import Cause, Unscored
    from podeval.models import registry

    metric = catalogue.get(name)
    registry.require_profile(profile)
    values = _parse_settings(settings or [])
    if speakers is not None and values.setdefault("speakers", str(speakers)) != str(speakers):
        raise BadInput(f"--speakers says {speakers} and --set speakers={values['speakers']}; give only one of the two")
    chosen = metric.read_parameters(values)
    if metric.asks is None and (judge or records):
        raise BadInput(f"{metric.name} asks no judge; leave out --judge and --records")
    bench = JudgeConfig(judge, records, refresh=refresh.value if refresh else "")
    client = bench.judging(metric.asks, chosen) if metric.asks else None
    options = {"profile": profile, "allow_upsampling": allow_upsampling}
    items = read_inputs_from_files(metric, files, reference or [], text or [], request or [], **options)
    names = tuple(items[0][1]) if items else metric.inputs
    protocol = describe_protocol(metric, chosen, names, profile, bench)
    worst = 0
    results: list[Result] = []
    short_names = _name_files([file for file, _ in items], as_json)
    with show_progress(metric.name) as steps:
        for number, ((file, inputs), short_name) in enumerate(zip(items, short_names, strict=True)):
            result: Result | PodevalError
            opened: dict[str, Any] | Unscored = {}
            try:
                steps.step("files", number, len(items))
                opened = open_inputs(metric, inputs)
                if isinstance(opened, Unscored):
                    raise BadInput(opened.reason)
                (result,) = score_items(metric, [opened], chosen, client)
                result = result if isinstance(result, PodevalError) else note_inputs(result, inputs, opened)
            except PodevalError as error:
                result = error
            problem = f"error: {result}" if isinstance(result, PodevalError) else ""
            if isinstance(result, PodevalError):
                worst = 2
                cause: Cause = "system" if isinstance(result, BadInput) else "ours"
                result = opened if isinstance(opened, Unscored) else Unscored(str(result), cause)
            worst = max(worst, int(isinstance(result, Unscored)))
            results.append(result)
            if as_json:
                line = {"file": str(file), **result.to_json(), "protocol": protocol}
                if not timeline or not line.get("timeline"):
                    line.pop("timeline", None)
                emit(line, allow_nan=False)
            else:
                print(f"{short_name}: {problem or _describe_result(metric, result)}", flush=True)
    if not as_json:
        _print_means(metric, results)
        print(f"protocol {protocol['id']}, profile {profile}", file=sys.stderr)
    raise typer.Exit(worst)


def _name_files(files: "list[Path]", as_json: bool) -> list[str]:
    """Return the names under which results are printed; JSON has whole paths."""
    if as_json:
        return [""] * len(files)
    from podeval.text.short_names import shorten_names

    return shorten_names(list(map(str, files)))


def _print_means(metric: "Metric", results: "list[Result]") -> None:
    """Print the mean of each value over the files that have it, with its 95 % interval, where there are several."""
    from podeval.metrics.aggregate import aggregate
    from podeval.metrics.score import Score

    scored = sum(isinstance(result, Score) for result in results)
    if scored < 2:
        return
    means = [
        f"{key} {_format_number(mean.mean)}{f' [{mean.low:.4g}, {mean.high:.4g}]' if mean.low is not None else ''}"
        for key, mean in aggregate(metric, results).intervals.items()
        if mean is not None
    ]
    print(f"mean of {scored} [95 %]: {'  '.join(means)}")


def _describe_result(metric: "Metric", result: "Result") -> str:
    from podeval.metrics.score import Unscored, describe_notes

    if isinstance(result, Unscored):
        return f"unscored: {result.reason}"
    units = {key.name: key.unit_text for key in metric.keys}
    values = "  ".join(
        f"{key} {_format_number(value)} {units.get(key, '')}".rstrip() for key, value in result.values.items()
    )
    drifts = result.timeline.drift if result.timeline else {}
    # A slope whose interval holds zero says nothing.
    slopes = [f"{key} {_format_slope(trend)}" for key, trend in drifts.items() if key != "per" and is_clear(trend)]
    noted = [
        *describe_notes(result),
        *(f"{name}: {one}" for name in ("file", "text") for one in result.notes.get(name, ())),
    ]
    values += "".join(f"\n  {sentence}" for sentence in noted)
    return values + (f"\n  drift per {drifts['per']} [95 %]: {'  '.join(slopes)}" if slopes else "")


def is_clear(trend: dict[str, Any]) -> bool:
    """Tell whether the interval of a slope leaves out zero."""
    low, high = trend["ci95"]
    return bool(low > 0 or high < 0)


def _format_slope(trend: dict[str, Any]) -> str:
    low, high = trend["ci95"]
    return f"{trend['slope']:+.3g} [{low:+.3g}, {high:+.3g}]"


def _parse_settings(pairs: list[str]) -> dict[str, str]:
    split = [pair.partition("=") for pair in pairs]
    for key, sign, _ in split:
        if not sign:
            raise BadInput(f"--set takes KEY=VALUE, such as --set variant=podeval, not {key!r}")
    names = [key.strip() for key, _, _ in split]
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise BadInput(f"--set gives {', '.join(twice)} twice; give it once, and measure again for another value")
    return {key.strip(): value.strip() for key, _, value in split}


def _format_number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"
