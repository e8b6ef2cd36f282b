"""The command line: a face without logic.

Exit codes: 0 done; 1 some items unscored or failed; 2 wrong usage or refused input, with a sentence.
"""

import contextlib
import io
import os
import sys

import typer

from podeval.cli import (
    admin,
    arena,
    backup,
    board,
    datasets,
    doctor,
    install,
    judge,
    listening,
    measure,
    report_evaluators,
    report_judge,
    report_system,
    report_validity,
    run,
    submissions,
    worker,
)
from podeval.errors import PodevalError
from podeval.text.terminal_safe import Printable

STOPPED = 130
"""Exit code after Ctrl-C, as shells have it."""

__all__ = ["app", "generate_docs", "main"]

app = typer.Typer(
    name="podeval",
    help="Judge long-form spoken audio made by machines: podcasts, audiobooks, dialogue, scripts.\n\n"
    "Example: podeval measure loudness episode.wav",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(measure.measure)
app.command()(run.demo)
app.command()(run.run)
app.command()(board.serve)
app.command()(doctor.doctor)
app.add_typer(datasets.data, name="data")
judge.judge.command()(report_judge.replay)
judge.judge.command()(report_judge.install)
app.add_typer(judge.judge, name="judge")
app.add_typer(install.metrics, name="metrics")
app.add_typer(install.models, name="models")
board.report.command("judge")(report_judge.audit)
board.report.command()(report_validity.validity)
board.report.command()(report_evaluators.evaluators)
board.report.command()(report_evaluators.papers)
board.report.command("system")(report_system.system)
app.add_typer(board.report, name="report")
app.add_typer(listening.listening, name="listening")
app.add_typer(arena.arena, name="arena")
app.add_typer(admin.admin, name="admin")
app.command()(submissions.submit)
app.add_typer(submissions.submissions, name="submissions")
app.command()(submissions.queue)
app.command()(worker.worker)
app.command()(backup.backup)
app.command()(backup.restore)
app.command()(backup.retention)


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
    try:
        app()
    except SystemExit as leaving:
        if leaving.code == STOPPED:
            print("podeval: stopped; what was finished is kept, the same command goes on from there", file=sys.stderr)
        for name in sys.argv[1:] if leaving.code == 2 else ():
            if name.startswith("-") and os.path.exists(name):
                print(f"The file {name} begins with a dash, write ./{name}", file=sys.stderr)
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
        print(
            f"podeval: unexpected {type(error).__name__}: {error}\n"
            "This is a bug in podeval. PODEVAL_DEBUG=1 shows where; please report it with the command you ran.",
            file=sys.stderr,
        )
        sys.exit(2)
