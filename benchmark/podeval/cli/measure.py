"""`podeval measure`: one metric on files."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podeval.errors import BadInput, PodevalError

if TYPE_CHECKING:
    from podeval.metrics.declaration import Metric
    from podeval.metrics.score import Result

TEXT_SUFFIXES = {".txt", ".json", ".jsonl", ".md"}

Files = Annotated[list[Path], typer.Argument(metavar="FILE", help="audio, or scripts for the script metrics")]
Name = Annotated[str, typer.Argument(metavar="METRIC", help="its name; `podeval metrics list` shows all")]


def measure(
    name: Name,
    files: Files,
    reference: Annotated[
        list[Path] | None,
        typer.Option(help="the same as --text for wer; no metric of this version takes a reference recording"),
    ] = None,
    text: Annotated[
        list[Path] | None,
        typer.Option(help="what should be heard, as text or a script in JSON; one for all files, or one a file"),
    ] = None,
    profile: Annotated[str, typer.Option(help="whose models: embedded or reference")] = "embedded",
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="a choice of the metric; may be repeated")
    ] = None,
    allow_upsampling: Annotated[
        bool, typer.Option("--allow-upsampling", help="score recordings below a model's rate all the same")
    ] = False,
    timeline: Annotated[bool, typer.Option("--timeline", help="with --json, the values of every window too")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object a file on standard output")] = False,
) -> None:
    """Score files with one metric.

    Example: podeval measure loudness episode.wav --json

    Example: podeval measure wer episode.wav --text script.json --set normaliser=basic
    """
    from podeval.metrics import catalogue
    from podeval.metrics.compute import protocol_for, provenance
    from podeval.metrics.score import Unscored
    from podeval.models import registry

    metric = catalogue.get(name)
    registry.require_profile(profile)
    parameters = metric.read_parameters(_settings(settings or []))
    files, texts = _with_texts(metric, files, [*(text or []), *(reference or [])])
    given = (*metric.inputs, *(("script",) if texts and "script" in metric.optional_inputs else ()))
    protocol = protocol_for(metric, parameters, given, profile).to_json() | {"provenance": provenance(profile)}
    worst = 0
    for number, file in enumerate(files):
        result: Result
        try:
            words = texts[number % len(texts)] if texts else None
            options = {"profile": profile, "allow_upsampling": allow_upsampling}
            result = metric(_inputs(metric, file, words, options), parameters)
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
            print(f"{file}: {_said(result)}")
    if not as_json:
        print(f"protocol {protocol['id']}, profile {profile}", file=sys.stderr)
    raise typer.Exit(worst)


def _with_texts(metric: "Metric", files: list[Path], texts: list[Path]) -> tuple[list[Path], list[Path]]:
    """What is measured, and the texts that go with it: none, one for all, or one a file.

    Raises:
        BadInput: the metric has no use for a text, lacks one, or their numbers do not fit.
    """
    if metric.inputs[0] == "recording" and texts:
        texts = [*texts, *(path for path in files if path.suffix.lower() in TEXT_SUFFIXES)]
        files = [path for path in files if path.suffix.lower() not in TEXT_SUFFIXES]
    if texts and not {"script", "reference_text"} & {*metric.inputs, *metric.optional_inputs}:
        raise BadInput(f"{metric.name} compares with nothing; leave out --text and --reference")
    if "reference_text" in metric.inputs and not texts:
        raise BadInput(
            f"{metric.name} needs the words that should be heard: add --text FILE (text, or a script in JSON)"
        )
    if texts and len(texts) not in (1, len(files)):
        raise BadInput(f"there are {len(files)} files and {len(texts)} texts; give one text, or one for each file")
    return files, texts


def _inputs(metric: "Metric", file: Path, words: Path | None, options: dict[str, Any]) -> dict[str, Any]:
    """What the metric gets for one file."""
    from podeval.analysis import Recording
    from podeval.text.script import Script

    if metric.inputs[0] != "recording":
        return {"text": Script.parse(read_text(file)).text}
    script = Script.parse(read_text(words)) if words else None
    spoken = {"reference_text": script.text, "script": script} if script else {}
    return {"recording": Recording.open(file, **options), **spoken}


def _said(result: "Result") -> str:
    from podeval.metrics.score import Unscored

    if isinstance(result, Unscored):
        return f"unscored: {result.reason}"
    return "  ".join(f"{key} {_number(value)}" for key, value in result.values.items())


def read_text(path: Path) -> str:
    """A text file's content.

    Raises:
        BadInput: missing, a directory, empty, or not text.
    """
    try:
        content = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BadInput(f"{path} does not exist; check the path") from None
    except IsADirectoryError:
        raise BadInput(f"{path} is a directory; name the files in it") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} cannot be read as UTF-8 text ({error}); save it as plain text or JSON") from None
    if not content.strip():
        raise BadInput(f"{path} is empty; it should hold a text or a script")
    return content


def _settings(pairs: list[str]) -> dict[str, str]:
    split = [pair.partition("=") for pair in pairs]
    for key, sign, _ in split:
        if not sign:
            raise BadInput(f"--set takes KEY=VALUE, such as --set variant=podeval, not {key!r}")
    return {key.strip(): value.strip() for key, _, value in split}


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"
