"""Base classes for a benchmark's records, and the package's data files."""

import hashlib
from importlib import resources
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field

from podeval.errors import PodevalError

Revision = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]


class FactSheet(BaseModel):
    """Base class of immutable records that reject undeclared fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def refuse_if(self, *faults: tuple[object, str]) -> Self:
        """Return the record if none of the fault conditions is true; each condition comes with an error message.

        Raises:
            ValueError: a fault condition is true; the message is that of the first such condition.
        """
        for is_there, sentence in faults:
            if is_there:
                raise ValueError(sentence)
        return self


class PinnedFile(FactSheet):
    """A data file in the package and the SHA-256 that its content must have."""

    file: str
    revision: Revision

    def read(self) -> bytes:
        """Return the file's content.

        Raises:
            PodevalError: the content does not have the pinned SHA-256.
        """
        if (actual := compute_content_revision(self.file)) != self.revision:
            raise PodevalError(
                f"the data file {self.file} has the hash {actual[:19]}…, but its benchmark pins {self.revision[:19]}…; "
                "reinstall podeval, or pin the new revision if you changed the data on purpose"
            )
        return _read_data(self.file)


def compute_content_revision(file: str) -> str:
    """Return `sha256:…` of a text file in the package's data, with line endings as stored in git."""
    content = _read_data(file).replace(b"\r\n", b"\n")
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def locate_data(file: str) -> Path:
    """Return the path of a data file in the package."""
    return Path(str(resources.files("podeval.benchmarks").joinpath("data", file)))


def _read_data(file: str) -> bytes:
    return locate_data(file).read_bytes()
