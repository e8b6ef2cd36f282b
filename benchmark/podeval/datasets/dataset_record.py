"""The record of a dataset: all facts for its card, its build and its push, stated once, as data."""

from typing import Annotated, Literal

from pydantic import Field

from podeval.benchmarks.records import FactSheet
from podeval.errors import require_known

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
Sentence = Annotated[str, Field(min_length=10)]

SAMPLE = "sample"
"""The source of a few rows of our own making, in the schema of the real ones; never mistaken for the benchmark."""

LOCK = "podeval-build.json"
"""File that records a build: its sources with their hashes, rows and hashes of the Parquet files."""


CURATOR = (
    "The maintainers of podeval (https://huggingface.co/podeval); report faults in the discussions of the dataset's "
    "repo."
)


class Source(FactSheet):
    """A pinned source of rows.

    `location` is a dataset repo (`owner/name`), a URL, or a path beside the builder (`package.module:folder` for one in
    a package); a source of kind `folder` belongs to the user, who gives its path. `revision` is the pinned commit, or
    "" if none could be found, so the user must name one for the build; `files` are the files to read, with their
    SHA-256 ("" if unknown). A file's name may be a pattern of the Hub's client, and `a|b` means either.
    """

    name: Name
    kind: Literal["hub", "url", "package", "folder"]
    location: str
    revision: str = ""
    files: dict[str, str]
    licence: str
    redistributable: bool
    about: Sentence


class Config(FactSheet):
    """One table of the dataset: its splits, the meaning of a row, its possible sources (all, if empty), and the number
    of rows of the real one, if known.
    """

    name: Name
    description: Sentence
    splits: tuple[Name, ...] = Field(min_length=1)
    sources: tuple[Name, ...] = ()
    rows: int | None = None


class ResponsibleUse(FactSheet):
    """Facts that Croissant's vocabulary for responsible use requires in addition to a dataset's provenance and known
    errors.

    Source: Croissant RAI 1.0. `synthetic` is true where rows were written or spoken by machines.
    """

    use_cases: Sentence
    out_of_scope: Sentence
    biases: Sentence
    personal_information: Sentence
    sensitive_content: Sentence
    synthetic: bool


class DatasetRecord(FactSheet):
    """The whole record of a dataset repo `podeval/<name>`; `alias` is another name that people search for."""

    name: Name
    title: str
    alias: str = ""
    summary: Sentence
    version: str = Field(pattern=r"^\d+\.\d+\.\d+$")
    paper: str = Field(pattern=r"^https://")
    citation: str = Field(pattern=r"^@\w+\{")
    licence: str
    licence_details: Sentence
    languages: tuple[Literal["en", "zh"], ...] = Field(min_length=1)
    tasks: tuple[str, ...] = Field(min_length=1)
    tags: tuple[str, ...] = ()
    size: str
    configs: tuple[Config, ...] = Field(min_length=1)
    sources: tuple[Source, ...] = Field(min_length=1)
    gated: bool = False
    gate_prompt: str = ""
    provenance: Sentence
    responsible_use: ResponsibleUse
    known_errors: tuple[Sentence, ...] = ()
    curator: Sentence = CURATOR

    @property
    def full_title(self) -> str:
        """Return its title with its other name."""
        return f"{self.title} ({self.alias})" if self.alias else self.title

    def config(self, name: str) -> Config:
        """Return the config of that name.

        Raises:
            BadInput: there is no such dataset.
        """
        configs = {config.name: config for config in self.configs}
        require_known(f"config of {self.name}", configs, name)
        return configs[name]

    def configs_of(self, source: str) -> tuple[str, ...]:
        """Return the names of the configs that can be made from a source."""
        return tuple(config.name for config in self.configs if not config.sources or source in config.sources)

    def source(self, name: str) -> Source | None:
        """Return the source of that name, if there is one."""
        return next((source for source in self.sources if source.name == name), None)
