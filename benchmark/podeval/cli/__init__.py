"""The command line: a face without logic.

Exit codes: 0 done; 1 some items unscored or failed; 2 wrong usage or refused input, with a sentence;
3 a comparison failed.
"""

import contextlib
import errno
import io
import os
import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from pkgutil import resolve_name
from typing import Annotated, Any

import typer

from podeval.cli import completion
from podeval.cli.lazy_commands import lazy_group
from podeval.errors import PodevalError
from podeval.text.terminal_safe import Printable
from podeval.version import __version__

STOPPED = 130
"""Exit code after Ctrl-C, as shells have it."""

__all__ = ["app", "generate_docs", "main"]


@cache
def _judge() -> typer.Typer:
    from podeval.cli import judge, report

    judge.judge.command()(report.check)
    return judge.judge


@cache
def _arena() -> typer.Typer:
    from podeval.cli import arena, arena_log

    arena.arena.command()(arena_log.erase)
    arena.arena.command()(arena_log.export)
    arena.arena.command("import")(arena_log.take_in)
    arena.arena.command()(arena_log.mirror)
    return arena.arena


@cache
def _report() -> typer.Typer:
    from podeval.cli import board, report, validation

    board.report.command()(validation.agreement)
    board.report.command()(validation.papers)
    board.report.command()(validation.certificate)
    board.report.command("judge")(report.audit)
    board.report.command("system")(report.system)
    board.report.command()(report.export)
    return board.report


_PLACES: Mapping[str, str | Callable[[], typer.Typer]] = {
    "score": "score:score",
    "measure": "measure:measure",
    "defects": "defects:defects",
    "demo": "demo:demo",
    "run": "run:run",
    "init": "init:init",
    "compare": "compare:compare",
    "serve": "board:serve",
    "doctor": "doctor:doctor",
    "submit": "submit:submit",
    "worker": "worker:worker",
    "backup": "backup:backup",
    "restore": "backup:restore",
    "retention": "backup:retention",
    "data": "datasets:data",
    "judge": _judge,
    "metrics": "install:metrics",
    "models": "install:models",
    "report": _report,
    "listening": "listening:listening",
    "arena": _arena,
    "admin": "admin:admin",
    "submissions": "submissions:submissions",
}
"""Where each command is: a module of this package and a name in it, or what puts it together."""

_GROUPS = {
    "Score": ("score", "measure", "defects", "metrics", "models"),
    "Benchmark": ("demo", "init", "run", "compare", "report", "data", "judge"),
    "Serve": ("serve", "submit", "submissions", "worker", "arena", "listening"),
    "Operate": ("doctor", "backup", "restore", "retention", "admin"),
}
"""How `--help` groups them; one that stands nowhere is among the last."""

_IMPORTS: Mapping[str, Callable[[], Any]] = {
    name: partial(resolve_name, f"{__name__}.{place}") if isinstance(place, str) else place
    for name, place in _PLACES.items()
}

app = typer.Typer(
    name="podeval",
    cls=lazy_group(_IMPORTS, _GROUPS),
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
    """Make it a group: typer takes a `Typer` without commands of its own for none."""


def main() -> None:
    """Run the command line; every error podeval knows is a sentence, none a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # File names may hold bytes that are no text; they are shown, not stumbled over.
            stream.reconfigure(errors="backslashreplace")
    # Whatever is printed or logged in there: names and reasons of strangers reach a terminal in many places.
    with contextlib.redirect_stdout(Printable(sys.stdout)), contextlib.redirect_stderr(Printable(sys.stderr)):
        _run()


def _run() -> None:
    if completion.INSTALLING.intersection(sys.argv):
        completion.use_scripts_that_complete_everything()
    try:
        app(prog_name="podeval")
    except SystemExit as leaving:
        if leaving.code == STOPPED:
            print("podeval: stopped; finished work is kept, and the same command resumes it", file=sys.stderr)
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
            # What is still to be flushed goes nowhere.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            print(f"podeval: cannot write {error.filename or 'the output'}: {error.strerror}", file=sys.stderr)
            sys.exit(2)
        print(
            f"podeval: unexpected {type(error).__name__}: {error}\n"
            "This is a bug in podeval. PODEVAL_DEBUG=1 shows where; please report it with the command you ran.",
            file=sys.stderr,
        )
        sys.exit(2)
