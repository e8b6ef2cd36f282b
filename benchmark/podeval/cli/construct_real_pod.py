"""`podeval data construct real_pod`: topics suggested, episodes searched for, items."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podeval.cli.construct import AcceptAll, JudgedWork, Work, judged_step, step
from podeval.cli.lazy_commands import FullHelpGroup

if TYPE_CHECKING:
    from podeval.construction.staged_rows import StepReport, Workshop

real_pod = typer.Typer(
    help="Find podcast topics with a published episode each, as in Real-Pod.\n\n"
    "Example: podeval data construct real_pod topics --into my_pod --judge MODEL@https://host/v1",
    no_args_is_help=True,
    cls=FullHelpGroup,
)


@judged_step(real_pod)
def topics(
    category: Annotated[list[str] | None, typer.Option(help="only this one (repeatable)")] = None,
    each: Annotated[int, typer.Option(min=1, help="number of topics per category")] = 5,
) -> JudgedWork:
    """Ask a language model for topics in every category; write a table in which people choose.

    Example: podeval data construct real_pod topics --into my_pod --category Arts --judge judge.yaml
    """
    from podeval.benchmarks.real_pod import CATEGORIES
    from podeval.construction import real_pod as steps

    return lambda workshop, judging: steps.suggest_topics(workshop, judging, category or CATEGORIES, each)


@step(real_pod)
def search(
    country: Annotated[str, typer.Option(help="country of Apple's store, as two letters")] = "us",
    most: Annotated[int, typer.Option(min=1, max=200, help="largest number of episodes per topic")] = 8,
    accept_all: AcceptAll = False,
) -> Work:
    """Search Apple's directory for episodes on the chosen topics; write a table of candidates.

    Searches run one at a time, with pauses, as Apple asks. A second call resumes.

    Example: podeval data construct real_pod search --into my_pod
    """
    from podeval.construction import real_pod as steps
    from podeval.datasets.feeds import ITUNES
    from podeval.datasets.fetch_episodes import make_web

    itunes = os.environ.get("PODEVAL_ITUNES") or ITUNES
    web = make_web(itunes)

    def work(workshop: "Workshop") -> "StepReport":
        scratch = workshop.folder / ".searching"
        read = lambda url, most_bytes: web.read(url, scratch, most_bytes)  # noqa: E731
        return steps.search_candidates(workshop, read, itunes=itunes, country=country, most=most, accept_all=accept_all)

    return work


@step(real_pod)
def finish(accept_all: AcceptAll = False) -> Work:
    """Turn the topics and their chosen episodes into items, as a source of the dataset.

    Example: podeval data construct real_pod finish --into my_pod && podeval data build real_pod --config topics
    --source my_pod/finished
    """
    from podeval.construction import real_pod as steps

    return lambda workshop: steps.finish(workshop, accept_all=accept_all)


@step(real_pod, name="own")
def take_own(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="folder with your own recordings")],
    accept_all: AcceptAll = False,
) -> Work:
    """Turn your own recordings into items: the first call writes a table, a later call reads it.

    Example: podeval data construct real_pod own ./shows --into my_pod
    """
    from podeval.construction import real_pod as steps

    return lambda workshop: steps.take_own(workshop, folder, accept_all=accept_all)


@real_pod.command(name="drafts")
def convert_drafts(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="folder with drafts (*.txt)", exists=True, file_okay=False)
    ],
    into: Annotated[Path, typer.Option(help="folder to write to")],
    name: Annotated[str, typer.Option(help="name of the files")] = "episodes",
    attribution: Annotated[str, typer.Option(help="author of the scripts")] = "Written by their author.",
    voices: Annotated[bool, typer.Option(help="give each speaker a reference voice of podeval's")] = False,
) -> None:
    """Convert drafts of scripts, with their speakers and sources, into items and scripts.

    Example: podeval data construct real_pod drafts my_drafts --into my_pod --name long
    """
    from podeval.benchmarks.real_pod_splits import VOICES
    from podeval.benchmarks.spoken import read_voices
    from podeval.construction.real_pod_drafts import convert_folder

    chosen = tuple(read_voices(VOICES).values()) if voices else ()
    for path in convert_folder(folder, into, name, attribution, chosen):
        typer.echo(path)
