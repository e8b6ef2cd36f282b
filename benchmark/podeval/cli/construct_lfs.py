"""`podeval data construct lfs_bench`: cases written, taken, refined, reviewed, finished."""

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

lfs_bench = typer.Typer(
    help="Texts to be spoken, in the scenarios of LFS-Bench.\n\n"
    "Example: podeval data construct lfs_bench refine --into my_texts --judge MODEL@https://host/v1",
    no_args_is_help=True,
)


@lfs_bench.command()
def write(
    into: Into,
    judge: JudgeName,
    each: Annotated[int, typer.Option(min=1, help="cases of every scenario, language and number of speakers")] = 1,
    scenario: Annotated[list[str] | None, typer.Option(help="only this one; may be repeated")] = None,
    language: Annotated[list[str] | None, typer.Option(help="only this one: english or chinese")] = None,
    speakers: Annotated[list[int] | None, typer.Option(help="only so many speakers; may be repeated")] = None,
    topics: Annotated[
        Path | None, typer.Option(help="lines of one's own, `scenario<tab>topic`, taken before any that are suggested")
    ] = None,
    lengths: Annotated[
        tuple[int, int], typer.Option(metavar="LEAST MOST", help="words of English or characters of Chinese")
    ] = (80, 500),
    workers: Workers = 4,
    most_tokens: MostTokens = None,
    most_cost: MostCost = None,
) -> None:
    """Have a language model write cases by the template of each scenario. Exit code 1 where some are still missing.

    Run again, it goes on. What was answered before is not asked again.

    Example: podeval data construct lfs_bench write --into my_texts --each 2 --scenario lesson --judge judge.yaml
    """
    from podeval.construction import lfs
    from podeval.construction.lfs_writing import CasePlan, read_topics

    chosen = {"scenarios": scenario, "languages": language, "speakers": speakers}
    plan = CasePlan.model_validate(
        {"each": each, "lengths": lengths} | {name: tuple(value) for name, value in chosen.items() if value}
    )
    own_topics = read_topics(topics) if topics else None

    def work(workshop: "Workshop") -> "StepReport":
        with asking(workshop, judge, workers, most_tokens, most_cost) as judging:
            return lfs.write(workshop, plan, judging, own_topics)

    at_work(into, work)


@lfs_bench.command()
def replenish(
    into: Into, judge: JudgeName, workers: Workers = 4, most_tokens: MostTokens = None, most_cost: MostCost = None
) -> None:
    """Have new cases written for those that the refinement or the review left out; refine them after that.

    Example: podeval data construct lfs_bench replenish --into my_texts --judge judge.yaml
    """
    from podeval.construction import lfs

    def work(workshop: "Workshop") -> "StepReport":
        with asking(workshop, judge, workers, most_tokens, most_cost) as judging:
            return lfs.write(workshop, None, judging)

    at_work(into, work)


@lfs_bench.command()
def take(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="JSON Lines in the published schema")],
    into: Into,
) -> None:
    """Take in texts of one's own, or those that `collect` made, to be refined.

    Example: podeval data construct lfs_bench take novels.jsonl --into my_texts
    """
    from podeval.construction import lfs

    at_work(into, lambda workshop: lfs.take(workshop, files))


@lfs_bench.command()
def collect(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="of recordings of one's own")],
    into: Into,
    scenario: Annotated[str, typer.Option(help="that they are of")] = "podcast",
    least: Annotated[float, typer.Option(help="drop recordings whose DNSMOS is lower")] = 3.5,
    by: Annotated[str, typer.Option(help="which DNSMOS: ovrl, sig, bak or p808")] = "ovrl",
    enhancer: Annotated[
        str, typer.Option(metavar="COMMAND", help="denoises, such as 'my-enhancer {input} {output}'; none by default")
    ] = "",
    language: Annotated[str | None, typer.Option(help="spoken in them: en or zh; detected unless told")] = None,
    profile: Profile = "embedded",
    lengths: Annotated[
        tuple[int, int], typer.Option(metavar="LEAST MOST", help="of a passage, in words or characters")
    ] = (80, 500),
) -> None:
    """Hear recordings of one's own: drop the poor ones, write down who says what, for people to proofread.

    Run again, it goes on behind the last recording that was done.

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
    at_work(into, lambda workshop: lfs.collect(workshop, folder, settings))


@lfs_bench.command()
def proofread(into: Into, accept_all: AcceptAll = False) -> None:
    """Take in the passages that people kept in the table of transcripts, to be refined.

    Example: podeval data construct lfs_bench proofread --into my_texts
    """
    from podeval.construction import lfs

    at_work(into, lambda workshop: lfs.proofread(workshop, accept_all=accept_all))


@lfs_bench.command()
def refine(
    into: Into,
    judge: JudgeName,
    threshold: Annotated[float, typer.Option(min=0, max=1, help="cosine from which cases are alike")] = 0.8,
    least: Annotated[int, typer.Option(min=1, max=5, help="overall rating that is kept")] = 3,
    profile: Profile = "embedded",
    workers: Workers = 4,
    most_tokens: MostTokens = None,
    most_cost: MostCost = None,
) -> None:
    """Take out what is alike, dull or unsafe, replace private names; write the table for the review.

    Example: podeval data construct lfs_bench refine --into my_texts --judge MODEL@https://host/v1
    """
    from podeval.construction import lfs

    def work(workshop: "Workshop") -> "StepReport":
        with asking(workshop, judge, workers, most_tokens, most_cost) as judging:
            return lfs.refine(workshop, judging, encoder(profile), threshold=threshold, least=least)

    at_work(into, work)


@lfs_bench.command()
def finish(into: Into, accept_all: AcceptAll = False) -> None:
    """Read the review; write what was kept as a source of the dataset, with statistics and plots.

    Example: podeval data construct lfs_bench finish --into my_texts && podeval data build lfs_bench --source
    my_texts/finished
    """
    from podeval.construction import lfs

    at_work(into, lambda workshop: lfs.finish(workshop, accept_all=accept_all))


@lfs_bench.command()
def statistics(
    source: Annotated[Path, typer.Argument(metavar="FOLDER", help="of the published files, the authors' or one's own")],
    into: Annotated[Path, typer.Option(metavar="DIR", help="the folder of figures and plots")],
) -> None:
    """Count cases by language, speakers, challenge and scenario, and their lengths, as the paper's figures 8 and 9 do.

    Example: podeval data construct lfs_bench statistics my_texts/finished --into figures
    """
    from podeval.construction import lfs

    at_work(into, lambda _: lfs.count_published(source, into))
