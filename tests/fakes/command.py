"""The command line in this process, where a test wants what it prints, or the sentence with which it refuses."""

from typer.testing import CliRunner

from podeval.cli import app
from podeval.errors import BadInput


def run_command(*arguments: object, **environment: str) -> str:
    """Run a command that has to succeed, and return what it prints."""
    done = CliRunner().invoke(app, list(map(str, arguments)), env=environment)
    assert done.exit_code == 0, (done.output, done.exception)
    return done.output


def refuse_command(*arguments: object, **environment: str) -> str:
    """Run a command that has to refuse what it is given, and return its sentence."""
    done = CliRunner().invoke(app, list(map(str, arguments)), env=environment)
    assert isinstance(done.exception, BadInput)
    return str(done.exception)
