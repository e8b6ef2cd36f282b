"""Run external programs, an enhancer or a voice converter: any command that reads a WAV and writes one.

podeval ships neither. A command is written with the places `{input}` and `{output}`, a converter's also with
`{reference}`, as in `my-enhancer --in {input} --out {output}`. It is run without a shell, one file at a time.
"""

import shlex
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from podeval.errors import BadAudio, BadInput

_TIMEOUT = 3600.0


@dataclass(frozen=True)
class Program:
    """A command with places for files.

    Args:
        command: as on a command line.
        job: what it does, for messages.
        reference: whether it also takes a reference recording.

    Raises:
        BadInput: a place is missing, or the program does not exist.
    """

    command: str
    job: str
    reference: bool = False

    def __post_init__(self) -> None:
        places = ("{input}", "{output}", *(("{reference}",) if self.reference else ()))
        if missing := [slot for slot in places if slot not in self.command]:
            raise BadInput(f"the {self.job} {self.command!r} has no {' and '.join(missing)}; write where the files go")
        self._split_command()

    def run(self, samples: NDArray[np.float32], rate: int, reference: Path | None = None) -> NDArray[np.float32]:
        """Run the program on samples and return its output at the same rate; shape (frames,) or (frames, channels).

        Raises:
            BadInput: the program failed, or produced nothing usable; the message quotes its output.
        """
        import soundfile

        from podeval.audio.decode import decode
        from podeval.audio.resample import resample

        with tempfile.TemporaryDirectory(prefix="podeval-") as folder:
            # Put the paths into the command.
            input_path, output_path = Path(folder) / "input.wav", Path(folder) / "output.wav"
            soundfile.write(input_path, samples, rate, subtype="FLOAT")
            files = {"{input}": str(input_path), "{output}": str(output_path), "{reference}": str(reference or "")}
            words = [_fill(word, files) for word in self._split_command()]
            # Run it.
            try:
                done = subprocess.run(words, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
            except (OSError, subprocess.TimeoutExpired) as error:
                raise BadInput(f"the {self.job} {words[0]} could not be run ({error})") from None
            if done.returncode:
                message = (done.stderr or done.stdout).strip()[-300:]
                raise BadInput(f"the {self.job} {words[0]} failed with exit code {done.returncode}: {message}")
            # Read what it wrote, in the shape and rate that was given.
            try:
                decoded = decode(output_path)
            except BadAudio as refusal:
                raise BadInput(f"the {self.job} {words[0]} produced nothing usable: {refusal}") from None
            again = decoded.samples if samples.ndim > 1 else decoded.samples.mean(axis=1, dtype=np.float32)
            return resample(again, decoded.rate, rate)

    def _split_command(self) -> list[str]:
        try:
            words = shlex.split(self.command)
        except ValueError as error:
            raise BadInput(f"the {self.job} {self.command!r} cannot be read as a command ({error})") from None
        return words


def _fill(word: str, files: dict[str, str]) -> str:
    for slot, path in files.items():
        word = word.replace(slot, path)
    return word
