"""The profiles: a profile is a set of models that compute values, and each profile has one entry here.

All lists of profiles elsewhere come from this table: command-line choices, error messages, help texts, the board's
filters, and the number of processes per GPU. To add a profile, add an entry here, its name to the `profiles` of the
cards of its models, and the label `profiles/NAME` to the texts of the board.
"""

from dataclasses import dataclass

from podeval.errors import require_fields

PAPER = "paper"
"""The profile for figures as printed in papers."""


@dataclass(frozen=True)
class Profile:
    """A set of models, one for each job that it can do, or the figures from papers, which podeval did not measure.

    Attributes:
        name: name of the profile on the command line and in results.
        about: description of the models or figures.
        gigabytes: GPU memory that one process needs with all the profile's models (docs/performance.md).
        measures: whether it has models to measure with.
    """

    name: str = ""
    about: str = ""
    gigabytes: float = 0.0
    measures: bool = True

    def __post_init__(self) -> None:
        required = {"name": self.name, "about": self.about, "gigabytes": self.gigabytes or not self.measures}
        require_fields(f"profile {self.name}".strip(), required)


PROFILES = {
    profile.name: profile
    for profile in (
        Profile("embedded", "models whose weights come with packages", gigabytes=3),
        Profile("reference", "the papers' models", gigabytes=34),
        Profile(PAPER, "figures that papers print", measures=False),
    )
}

MEASURING = tuple(profile.name for profile in PROFILES.values() if profile.measures)
"""The profiles that have models; the default is first."""

CHOICES = " or ".join(MEASURING)
"""Names of the profiles for help texts and error messages."""


def require_profiles(what: str, names: tuple[str, ...]) -> None:
    """Refuse a declaration that names anything other than profiles with models.

    Raises:
        ValueError: a name is unknown; the message begins with `what`.
    """
    if unknown := [name for name in names if name not in MEASURING]:
        raise ValueError(f"{what}: the profile must be one of {', '.join(MEASURING)}, not {unknown[0]!r}")
