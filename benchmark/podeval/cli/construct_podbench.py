"""`podeval data construct podbench`: documents taken, clustered, requests written, reviewed, finished."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podeval.cli.construct import (
    AcceptAll,
    Into,
    JudgeName,
    MostCost,
    MostTokens,
    Profile,
    Workers,
    asking,
    at_work,
    encoder,
)

if TYPE_CHECKING:
    from podeval.construction.staged_rows import StepReport, Workshop

podbench = typer.Typer(
    help="Requests for podcast scripts with their materials, as in PodBench.\n\n"
    "Example: podeval data construct podbench take articles/*.txt --into my_requests",
    no_args_is_help=True,
)


@podbench.command()
def take(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="text files, or JSON Lines with `text`")],
    into: Into,
) -> None:
    """Take in documents: each text file is one, and so is each line of JSON Lines.

    Example: podeval data construct podbench take articles/*.txt --into my_requests
    """
    from podeval.construction import podbench as steps

    at_work(into, lambda workshop: steps.take(workshop, files))


@podbench.command()
def cluster(
    into: Into,
    judge: JudgeName,
    alike: Annotated[float, typer.Option(min=0, max=1, help="mean cosine from which clusters become one")] = 0.5,
    most: Annotated[int, typer.Option(min=1, help="documents in a cluster, at most")] = 10,
    profile: Profile = "embedded",
    workers: Workers = 4,
    most_tokens: MostTokens = None,
    most_cost: MostCost = None,
) -> None:
    """Ask for a topic query of each document, and put documents with like queries together.

    Example: podeval data construct podbench cluster --into my_requests --judge MODEL@https://host/v1
    """
    from podeval.construction import podbench as steps

    def work(workshop: "Workshop") -> "StepReport":
        with asking(workshop, judge, workers, most_tokens, most_cost) as judging:
            return steps.cluster(workshop, judging, encoder(profile), alike=alike, most=most)

    at_work(into, work)


@podbench.command()
def write(
    into: Into,
    judge: JudgeName,
    seed: Annotated[int, typer.Option(help="of the draw of dimensions")] = 0,
    workers: Workers = 4,
    most_tokens: MostTokens = None,
    most_cost: MostCost = None,
) -> None:
    """Have a request written for every cluster, filter them, write the table for the review.

    Example: podeval data construct podbench write --into my_requests --judge MODEL@https://host/v1
    """
    from podeval.construction import podbench as steps

    def work(workshop: "Workshop") -> "StepReport":
        with asking(workshop, judge, workers, most_tokens, most_cost) as judging:
            return steps.write(workshop, judging, seed=seed)

    at_work(into, work)


@podbench.command()
def finish(
    into: Into,
    accept_all: AcceptAll = False,
    tokenizer: Annotated[
        Path | None, typer.Option(metavar="FILE", help="a tokenizer.json that inputs are counted by, as Qwen3-8B's")
    ] = None,
) -> None:
    """Read the review; write what was kept as a source of the dataset, with statistics and a plot.

    Example: podeval data construct podbench finish --into my_requests --tokenizer qwen3/tokenizer.json
    """
    from podeval.construction import podbench as steps
    from podeval.construction.counting import make_token_counter

    count = make_token_counter(tokenizer) if tokenizer else None
    name = str(tokenizer or "")
    at_work(into, lambda workshop: steps.finish(workshop, accept_all=accept_all, tokens=count, tokenizer=name))
