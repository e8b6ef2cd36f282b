"""`podeval data construct`: making material for the benchmarks, step by step, with people in between.

The files beside this one list the steps of a benchmark. A step is a function of its own options that gives the work to
be done; `step`, `judged_step` and `compared_step` make a command of it, with the options that such steps share.
"""

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from podeval.cli.lazy_commands import FullHelpGroup

if TYPE_CHECKING:
    from podeval.construction.staged_rows import StepReport, Workshop
    from podeval.judges.client import JudgeClient

construct = typer.Typer(
    help="Make new material for a benchmark, in steps whose files people review.\n\n"
    "Example: podeval data construct lfs_bench write --into my_texts --each 2 --judge MODEL@https://host/v1",
    no_args_is_help=True,
    cls=FullHelpGroup,
)

AcceptAll = Annotated[bool, typer.Option("--accept-all", help="also keep entries that nobody decided on in the review")]
Profile = Annotated[str, typer.Option(help="models to use: embedded or reference")]

_INTO = "working folder of the construction; created if missing"
_JUDGE = (
    "language model to ask: MODEL@https://host/v1 (key in the environment as PODEVAL_JUDGE_KEY), gguf:FILE, "
    "transformers:REPO@COMMIT, records:FOLDER, or a judge's YAML file"
)

Encode = Callable[..., Any]
Work = Callable[["Workshop"], "StepReport"]
JudgedWork = Callable[["Workshop", "JudgeClient"], "StepReport"]
ComparedWork = Callable[["Workshop", "JudgeClient", Encode], "StepReport"]

S = TypeVar("S", bound=Callable[..., Any])


def step(group: typer.Typer, *, name: str | None = None, into: str = _INTO) -> Callable[[S], S]:
    """Make a command of a step that asks no judge.

    Args:
        group: the benchmark's commands.
        name: of the command; the function's by default.
        into: what `--into` is.

    Returns:
        A decorator of functions that take options and give `Work`.
    """

    def register(plan: S) -> S:
        def run(into: Path, options: dict[str, Any]) -> None:
            do_step(into, plan(**options))

        _add_command(group, name, plan, run, [_option("into", Path, metavar="DIR", help=into)], [])
        return plan

    return register


def judged_step(group: typer.Typer) -> Callable[[S], S]:
    """Make a command of a step that asks a judge: a decorator of functions that take options and give `JudgedWork`."""

    def register(plan: S) -> S:
        def run(into: Path, options: dict[str, Any]) -> None:
            judge = _take_judge(options)
            work: JudgedWork = plan(**options)
            do_step(into, lambda workshop: _do_judged(workshop, judge, work))

        _add_command(group, None, plan, run, _judge_options(), _budget_options())
        return plan

    return register


def compared_step(group: typer.Typer) -> Callable[[S], S]:
    """Make a command of a step that asks a judge and compares texts: its functions give `ComparedWork`."""

    def register(plan: S) -> S:
        def run(into: Path, options: dict[str, Any]) -> None:
            judge, encode = _take_judge(options), make_encoder(options.pop("profile"))
            work: ComparedWork = plan(**options)
            do_step(
                into,
                lambda workshop: _do_judged(workshop, judge, lambda shop, judging: work(shop, judging, encode)),
            )

        profile = inspect.Parameter("profile", inspect.Parameter.KEYWORD_ONLY, annotation=Profile, default="embedded")
        _add_command(group, None, plan, run, _judge_options(), [profile, *_budget_options()])
        return plan

    return register


def do_step(into: Path, work: Work) -> None:
    """Do a step in its folder, which no other process may use; print the report. Exit code 1 where something waits.

    Rows that break a dataset's rules are a failure of rows, and named: exit code 1 as well.
    """
    from podeval.cli.progress_bar import show_progress
    from podeval.construction.staged_rows import Workshop
    from podeval.datasets.row_rules import BrokenRules

    workshop = Workshop(into)
    try:
        with workshop.hold(), show_progress(into.name):
            report = work(workshop)
    except BrokenRules as broken:
        print(f"podeval: {broken}", file=sys.stderr)
        raise typer.Exit(1) from None
    for sentence in report.sentences:
        print(sentence)
    for waiting in report.waiting[:20]:
        print(f"{waiting.id} waits: {waiting.reason}", file=sys.stderr)
    if len(report.waiting) > 20:
        print(f"and {len(report.waiting) - 20} more wait", file=sys.stderr)
    raise typer.Exit(1 if report.waiting else 0)


@contextmanager
def open_judge(
    workshop: "Workshop", judge: str, workers: int, tokens: int | None = None, cost: float | None = None
) -> Iterator["JudgeClient"]:
    """Open a judge with its records in the folder; at the end, print what was used.

    What was answered is not asked again, what was never answered so that it can be used is: the same command goes on
    after a judge was mended.
    """
    from podeval.judges.budget import Budget
    from podeval.judges.client import JudgeClient
    from podeval.judges.judge import find_judge

    chosen = find_judge(judge)
    folder = None if chosen.replays else workshop.records
    judging = JudgeClient(chosen, folder, workers=workers, budget=Budget(cost, tokens), refresh="failed")
    try:
        yield judging
    finally:
        print(f"judge: {judging.account.sentence()}", file=sys.stderr)


def make_encoder(profile: str) -> Encode:
    """Make the function that turns English sentences into vectors, by the profile's sentence encoder.

    Raises:
        BadInput: there is no such profile.
        ModelMissing: the encoder is not installed; raised before a judge is asked anything, with the command to run.
    """
    from podeval.errors import ModelMissing
    from podeval.models import registry

    registry.require_profile(profile)
    if reason := registry.get_card("sentence_encoder", profile).missing():
        raise ModelMissing(reason)

    def encode(texts: Any) -> Any:
        return registry.load("sentence_encoder", profile).encode(texts, "en")

    return encode


def _do_judged(workshop: "Workshop", judge: dict[str, Any], work: JudgedWork) -> "StepReport":
    with open_judge(workshop, **judge) as judging:
        return work(workshop, judging)


def _add_command(
    group: typer.Typer,
    name: str | None,
    plan: Callable[..., Any],
    run: Callable[[Path, dict[str, Any]], None],
    first: list[inspect.Parameter],
    last: list[inspect.Parameter],
) -> None:
    """Add a command with the arguments of a step, shared options before its own, its own, and shared ones after."""

    @wraps(plan)
    def command(**options: Any) -> None:
        run(options.pop("into"), options)

    own = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in inspect.signature(plan, eval_str=True).parameters.values()
    ]
    arguments = [parameter for parameter in own if _is_argument(parameter)]
    options = [parameter for parameter in own if not _is_argument(parameter)]
    parameters = [*arguments, *first, *options, *last]
    # typer reads the one, and type hints from the other.
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    group.command(name)(command)


def _is_argument(parameter: inspect.Parameter) -> bool:
    facts = getattr(parameter.annotation, "__metadata__", ())
    return any(isinstance(fact, typer.models.ArgumentInfo) for fact in facts)


def _option(name: str, kind: Any, *, default: Any = inspect.Parameter.empty, **facts: Any) -> inspect.Parameter:
    annotation = Annotated[kind, typer.Option(**facts)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _judge_options() -> list[inspect.Parameter]:
    return [_option("into", Path, metavar="DIR", help=_INTO), _option("judge", str, help=_JUDGE)]


def _budget_options() -> list[inspect.Parameter]:
    cost_help = "stop before more than this is spent; needs prices in a YAML file"
    return [
        _option("workers", int, default=4, min=1, help="largest number of questions at a time"),
        _option(
            "most_tokens", int | None, default=None, min=1, help="stop before more than this number of tokens is used"
        ),
        _option("most_cost", float | None, default=None, help=cost_help),
    ]


def _take_judge(options: dict[str, Any]) -> dict[str, Any]:
    """Take what concerns the judge out of the options of a command, as arguments of `open_judge`."""
    names = {"judge": "judge", "workers": "workers", "most_tokens": "tokens", "most_cost": "cost"}
    return {argument: options.pop(name) for name, argument in names.items()}
