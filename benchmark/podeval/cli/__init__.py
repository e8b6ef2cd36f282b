"""The command line, which only calls the engine.

The exit codes are 0 (done), 1 (some items are unscored or failed), 2 (wrong usage or refused input, explained in a
sentence) and 3 (a comparison failed).
"""

import contextlib
import errno
import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pkgutil import resolve_name
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command_from_info, get_group_from_info
from typer.models import CommandInfo, TyperInfo

from podeval.cli import completion
from podeval.errors import PodevalError
from podeval.text.terminal_safe import Printable
from podeval.version import __version__

STOPPED = 130
"""Exit code after Ctrl-C, as in shells."""

__all__ = ["app", "generate_docs", "main"]


@cache
def _report() -> typer.Typer:
    from podeval.cli import report, validation

    report.report.command()(validation.agreement)
    report.report.command()(validation.papers)
    report.report.command()(validation.certificate)
    return report.report


_PLACES: Mapping[str, str | Callable[[], typer.Typer]] = {
    "score": "score:score",
    "measure": "measure:measure",
    "proof": "score:proof",
    "demo": "demo:demo",
    "run": "run:run",
    "compare": "compare:compare",
    "serve": "board:serve",
    "doctor": "install:doctor",
    "prepare-submission": "run:prepare_submission",
    "submit": "submissions:submit",
    "worker": "worker:worker",
    "backup": "admin:backup",
    "restore": "admin:restore",
    "retention": "admin:retention",
    "data": "datasets:data",
    "judge": "judge:judge",
    "metrics": "install:metrics",
    "models": "install:models",
    "report": _report,
    "listening": "listening:listening",
    "arena": "arena:arena",
    "admin": "admin:admin",
    "submissions": "submissions:submissions",
}
"""Location of each command: a module of this package and a name in that module, or the function that builds the
command.
"""

_GROUPS = {
    "Score": ("score", "measure", "proof", "metrics", "models"),
    "Benchmark": ("demo", "run", "compare", "report", "data", "judge"),
    "Serve": ("serve", "prepare-submission", "submit", "submissions", "worker", "arena", "listening"),
    "Operate": ("doctor", "backup", "restore", "retention", "admin"),
}
"""Groups of commands in `--help`; commands without a group come last."""

_SECTIONS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "run": {
        "System": ("outputs", "python"),
        "Server": (
            *("server", "server_kind", "api", "model", "voice", "clone", "dialogue", "field", "stream"),
            *("pace", "interrupt_after", "requests_per_minute", "at_once", "timeout"),
        ),
        "Benchmark": ("benchmark", "split", "track", "data", "seed", "seeds", "limit", "pilot"),
        "Measuring": ("metrics", "preset", "settings", "profile", "allow_upsampling", "retry"),
        "Judge": ("judge", "records", "refresh", "prompts", "max_cost", "max_calls", "judge_workers"),
        "Where": ("out", "name", "workers", "executor", "address", "cpus_per_worker", "gpus_per_worker"),
    }
}
"""Headings of a command's options in its help; options without a heading come last."""

_LONGEST = 300
"""Maximum number of characters in a summary, which is the first sentence of a command's help."""


class LazyCommands(Mapping[str, Any]):
    """Commands by name; each command is imported and built when it is first used, so it does not slow down other
    commands.
    """

    def __init__(self) -> None:
        self._built: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._built:
            place = _PLACES[name]
            command = resolve_name(f"{__name__}.{place}") if isinstance(place, str) else place()
            self._built[name] = _build(name, command)
        return self._built[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_PLACES)

    def __len__(self) -> int:
        return len(_PLACES)


_WORDS = {"str": "text", "int": "number", "float": "number", "directory": "folder"}
"""Types of values, as named in the help."""
_TYPE = re.compile(r"<(list\[)?([\w|-]+)(?: range)?\]?>$")


def _name_value(option: str) -> str:
    """Name the value of an option or argument in words: `--voice <text>...` instead of `--voice <list[str]>`."""
    return _TYPE.sub(lambda type: f"<{_WORDS.get(type[2], type[2])}>{'...' if type[1] else ''}", option)


def _describe_range(help: str) -> str:
    """Describe the range of a number in words: `0 or more` for `x>=0`, `1 to 64` for `1<=x<=64`."""
    return re.sub(r"\bx>=([\d.]+)", r"\1 or more", re.sub(r"([\d.]+)<=x<=([\d.]+)", r"\1 to \2", help))


class FullHelpCommand(TyperCommand):
    """A command whose help describes each option's value in words and groups options under custom headings."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and options, heading by heading."""
        headings = {name: title for title, names in _SECTIONS.get(str(self.name), {}).items() for name in names}
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], **{title: [] for title in headings.values()}}
        for param in self.get_params(ctx):
            heading = headings.get(str(param.name), f"{param.param_type_name.capitalize()}s")
            if record := param.get_help_record(ctx):
                sections.setdefault(heading, []).append((_name_value(record[0]), _describe_range(record[1])))
        for heading, records in filter(lambda section: section[1], sections.items()):
            with formatter.section(heading):
                formatter.write_dl(records)


class FullHelpGroup(TyperGroup):
    """A group whose help shows complete summaries and groups commands under custom headings."""

    headings: Mapping[str, tuple[str, ...]] = {}

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands with their summaries, heading by heading."""
        rest = [name for name in self.list_commands(ctx) if not any(name in names for names in self.headings.values())]
        *firsts, last = list(self.headings.items()) or [("Commands", ())]
        for title, names in (*firsts, (last[0], (*last[1], *rest))):
            commands = [(name, self.get_command(ctx, name)) for name in names]
            rows = [(name, command.get_short_help_str(_LONGEST)) for name, command in commands if command]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


class LazyGroup(FullHelpGroup):
    """The group of all commands, in a fixed order."""

    headings = _GROUPS

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = LazyCommands()  # type: ignore[assignment]

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands."""
        return list(self.commands)


def _build(name: str, command: Callable[..., Any] | typer.Typer) -> Any:
    if isinstance(command, typer.Typer):
        for each in command.registered_commands:
            each.cls = FullHelpCommand
        info = TyperInfo(command, name=name, cls=FullHelpGroup)
        return get_group_from_info(info, pretty_exceptions_short=True, suggest_commands=True, rich_markup_mode=None)
    return get_command_from_info(
        CommandInfo(name=name, callback=command, cls=FullHelpCommand),
        pretty_exceptions_short=True,
        rich_markup_mode=None,
    )


app = typer.Typer(
    name="podeval",
    cls=LazyGroup,
    help="Evaluate long-form speech made by machines: podcasts, audiobooks, dialogue and scripts.\n\n"
    "Example: podeval score episode.wav",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"podeval {__version__}")
        raise typer.Exit


@app.callback()
def _podeval(
    version: Annotated[
        bool, typer.Option("--version", help="print the version", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Make the app a group, because typer ignores a `Typer` without its own commands."""


def main() -> None:
    """Run the command line; errors that podeval expects are printed as sentences instead of tracebacks."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # File names may contain bytes that are not text; show them without raising an error.
            stream.reconfigure(errors="backslashreplace")
    # Make everything that is printed or logged safe, because untrusted names and reasons reach the terminal in many
    # places.
    with contextlib.redirect_stdout(Printable(sys.stdout)), contextlib.redirect_stderr(Printable(sys.stderr)):
        _run()


def _run() -> None:
    if completion.INSTALLING.intersection(sys.argv):
        completion.use_scripts_that_complete_everything()
    try:
        app(prog_name="podeval")
    except SystemExit as leaving:
        if leaving.code == STOPPED:
            print("podeval: stopped; finished work is kept, and the same command resumes the run", file=sys.stderr)
        for name in sys.argv[1:] if leaving.code == 2 else ():
            if name.startswith("-") and os.path.exists(name):
                print(f"The file {name} begins with a dash; write ./{name}", file=sys.stderr)
        raise
    except PodevalError as error:
        print(f"podeval: {error}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        if os.environ.get("PODEVAL_DEBUG"):
            raise
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            # Discard everything that has not been flushed yet.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            print(f"podeval: cannot write {error.filename or 'the output'}: {error.strerror}", file=sys.stderr)
            sys.exit(2)
        print(
            f"podeval: unexpected {type(error).__name__}: {error}\n"
            "This is a bug in podeval; please report it with the command that you ran. PODEVAL_DEBUG=1 shows details.",
            file=sys.stderr,
        )
        sys.exit(2)
