"""What a spot check of supplied outputs found, beside the run it is of."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from podeval.errors import BadInput
from podeval.runs.run_folder import RunFolder

FILE = "spot_check.json"
"""In the folder of a run."""

LEVEL = 0.01
Verdict = Literal["agrees", "differs", "not told"]


class KeyComparison(BaseModel):
    """One key of a metric: what was supplied, what the model makes, and whether that is the same.

    `difference` is the mean over items of supplied less generated; `spread` the standard deviation between seeds.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    metric: str
    key: str
    items: int
    supplied: float
    generated: float
    difference: float
    spread: float
    p: float
    """Adjusted over all keys."""

    @property
    def differs(self) -> bool:
        """Whether that is more than chance."""
        return self.p < LEVEL


class SpotCheckReport(BaseModel):
    """What a spot check of one run found; kept in the run's folder."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_version: Literal[1] = 1
    submission: str
    repo: str
    revision: str
    items: tuple[str, ...]
    seeds: tuple[int, ...]
    drawn_with: int
    at: str
    failed: dict[str, str] = {}
    """Why an item could not be made again, by item and seed."""
    comparisons: tuple[KeyComparison, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """`not told` where nothing could be compared."""
        if not self.comparisons:
            return "not told"
        return "differs" if any(each.differs for each in self.comparisons) else "agrees"


def read_spot_check(run: RunFolder) -> SpotCheckReport | None:
    """Read what the spot check of a run found; None where there was none."""
    path = run.path / FILE
    if not path.is_file():
        return None
    try:
        return SpotCheckReport.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise BadInput(f"{path} was not written by this version of podeval ({error}); delete it") from None
