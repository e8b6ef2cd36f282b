"""Make untrusted text safe for a terminal by showing control characters instead of sending them.

Names, reasons and file names come from strangers, and a terminal obeys escape sequences in them, which can change the
window's title, hide lines or create links. Standard output and error are therefore written through `Printable`, which
makes such characters visible. podeval's own colours bypass it through `make_console`.
"""

import io
import re
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console

_OBEYED = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]|\r(?!\n)"
)

_MOVES = re.compile(r"(?:[\r\n]|\x1b\[A)+")
"""Control characters with which a progress bar overwrites itself; they are passed on only in writes that contain no
words."""


def make_printable(text: str) -> str:
    r"""Escape the control characters in a text, for example as `\x1b`; line endings and tabs are preserved.

    This covers escape sequences, C1 controls, lone carriage returns, marks that change the direction of a line, and
    bytes of a file name that are not text, for example in `caf\udce9.wav`.
    """
    return _OBEYED.sub(lambda sign: sign[0].encode("unicode_escape").decode("ascii"), text)


class Printable(io.TextIOBase):
    """A text stream that makes everything written to it printable.

    Attributes:
        unfiltered: the underlying stream.
    """

    def __init__(self, stream: TextIO) -> None:
        self.unfiltered = stream

    def write(self, text: str) -> int:
        """Write the text with its control characters made visible."""
        # A progress bar (such as tqdm's) restarts its line; in the middle of a text, this would hide the preceding
        # text.
        begin = "\r" if text.startswith("\r") else ""
        safe = text if _MOVES.fullmatch(text) else begin + make_printable(text.removeprefix(begin))
        self.unfiltered.write(safe)
        return len(text)

    def writable(self) -> bool:
        """Return True, because the stream is for writing only."""
        return True

    def flush(self) -> None:
        """Flush the underlying stream."""
        self.unfiltered.flush()

    def isatty(self) -> bool:
        """Return whether the underlying stream is a terminal."""
        return self.unfiltered.isatty()

    def fileno(self) -> int:
        """Return the file descriptor of the underlying stream."""
        return self.unfiltered.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Encoding of the underlying stream."""
        return self.unfiltered.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        """The error handling of the underlying stream's encoding."""
        return self.unfiltered.errors

    @property
    def buffer(self) -> Any:
        """The underlying binary buffer, for callers that write safe bytes."""
        return self.unfiltered.buffer


def make_console(stream: TextIO, **options: Any) -> "Console":
    """Create a rich console on a stream.

    It bypasses the filter, so pass untrusted text through `make_printable` first.
    """
    from rich.console import Console

    return Console(file=getattr(stream, "unfiltered", stream), highlight=False, markup=False, emoji=False, **options)
