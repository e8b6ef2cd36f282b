"""The option of commands that ask a judge: what of its records is asked anew."""

from enum import StrEnum
from typing import Annotated

import typer


class Anew(StrEnum):
    """What is asked anew."""

    FAILED = "failed"
    ALL = "all"


Refresh = Annotated[
    Anew | None,
    typer.Option(
        help="ask the judge again, although there are records: all questions, or only those that failed; "
        "earlier answers are kept",
    ),
]
