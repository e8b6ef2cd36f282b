"""`podeval data construct podbench`: documents taken, clustered, requests written, reviewed, finished."""

from pathlib import Path
from typing import Annotated

import typer

from podeval.cli.construct import AcceptAll, ComparedWork, JudgedWork, Work, compared_step, judged_step, step
from podeval.cli.lazy_commands import FullHelpGroup

podbench = typer.Typer(
    help="Write requests for podcast scripts with their materials, as in PodBench.\n\n"
    "Example: podeval data construct podbench take articles/*.txt --into my_requests",
    no_args_is_help=True,
    cls=FullHelpGroup,
)


@step(podbench)
def take(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="text files, or JSON Lines with `text`")],
) -> Work:
    """Import documents: each text file, or each line of a JSON Lines file, is one.

    Example: podeval data construct podbench take articles/*.txt --into my_requests
    """
    from podeval.construction import podbench as steps

    return lambda workshop: steps.take(workshop, files)


@compared_step(podbench)
def cluster(
    alike: Annotated[float, typer.Option(min=0, max=1, help="mean cosine from which clusters are merged")] = 0.5,
    most: Annotated[int, typer.Option(min=1, help="largest number of documents in a cluster")] = 10,
) -> ComparedWork:
    """Ask for a topic query for each document, and cluster documents with similar queries.

    Example: podeval data construct podbench cluster --into my_requests --judge MODEL@https://host/v1
    """
    from podeval.construction import podbench as steps

    return lambda workshop, judging, encode: steps.cluster(workshop, judging, encode, alike=alike, most=most)


@judged_step(podbench)
def write(seed: Annotated[int, typer.Option(help="random seed of the draw of dimensions")] = 0) -> JudgedWork:
    """Have a request written for every cluster, filter the requests and write the table for the review.

    Example: podeval data construct podbench write --into my_requests --judge MODEL@https://host/v1
    """
    from podeval.construction import podbench as steps

    return lambda workshop, judging: steps.write(workshop, judging, seed=seed)


@step(podbench)
def finish(
    accept_all: AcceptAll = False,
    tokenizer: Annotated[
        Path | None, typer.Option(metavar="FILE", help="tokenizer.json to count inputs with, such as Qwen3-8B's")
    ] = None,
) -> Work:
    """Read the review and write the accepted requests as a source of the dataset, with statistics and a plot.

    Example: podeval data construct podbench finish --into my_requests --tokenizer qwen3/tokenizer.json
    """
    from podeval.construction import podbench as steps
    from podeval.construction.counting import make_token_counter

    count = make_token_counter(tokenizer) if tokenizer else None
    name = str(tokenizer or "")
    return lambda workshop: steps.finish(workshop, accept_all=accept_all, tokens=count, tokenizer=name)
