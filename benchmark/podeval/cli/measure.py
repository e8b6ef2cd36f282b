"""`podeval measure`: one metric on files."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podeval.cli.judge_refresh import Refresh
from podeval.errors import BadInput, PodevalError

if TYPE_CHECKING:
    from podeval.metrics.declaration import Metric
    from podeval.metrics.judge_use import JudgeConfig
    from podeval.metrics.score import Result

TEXT_SUFFIXES = {".txt", ".json", ".jsonl", ".md"}

Files = Annotated[list[Path], typer.Argument(metavar="FILE", help="audio, or scripts for the script metrics")]
Name = Annotated[str, typer.Argument(metavar="METRIC", help="its name; `podeval metrics list` shows all")]


def measure(
    name: Name,
    files: Files,
    reference: Annotated[
        list[Path] | None,
        typer.Option(
            help="file to compare with: a voice's recording or SPEAKER=FILE (repeatable), a script, a request, a text"
        ),
    ] = None,
    text: Annotated[
        list[Path] | None,
        typer.Option(help="a file with the words that should be heard, plain or a script; one for all, or one a file"),
    ] = None,
    profile: Annotated[str, typer.Option(help="whose models: embedded or reference")] = "embedded",
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="a choice of the metric; may be repeated")
    ] = None,
    judge: Annotated[
        str,
        typer.Option(help="who judges: MODEL@https://host/v1, gguf:FILE, transformers:REPO@COMMIT, records:FOLDER"),
    ] = "",
    records: Annotated[
        Path | None, typer.Option(help="folder for the judge's raw answers; in podeval's cache without it")
    ] = None,
    refresh: Refresh = None,
    allow_upsampling: Annotated[
        bool, typer.Option("--allow-upsampling", help="score recordings below a model's rate all the same")
    ] = False,
    timeline: Annotated[bool, typer.Option("--timeline", help="with --json, the values of every window too")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object a file on standard output")] = False,
) -> None:
    """Score files with one metric.

    Example: podeval measure loudness episode.wav --json

    Example: podeval measure wer episode.wav --text script.json --set normaliser=basic

    Example: podeval measure script_quality script.json --judge MODEL@https://host/v1 --records judgements

    Example: podeval measure dialogue_judge script.json --reference human.json --judge judge.yaml

    Example: podeval measure sim episode.wav --text script.json --reference HOST=host.wav --reference GUEST=guest.wav
    """
    from podeval.cli.progress_bar import listening
    from podeval.metrics import catalogue
    from podeval.metrics.compute import protocol_for, provenance
    from podeval.metrics.judge_use import JudgeConfig
    from podeval.metrics.score import Unscored
    from podeval.models import registry
    from podeval.store.copies import register

    metric = catalogue.get(name)
    registry.require_profile(profile)
    parameters = metric.read_parameters(_settings(settings or []))
    bench = _bench(metric, JudgeConfig(judge, records, refresh=refresh.value if refresh else ""))
    if records:
        register("records", [records], None)
    asked = bench.judging(metric.asks, parameters) if metric.asks else None
    options = {"profile": profile, "allow_upsampling": allow_upsampling}
    voices = _voices(metric, reference or [], options)
    files, texts = _with_texts(metric, files, [*(text or []), *([] if voices else reference or [])])
    given = (*metric.inputs, *(("script",) if texts and "script" in metric.optional_inputs else ()))
    protocol = protocol_for(metric, parameters, given, profile, bench).to_json() | {"provenance": provenance(profile)}
    worst = 0
    for number, file in enumerate(files):
        result: Result
        try:
            words = texts[number % len(texts)] if texts else None
            with listening(file.name):
                result = metric(_inputs(metric, file, words, options) | voices, parameters, asked)
        except PodevalError as refusal:
            worst = 2
            result = Unscored(str(refusal), "system" if isinstance(refusal, BadInput) else "ours")
        worst = max(worst, int(isinstance(result, Unscored)))
        if as_json:
            shown = result.to_json() if timeline else result.to_json() | {"timeline": None}
            line = {"file": str(file), **shown, "protocol": protocol}
            print(
                json.dumps(
                    {k: v for k, v in line.items() if k != "timeline" or v}, ensure_ascii=False, allow_nan=False
                ),
                flush=True,
            )
        else:
            print(f"{file}: {_said(result)}", flush=True)
    if not as_json:
        print(f"protocol {protocol['id']}, profile {profile}", file=sys.stderr)
    raise typer.Exit(worst)


def _bench(metric: "Metric", bench: "JudgeConfig") -> "JudgeConfig":
    """Who judges.

    Raises:
        BadInput: the metric asks nobody.
    """
    if metric.asks is None and (bench.judge or bench.records):
        raise BadInput(f"{metric.name} asks no judge; leave out --judge and --records")
    return bench


def _voices(metric: "Metric", given: list[Path], options: dict[str, Any]) -> dict[str, Any]:
    """The reference voices a metric compares with: one recording, one a speaker, or a JSON file of them.

    Raises:
        BadInput: the metric needs some and there are none, or several without their speakers' names.
    """
    from podeval.metrics.read_inputs import read_input

    if metric.reference != "reference_voices":
        return {}
    if not given:
        raise BadInput(f"{metric.name} needs the voice to compare with: add --reference FILE, or SPEAKER=FILE for each")
    named = [str(path).partition("=") for path in given if not path.exists()]
    if not named and len(given) == 1:
        source: Any = str(given[0])
    elif len(named) == len(given) and all(sign for _, sign, _ in named):
        source = {speaker: path for speaker, _, path in named}
    else:
        source = str(given[0]) if len(given) == 1 else None
    if source is None:
        raise BadInput("several reference voices need their speakers: write --reference SPEAKER=FILE for each")
    return {"reference_voices": read_input("reference_voices", source, **options)}


def _with_texts(metric: "Metric", files: list[Path], texts: list[Path]) -> tuple[list[Path], list[Path]]:
    """What is measured, and the texts that go with it: none, one for all, or one a file.

    Raises:
        BadInput: the metric has no use for a text, lacks one, or their numbers do not fit.
    """
    from podeval.metrics.declaration import INPUTS

    if metric.inputs[0] == "recording" and texts:
        texts = [*texts, *(path for path in files if path.suffix.lower() in TEXT_SUFFIXES)]
        files = [path for path in files if path.suffix.lower() not in TEXT_SUFFIXES]
    wanted = metric.reference if metric.inputs[0] != "recording" else None
    if wanted and not texts:
        raise BadInput(f"{metric.name} also needs {INPUTS[wanted]}: add --reference FILE")
    if texts and not wanted and not {"script", "reference_text"} & {*metric.inputs[1:], *metric.optional_inputs}:
        raise BadInput(f"{metric.name} compares with nothing; leave out --text and --reference")
    if "reference_text" in metric.inputs and not texts:
        raise BadInput(f"{metric.name} needs the words that should be heard: add --text FILE (text, or a script)")
    if texts and len(texts) not in (1, len(files)):
        raise BadInput(f"there are {len(files)} files and {len(texts)} texts; give one text, or one for each file")
    return files, texts


def _inputs(metric: "Metric", file: Path, words: Path | None, options: dict[str, Any]) -> dict[str, Any]:
    """What the metric gets for one file."""
    from podeval.metrics.read_inputs import read_input
    from podeval.text.script_format import any_script
    from podeval.text.text_file import read_text

    first = metric.inputs[0]
    if first != "recording":
        against = {metric.reference: words} if metric.reference and words else {}
        sources = {first: file, **against}
        return {name: read_input(name, read_text(path), **options) for name, path in sources.items()}
    script = any_script(read_text(words)) if words else None
    spoken = {"reference_text": script.text, "script": script} if script else {}
    return {"recording": read_input("recording", file, **options), **spoken}


def _said(result: "Result") -> str:
    from podeval.metrics.score import Unscored

    if isinstance(result, Unscored):
        return f"unscored: {result.reason}"
    values = "  ".join(f"{key} {_number(value)}" for key, value in result.values.items())
    drifts = result.timeline.drift if result.timeline else {}
    slopes = [f"{key} {_slope(trend)}" for key, trend in drifts.items() if key != "per"]
    if scored := result.notes.get("scored"):
        values += f"\n  scored: the {scored}, as there are {result.notes.get('music_seconds', 0):.1f} s of music"
    return values + (f"\n  drift per {drifts['per']} [95 %]: {'  '.join(slopes)}" if slopes else "")


def _slope(trend: dict[str, Any]) -> str:
    low, high = trend["ci95"]
    return f"{trend['slope']:+.3g} [{low:+.3g}, {high:+.3g}]"


def _settings(pairs: list[str]) -> dict[str, str]:
    split = [pair.partition("=") for pair in pairs]
    for key, sign, _ in split:
        if not sign:
            raise BadInput(f"--set takes KEY=VALUE, such as --set variant=podeval, not {key!r}")
    names = [key.strip() for key, _, _ in split]
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise BadInput(f"--set gives {', '.join(twice)} twice; give it once, and measure again for another value")
    return {key.strip(): value.strip() for key, _, value in split}


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"
