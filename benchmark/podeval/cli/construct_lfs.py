"""`podeval data construct lfs_bench`: cases written, taken, refined, reviewed, finished."""

from pathlib import Path
from typing import Annotated

import typer

from podeval.cli.construct import AcceptAll, ComparedWork, JudgedWork, Profile, Work, compared_step, judged_step, step
from podeval.cli.lazy_commands import FullHelpGroup

lfs_bench = typer.Typer(
    help="Write texts to be spoken, in the scenarios of LFS-Bench.\n\n"
    "Example: podeval data construct lfs_bench refine --into my_texts --judge MODEL@https://host/v1",
    no_args_is_help=True,
    cls=FullHelpGroup,
)


@judged_step(lfs_bench)
def write(
    each: Annotated[int, typer.Option(min=1, help="number of cases per scenario, language and number of speakers")] = 1,
    scenario: Annotated[list[str] | None, typer.Option(help="only this one (repeatable)")] = None,
    language: Annotated[list[str] | None, typer.Option(help="only this language: english or chinese")] = None,
    speakers: Annotated[list[int] | None, typer.Option(help="only this number of speakers (repeatable)")] = None,
    topics: Annotated[
        Path | None,
        typer.Option(help="file with your own topics, one `scenario<tab>topic` per line; used before suggested ones"),
    ] = None,
    lengths: Annotated[
        tuple[int, int], typer.Option(metavar="LEAST MOST", help="length in English words or Chinese characters")
    ] = (80, 500),
) -> JudgedWork:
    """Have a language model write cases from the template of each scenario. The exit code is 1 while cases are missing.

    A second call resumes; questions that were answered are not asked again.

    Example: podeval data construct lfs_bench write --into my_texts --each 2 --scenario lesson --judge judge.yaml
    """
    from podeval.construction import lfs
    from podeval.construction.lfs_writing import CasePlan, read_topics

    chosen = {"scenarios": scenario, "languages": language, "speakers": speakers}
    plan = CasePlan.model_validate(
        {"each": each, "lengths": lengths} | {name: tuple(value) for name, value in chosen.items() if value}
    )
    own_topics = read_topics(topics) if topics else None
    return lambda workshop, judging: lfs.write(workshop, plan, judging, own_topics)


@judged_step(lfs_bench)
def replenish() -> JudgedWork:
    """Have new cases written in place of those that refinement or review rejected; refine them afterwards.

    Example: podeval data construct lfs_bench replenish --into my_texts --judge judge.yaml
    """
    from podeval.construction import lfs

    return lambda workshop, judging: lfs.write(workshop, None, judging)


@step(lfs_bench)
def take(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="JSON Lines in the published schema")],
) -> Work:
    """Import your own texts, or those that `collect` made, for refinement.

    Example: podeval data construct lfs_bench take novels.jsonl --into my_texts
    """
    from podeval.construction import lfs

    return lambda workshop: lfs.take(workshop, files)


@step(lfs_bench)
def collect(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="folder with your own recordings")],
    scenario: Annotated[str, typer.Option(help="scenario of the recordings")] = "podcast",
    least: Annotated[float, typer.Option(help="drop recordings whose DNSMOS is below this")] = 3.5,
    by: Annotated[str, typer.Option(help="DNSMOS value to use: ovrl, sig, bak or p808")] = "ovrl",
    enhancer: Annotated[
        str,
        typer.Option(
            metavar="COMMAND", help="command that denoises, such as 'my-enhancer {input} {output}'; none by default"
        ),
    ] = "",
    language: Annotated[
        str | None, typer.Option(help="language of the recordings: en or zh; detected by default")
    ] = None,
    profile: Profile = "embedded",
    lengths: Annotated[
        tuple[int, int], typer.Option(metavar="LEAST MOST", help="length of a passage, in words or characters")
    ] = (80, 500),
) -> Work:
    """Transcribe your own recordings with their speakers, for proofreading; poor recordings are dropped.

    A second call resumes after the last finished recording.

    Example: podeval data construct lfs_bench collect ./shows --into my_texts --scenario interview
    """
    from podeval.construction import lfs
    from podeval.construction.collecting import CollectionSettings
    from podeval.errors import BadInput
    from podeval.models import registry

    registry.require_profile(profile)
    if by not in ("ovrl", "sig", "bak", "p808"):
        raise BadInput(f"DNSMOS has no score {by!r}; name ovrl, sig, bak or p808")
    settings = CollectionSettings(scenario, least, by, enhancer, language, profile, lengths)
    return lambda workshop: lfs.collect(workshop, folder, settings)


@step(lfs_bench)
def proofread(accept_all: AcceptAll = False) -> Work:
    """Import the passages that people kept in the table of transcripts, for refinement.

    Example: podeval data construct lfs_bench proofread --into my_texts
    """
    from podeval.construction import lfs

    return lambda workshop: lfs.proofread(workshop, accept_all=accept_all)


@compared_step(lfs_bench)
def refine(
    threshold: Annotated[float, typer.Option(min=0, max=1, help="cosine from which cases count as similar")] = 0.8,
    least: Annotated[int, typer.Option(min=1, max=5, help="lowest overall rating that is kept")] = 3,
) -> ComparedWork:
    """Remove similar, dull and unsafe cases and replace private names; write the table for the review.

    Example: podeval data construct lfs_bench refine --into my_texts --judge MODEL@https://host/v1
    """
    from podeval.construction import lfs

    return lambda workshop, judging, encode: lfs.refine(workshop, judging, encode, threshold=threshold, least=least)


@step(lfs_bench)
def finish(accept_all: AcceptAll = False) -> Work:
    """Read the review and write the accepted cases as a source of the dataset, with statistics and plots.

    Example: podeval data construct lfs_bench finish --into my_texts && podeval data build lfs_bench --source
    my_texts/finished
    """
    from podeval.construction import lfs

    return lambda workshop: lfs.finish(workshop, accept_all=accept_all)


@step(lfs_bench, into="folder for figures and plots")
def statistics(
    source: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="folder with the published files, the authors' or your own")
    ],
) -> Work:
    """Count cases by language, speakers, challenge and scenario, and their lengths, as the paper's figures 8 and 9 do.

    Example: podeval data construct lfs_bench statistics my_texts/finished --into figures
    """
    from podeval.construction import lfs

    return lambda workshop: lfs.count_published(source, workshop.folder)
