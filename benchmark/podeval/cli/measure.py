"""`podeval measure`: one metric on files."""

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from podeval.errors import BadInput, PodevalError

TEXT_SUFFIXES = {".txt", ".json", ".jsonl", ".md"}

Files = Annotated[list[Path], typer.Argument(metavar="FILE", help="audio, or scripts for the script metrics")]
Name = Annotated[str, typer.Argument(metavar="METRIC", help="its name; `podeval metrics list` shows all")]


def measure(
    name: Name,
    files: Files,
    reference: Annotated[
        list[Path] | None, typer.Option(help="reference recording, or the text for wer; one, or one a file")
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
    from podeval.metrics.score import Result, Score, Unscored
    from podeval.models import registry

    metric = catalogue.get(name)
    registry.require_profile(profile)
    parameters = metric.read_parameters(_settings(settings or []))
    hears = metric.inputs[0] == "recording"
    texts = [*(text or []), *(path for path in reference or [] if path.suffix.lower() in TEXT_SUFFIXES)]
    if hears and texts:
        texts += [path for path in files if path.suffix.lower() in TEXT_SUFFIXES]
        files = [path for path in files if path.suffix.lower() not in TEXT_SUFFIXES]
    unused = [path for path in reference or [] if path not in texts]
    if unused:
        raise BadInput(f"{metric.name} compares with no reference recording; leave out --reference {unused[0]}")
    takes_text = "script" in metric.optional_inputs or "reference_text" in metric.inputs
    if texts and not takes_text:
        raise BadInput(f"{metric.name} has no use for --text")
    if "reference_text" in metric.inputs and not texts:
        raise BadInput(
            f"{metric.name} needs the words that should be heard: add --text FILE (text, or a script in JSON)"
        )
    if texts and len(texts) not in (1, len(files)):
        raise BadInput(f"there are {len(files)} files and {len(texts)} texts; give one text, or one for each file")

    given = (*metric.inputs, *(("script",) if texts and "script" in metric.optional_inputs else ()))
    protocol = protocol_for(metric, parameters, given, profile).to_json() | {"provenance": provenance(profile)}
    refused = unscored = False
    for number, file in enumerate(files):
        result: Result
        try:
            inputs = _inputs(file, hears, texts[number % len(texts)] if texts else None, given)
            inputs = {key: make(profile, allow_upsampling) if callable(make) else make for key, make in inputs.items()}
            result = metric(inputs, parameters)
        except PodevalError as refusal:
            refused = True
            result = Unscored(str(refusal), "system" if isinstance(refusal, BadInput) else "ours")
        unscored = unscored or isinstance(result, Unscored)
        if as_json:
            line = {"file": str(file), **result.to_json(), "protocol": protocol}
            if not timeline:
                line.pop("timeline", None)
            print(json.dumps(line, ensure_ascii=False, allow_nan=False), flush=True)
        elif isinstance(result, Score):
            shown = "  ".join(f"{key} {_number(value)}" for key, value in result.values.items())
            print(f"{file}: {shown}")
        else:
            print(f"{file}: unscored: {result.reason}")
    if not as_json:
        print(f"protocol {protocol['id']}, profile {profile}", file=sys.stderr)
    raise typer.Exit(2 if refused else 1 if unscored else 0)


def _inputs(file: Path, hears: bool, text: Path | None, given: tuple[str, ...]) -> dict[str, Any]:
    """What the metric gets for one file; a recording as a promise that needs the profile."""
    from podeval.analysis import Recording
    from podeval.text.script import Script

    if not hears:
        return {"text": Script.parse(read_text(file)).text}
    opened: Callable[[str, bool], Recording] = partial(_open, file)
    inputs: dict[str, Any] = {"recording": opened}
    if text is not None:
        script = Script.parse(read_text(text))
        inputs |= {"reference_text": script.text} | ({"script": script} if "script" in given else {})
    return inputs


def _open(file: Path, profile: str, allow_upsampling: bool) -> Any:
    from podeval.analysis import Recording

    return Recording.open(file, profile=profile, allow_upsampling=allow_upsampling)


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
