"""Makes text of strangers safe for a terminal: it is shown without the control characters that a terminal obeys.

Names, reasons and file names come from strangers, and a terminal takes an escape sequence in them for a command: to
change its title, to hide lines, to make a link. So standard output and error are written through `Printable`, which
shows such characters instead of sending them. What podeval itself colours goes around it, by `make_console`.
"""

import io
import re
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console

_OBEYED = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]|\r(?!\n)")

_MOVES = re.compile(r"(?:[\r\n]|\x1b\[A)+")
"""What a bar of progress writes to go back over itself; by itself, so that no words are among it."""


def make_printable(text: str) -> str:
    r"""Write out what a terminal would obey in a text, as `\x1b`; line ends and tabs stay.

    Escape sequences, C1 controls, lone carriage returns, and the marks that turn the direction of a line.
    """
    return _OBEYED.sub(lambda sign: sign[0].encode("unicode_escape").decode("ascii"), text)


class Printable(io.TextIOBase):
    """A stream that writes printable text.

    Attributes:
        unfiltered: the stream behind it.
    """

    def __init__(self, stream: TextIO) -> None:
        self.unfiltered = stream

    def write(self, text: str) -> int:
        """Write the text as a terminal may have it."""
        # A bar of progress (tqdm's) begins its line anew; in the middle of a text that would hide what stood before.
        begin = "\r" if text.startswith("\r") else ""
        safe = text if _MOVES.fullmatch(text) else begin + make_printable(text.removeprefix(begin))
        self.unfiltered.write(safe)
        return len(text)

    def writable(self) -> bool:
        """It is there for nothing else."""
        return True

    def flush(self) -> None:
        """As the stream behind it."""
        self.unfiltered.flush()

    def isatty(self) -> bool:
        """As the stream behind it."""
        return self.unfiltered.isatty()

    def fileno(self) -> int:
        """Of the stream behind it."""
        return self.unfiltered.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Of the stream behind it."""
        return self.unfiltered.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        """Of the stream behind it."""
        return self.unfiltered.errors

    @property
    def buffer(self) -> Any:
        """Bytes that are written by somebody who knows what they are."""
        return self.unfiltered.buffer


def make_console(stream: TextIO, **options: Any) -> "Console":
    """Make a console of rich on a stream; its own colours pass, so that strangers' text goes in as `make_printable`."""
    from rich.console import Console

    return Console(file=getattr(stream, "unfiltered", stream), highlight=False, markup=False, emoji=False, **options)
