"""The result of a spot check of supplied outputs, as stored in a run's folder."""

from typing import Literal

from pydantic import Field

from podeval.benchmarks.records import FactSheet
from podeval.runs.run_folder import RunFolder, read_document

SPOT_CHECK_FILE = "spot_check.json"
"""File, in a run's folder, with the findings of a spot check of supplied outputs."""

DIFFERS_BELOW = 0.01
"""Adjusted p-value below which the model's outputs count as different from the supplied outputs."""


class KeyComparison(FactSheet):
    """Values for one key of a metric from the supplied outputs and from the model's outputs, and whether the two agree.

    `difference` is the mean over items of the supplied minus the generated value; `spread` is the standard deviation
    between seeds.
    """

    metric: str
    key: str
    items: int
    supplied: float
    generated: float
    difference: float
    spread: float
    p: float
    """The p-value, adjusted over all keys."""

    @property
    def differs(self) -> bool:
        """Whether the difference is larger than chance alone would explain."""
        return self.p < DIFFERS_BELOW


class SpotCheckReport(FactSheet):
    """The result of a spot check of one run, stored in the run's folder."""

    schema_version: Literal[1] = 1
    submission: str
    repo: str
    revision: str
    items: tuple[str, ...]
    seeds: tuple[int, ...]
    drawn_with: int
    at: str
    failed: dict[str, str] = Field(default_factory=dict)
    """The reason why an item could not be generated again, by item and seed."""
    comparisons: tuple[KeyComparison, ...] = ()

    @property
    def verdict(self) -> Literal["agrees", "differs", "not told"]:
        """The verdict; `not told` if nothing could be compared."""
        if not self.comparisons:
            return "not told"
        return "differs" if any(each.differs for each in self.comparisons) else "agrees"


def read_spot_check(run: RunFolder) -> SpotCheckReport | None:
    """Read the result of a run's spot check; None if there was none."""
    path = run.path / SPOT_CHECK_FILE
    return read_document(path, SpotCheckReport) if path.is_file() else None
