"""`podeval data construct podbench`: documents taken, clustered, requests written, reviewed, finished."""

from pathlib import Path
from typing import Annotated

import typer

from podeval.cli.construct import AcceptAll, ComparedWork, JudgedWork, Work, compared_step, judged_step, step

podbench = typer.Typer(
    help="Requests for podcast scripts with their materials, as in PodBench.\n\n"
    "Example: podeval data construct podbench take articles/*.txt --into my_requests",
    no_args_is_help=True,
)


@step(podbench)
def take(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="text files, or JSON Lines with `text`")],
) -> Work:
    """Take in documents: each text file is one, and so is each line of JSON Lines.

    Example: podeval data construct podbench take articles/*.txt --into my_requests
    """
    from podeval.construction import podbench as steps

    return lambda workshop: steps.take(workshop, files)


@compared_step(podbench)
def cluster(
    alike: Annotated[float, typer.Option(min=0, max=1, help="mean cosine from which clusters become one")] = 0.5,
    most: Annotated[int, typer.Option(min=1, help="documents in a cluster, at most")] = 10,
) -> ComparedWork:
    """Ask for a topic query of each document, and put documents with like queries together.

    Example: podeval data construct podbench cluster --into my_requests --judge MODEL@https://host/v1
    """
    from podeval.construction import podbench as steps

    return lambda workshop, judging, encode: steps.cluster(workshop, judging, encode, alike=alike, most=most)


@judged_step(podbench)
def write(seed: Annotated[int, typer.Option(help="of the draw of dimensions")] = 0) -> JudgedWork:
    """Have a request written for every cluster, filter them, write the table for the review.

    Example: podeval data construct podbench write --into my_requests --judge MODEL@https://host/v1
    """
    from podeval.construction import podbench as steps

    return lambda workshop, judging: steps.write(workshop, judging, seed=seed)


@step(podbench)
def finish(
    accept_all: AcceptAll = False,
    tokenizer: Annotated[
        Path | None, typer.Option(metavar="FILE", help="a tokenizer.json that inputs are counted by, as Qwen3-8B's")
    ] = None,
) -> Work:
    """Read the review; write what was kept as a source of the dataset, with statistics and a plot.

    Example: podeval data construct podbench finish --into my_requests --tokenizer qwen3/tokenizer.json
    """
    from podeval.construction import podbench as steps
    from podeval.construction.counting import make_token_counter

    count = make_token_counter(tokenizer) if tokenizer else None
    name = str(tokenizer or "")
    return lambda workshop: steps.finish(workshop, accept_all=accept_all, tokens=count, tokenizer=name)
