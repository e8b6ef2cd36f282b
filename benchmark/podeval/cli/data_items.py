"""`podeval data items`: what a benchmark asks of a system, for whoever makes the outputs elsewhere."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podeval.cli.completion import complete_benchmark, complete_split, complete_track
from podeval.cli.output import AsJson

if TYPE_CHECKING:
    from podeval.systems.ask import Ask


def items(
    benchmark: Annotated[
        str, typer.Argument(metavar="BENCHMARK", help="which benchmark", autocompletion=complete_benchmark)
    ] = "real_pod",
    split: Annotated[
        str,
        typer.Option(
            help="split of the benchmark; by default the one that ships with podeval", autocompletion=complete_split
        ),
    ] = "",
    track: Annotated[
        str, typer.Option(help="track of the benchmark; by default the split's first", autocompletion=complete_track)
    ] = "",
    data: Annotated[
        Path | None, typer.Option(help="folder of the dataset, made by `podeval data build`; ./NAME by default")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print what a system is asked to speak, write or answer, under the name of the file that its output should have.

    Make these files with your system and measure them by `podeval run --outputs FOLDER`.

    Example: podeval data items real_pod --split demo

    Example: podeval data items lfs_bench --json > items.jsonl
    """
    from podeval import benchmarks
    from podeval.runs.asks import ask_of
    from podeval.runs.run import RunRequest, read_items
    from podeval.text.terminal_safe import make_printable

    chosen = benchmarks.get(benchmark)
    part = chosen.split(split) if split else chosen.first_split
    track = track or part.tracks[0]
    for item in read_items(RunRequest(chosen, part.name, track, Path(), data=data)).items:
        ask = ask_of(track, item)
        print(ask.model_dump_json(exclude_none=True) if as_json else make_printable(_describe(ask)))


def _describe(ask: "Ask") -> str:
    """Write a task for a person: the files' names, and under each what is to be in it."""
    voices = [f"  voice of {speaker}: {voice.audio}" for speaker, voice in ask.voices.items()]
    if ask.script is not None:
        return "\n".join([f"{ask.id}.wav", *voices, *(f"  {turn.speaker}: {turn.text}" for turn in ask.script), ""])
    if ask.prompt is not None:
        return "\n".join([f"{ask.id}.json", *(f"  {line}" for line in ask.prompt.splitlines()), ""])
    turns = (
        line
        for turn in ask.user or ()
        for line in (f"{ask.id}/{turn.id}.wav", f"  answers {turn.audio}" if turn.audio else "", f"  {turn.words}")
    )
    return "\n".join([*(line for line in turns if line.strip()), ""])
