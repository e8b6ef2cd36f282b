"""`podeval data construct mtalk_bench`: dialogues written, selected, tagged, recorded, checked, sounded, finished."""

from pathlib import Path
from typing import Annotated

import typer

from podeval.cli.construct import AcceptAll, ComparedWork, JudgedWork, Work, compared_step, judged_step, step
from podeval.cli.lazy_commands import FullHelpGroup

mtalk_bench = typer.Typer(
    help="Make spoken dialogues with tags and sounds, as in MTalk-Bench.\n\n"
    "Example: podeval data construct mtalk_bench take dialogues.json --into my_dialogues",
    no_args_is_help=True,
    cls=FullHelpGroup,
)


@judged_step(mtalk_bench)
def write(
    each: Annotated[
        int, typer.Option(min=1, help="number of candidates per scenario and capability; the paper has 33")
    ] = 1,
    scenario: Annotated[list[str] | None, typer.Option(help="only this one (repeatable)")] = None,
    capability: Annotated[list[str] | None, typer.Option(help="only this one (repeatable)")] = None,
) -> JudgedWork:
    """Have a language model write dialogues of a user and an assistant. The exit code is 1 while dialogues are missing.

    A second call resumes and fills gaps; questions that were answered are not asked again.

    Example: podeval data construct mtalk_bench write --into my_dialogues --each 3 --judge MODEL@https://host/v1
    """
    from podeval.construction import mtalk_raw
    from podeval.construction.mtalk_writing import DialoguePlan

    chosen = {"scenarios": scenario, "capabilities": capability}
    plan = DialoguePlan.model_validate({"each": each} | {name: tuple(value) for name, value in chosen.items() if value})
    return lambda workshop, judging: mtalk_raw.write(workshop, plan, judging)


@judged_step(mtalk_bench)
def label() -> JudgedWork:
    """Drop dialogues whose last turn needs no context; label the capabilities that the others require.

    Example: podeval data construct mtalk_bench label --into my_dialogues --judge OTHER_MODEL@https://host/v1
    """
    from podeval.construction import mtalk_raw

    return mtalk_raw.annotate


@compared_step(mtalk_bench)
def infer() -> ComparedWork:
    """Infer the main capability from the labels, drop near-duplicates and write the table for the review.

    Example: podeval data construct mtalk_bench infer --into my_dialogues --judge SMALL_MODEL@https://host/v1
    """
    from podeval.construction import mtalk_raw

    return mtalk_raw.infer


@step(mtalk_bench)
def select(accept_all: AcceptAll = False) -> Work:
    """Read the review of the candidates; the next steps use the accepted dialogues.

    Example: podeval data construct mtalk_bench select --into my_dialogues
    """
    from podeval.construction import mtalk_raw

    return lambda workshop: mtalk_raw.select(workshop, accept_all=accept_all)


@step(mtalk_bench)
def take(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="a JSON list of {number, turns} and perhaps more")],
) -> Work:
    """Import dialogues: what a user says, turn by turn, with prompts and a voice profile if they have one.

    Example: podeval data construct mtalk_bench take dialogues.json --into my_dialogues
    """
    from podeval.construction import mtalk

    return lambda workshop: mtalk.take(workshop, file)


@judged_step(mtalk_bench)
def tag(kind: Annotated[str, typer.Argument(metavar="KIND", help="paralinguistic or ambient")]) -> JudgedWork:
    """Have the semantic dialogues tagged twice; write the table in which a third annotator resolves differences.

    Example: podeval data construct mtalk_bench tag ambient --into my_dialogues --judge MODEL@https://host/v1
    """
    from podeval.construction import mtalk
    from podeval.construction.mtalk_tagging import KINDS
    from podeval.errors import BadInput

    if kind not in KINDS:
        raise BadInput(f"tags are {' or '.join(KINDS)}, not {kind!r}")
    return lambda workshop, judging: mtalk.annotate(workshop, KINDS[kind], judging)


@step(mtalk_bench)
def script(accept_all: AcceptAll = False) -> Work:
    """Read the resolved tags; list what has to be recorded and which tags need a sound.

    Example: podeval data construct mtalk_bench script --into my_dialogues
    """
    from podeval.construction import mtalk

    return lambda workshop: mtalk.write_script(workshop, accept_all=accept_all)


@step(mtalk_bench)
def check() -> Work:
    """Read the verdicts on recordings and write the table of the next of three rounds. The exit code is 1 while any
    are due.

    Example: podeval data construct mtalk_bench check --into my_dialogues
    """
    from podeval.construction import mtalk

    return mtalk.check


@step(mtalk_bench)
def finish(accept_all: AcceptAll = False) -> Work:
    """Mix voices and sounds into the accepted recordings; write whole dialogues as a source of the dataset.

    Example: podeval data construct mtalk_bench finish --into my_dialogues
    """
    from podeval.construction import mtalk

    return lambda workshop: mtalk.finish(workshop, accept_all=accept_all)
