"""The submission document: what is submitted, by whom, for which benchmarks, and from which source.

The Space's form, `podeval submit` and `submissions/<system>/submission.yaml` all use this document. The kinds of
sources are `outputs` (audio or scripts made elsewhere), `model` (a model repo that podeval runs), `human` (recordings
of people), `builtin` (a baseline or control that podeval can run by itself) and `reported` (figures as printed in a
paper).
"""

import json
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, StrictInt, model_validator

from podeval import benchmarks
from podeval.errors import BadInput

SLUG = r"^[a-z][a-z0-9_]{1,63}$"
REPO = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,95}/[A-Za-z0-9][A-Za-z0-9_.-]{0,95}$"
REVISION = r"^[0-9a-f]{40}$"
FOLDER = r"^[A-Za-z0-9_-][A-Za-z0-9_.-]*(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*$"
HTTPS = r"^https://[^\s\x00-\x1f\x7f<>\"']{3,400}$"
LANGUAGE = r"^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$"
LICENCE = r"^[A-Za-z0-9][A-Za-z0-9.+() -]{1,79}$"
RESULTS_FILE = r"^[A-Za-z0-9_-]{1,64}\.csv$"
# No control characters (including non-ASCII ones, which terminals interpret), no line breaks (except \n in paragraphs),
# and no characters that change the direction of the surrounding text.
ONE_LINE = r"^[^\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]{1,200}$"
PARAGRAPH = r"^[^\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]{1,2000}$"

PATTERNS_IN_WORDS = {
    SLUG: "2 to 64 lower-case letters, digits and underscores, starting with a letter, as in my_voice_2",
    REPO: "a Hub repo as owner/name",
    REVISION: "a full commit hash of 40 characters, as the repo's history shows it; a branch can move",
    FOLDER: "a folder next to the document, without .. and not starting with /",
    HTTPS: "a link that starts with https://",
    LANGUAGE: "a language code such as en or zh",
    LICENCE: "an SPDX licence id such as Apache-2.0, or proprietary, or unknown",
    ONE_LINE: "one line of at most 200 characters, without control characters",
    PARAGRAPH: "at most 2000 characters, without control characters",
}


def _require_benchmark(name: str) -> str:
    """Return the name of a benchmark; raise an error that pydantic can locate if it does not exist."""
    try:
        return benchmarks.get(name).name
    except BadInput as error:
        raise ValueError(str(error)) from error


Slug = Annotated[str, Field(pattern=SLUG)]
BenchmarkName = Annotated[Slug, AfterValidator(_require_benchmark)]
Repo = Annotated[str, Field(pattern=REPO)]
Revision = Annotated[str, Field(pattern=REVISION)]
Link = Annotated[str, Field(pattern=HTTPS)]
Line = Annotated[str, Field(pattern=ONE_LINE)]
Paragraph = Annotated[str, Field(pattern=PARAGRAPH)]
Task = Literal["text-to-speech", "podcast", "script-writer", "speech-to-speech"]


class DocumentPart(BaseModel):
    """A block of the document, which is immutable and has only declared fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Links(DocumentPart):
    """Links to more information."""

    homepage: Link | None = None
    code: Link | None = None
    paper: Link | None = None
    demo: Link | None = None


class System(DocumentPart):
    """The evaluated system, as its submitter describes it."""

    id: Slug = Field(description="name of the system's folder and of its row; never changes")
    name: Line = Field(description="as shown on the board")
    description: Paragraph
    organisation: Line | None = None
    authors: tuple[Line, ...] = Field(default=(), max_length=50)
    links: Links = Links()
    licence: Annotated[str, Field(pattern=LICENCE)] = Field(description="of the weights, or of the outputs")
    open: StrictBool = Field(description="whether anyone can download and run the system")
    size_parameters: Annotated[StrictInt, Field(gt=0, lt=10**15)] | None = Field(
        default=None, description="number of parameters; leave out if it is not known"
    )
    languages: tuple[Annotated[str, Field(pattern=LANGUAGE)], ...] = Field(min_length=1, max_length=200)


class BenchmarkEntry(DocumentPart):
    """A benchmark in which the system takes part, with the tracks that it can do."""

    name: BenchmarkName
    tracks: tuple[Slug, ...] = Field(min_length=1, max_length=10)

    @model_validator(mode="after")
    def _exists(self) -> Self:
        tracks = benchmarks.get(self.name).tracks
        if wrong := set(self.tracks) - {track.name for track in tracks}:
            names = ", ".join(track.name for track in tracks)
            raise ValueError(f"{self.name} has no track {', '.join(sorted(wrong))}; choose among {names}")
        return self


class _Files(DocumentPart):
    repo: Repo | None = Field(default=None, description="dataset repo with one file per item, named by item id")
    revision: Revision | None = None
    folder: Annotated[str, Field(pattern=FOLDER, max_length=200)] | None = Field(
        default=None, description="folder next to this document, in place of a repo"
    )

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.repo is None) == (self.folder is None):
            raise ValueError("give either repo (with revision) or folder, but not both")
        if (self.repo is None) != (self.revision is None):
            raise ValueError("give both repo and revision, so that the measured files cannot change later")
        return self


class Human(_Files):
    """Recordings or texts of people, which are scored and compared in battles like those of any system."""

    kind: Literal["human"]


class PinnedRepo(DocumentPart):
    """A Hub repo at one commit."""

    repo: Repo
    revision: Revision


class ModelSource(PinnedRepo):
    """A model repo at one commit, with its task and the model that it adapts."""

    task: Task
    base: PinnedRepo | None = None


class Publish(DocumentPart):
    """Whether results are proposed to the model's own repo, as pull requests that its owners merge or close."""

    eval_results: StrictBool = Field(
        default=False, description="propose the results as .eval_results/podeval.yaml, which the Hub's boards read"
    )
    model_index: StrictBool = Field(default=False, description="also propose them as model-index in the model's card")


class Consent(DocumentPart):
    """The people whose voices a system clones from recordings outside the benchmark, and their permission."""

    clones: StrictBool = Field(
        default=False, description="it speaks in reference voices other than those of the benchmark"
    )
    whose: tuple[Line, ...] = Field(
        default=(), max_length=100, description="persons, or speakers of a data set; synthetic for nobody's voice"
    )
    permission: Paragraph | None = Field(
        default=None, description="what they permitted, and where it can be read: a licence or a signed consent"
    )


class Model(PinnedRepo):
    """A model repo that podeval runs in its sandbox; `base` is the model that an adapter repo adapts."""

    kind: Literal["model"]
    task: Task
    base: PinnedRepo | None = None
    publish: Publish = Publish()
    consent: Consent | None = None


class Outputs(_Files):
    """Audio or scripts that the submitter made, which are shown as `outputs supplied`.

    `made_by` is the public model that made them; podeval may generate some of them again with it, and shows whether the
    figures agree with those of the supplied ones.
    """

    kind: Literal["outputs"]
    made_by: ModelSource | None = None
    consent: Consent | None = None


class BuiltIn(DocumentPart):
    """A system that comes with podeval. A control is a system that a board must not reward."""

    kind: Literal["builtin"]
    runner: Slug = Field(description="name in podeval.systems")
    role: Literal["baseline", "control"]


class ReportedFigure(DocumentPart):
    """A figure as printed in a paper, with the profile `paper`, so it is ranked only among figures of the same variant.

    `value` keeps the printed digits, `spread` is the standard deviation printed with it, and `count` is the number of
    votes or items behind it. `module` and `key` name the corresponding metric of ours, if there is one. `breakdown` and
    `group` are empty for a figure over the whole benchmark. `better` is `neither` for a figure that does not rank
    systems.
    """

    benchmark: BenchmarkName
    paper: Literal["podeval", "lfs", "podbench", "pam", "mtalk"]
    table: Line = Field(description="where in the paper, as in Table 5")
    printed: Line = Field(description="the metric's name as printed")
    module: Slug | None = None
    key: Slug | None = None
    variant: Slug
    breakdown: Slug | None = None
    group: Line | None = None
    value: Decimal = Field(max_digits=20)
    spread: Decimal | None = Field(default=None, ge=0, max_digits=20)
    count: Annotated[int, Field(gt=0, lt=10**12)] | None = None
    better: Literal["higher", "lower", "neither"]
    note: Line | None = None

    @model_validator(mode="after")
    def _refers_to_what_exists(self) -> Self:
        benchmark = benchmarks.get(self.benchmark)
        if (self.module is None) != (self.key is None):
            raise ValueError("module and key belong together; give both or neither")
        if (self.breakdown is None) != (self.group is None):
            raise ValueError("breakdown and group belong together; give both or neither")
        if self.breakdown is not None:
            groups: dict[str, tuple[str, ...]] = {part.name: part.groups for part in benchmark.breakdowns}
            if self.group not in groups.get(self.breakdown, ()):
                raise ValueError(f"{benchmark.name} has no {self.breakdown} {self.group}")
        return self

    @property
    def place(self) -> tuple[str | None, ...]:
        """The identity of a figure, which no other figure of the system shares."""
        return (self.benchmark, self.paper, self.variant, self.printed, self.breakdown, self.group)


class Reported(DocumentPart):
    """Figures from papers; nothing is run, and intervals are not invented."""

    kind: Literal["reported"]
    results: tuple[ReportedFigure, ...] = Field(
        min_length=1, description="the figures, or the name of a CSV file next to this document that contains them"
    )

    @model_validator(mode="after")
    def _once_each(self) -> Self:
        seen = set()
        for number, figure in enumerate(self.results, start=1):
            if figure.place in seen:
                group = f", {figure.group}" if figure.group else ""
                raise ValueError(f"figure {number} ({figure.printed}{group}) appears twice; remove one")
            seen.add(figure.place)
        return self


Source = Annotated[Outputs | Model | Human | BuiltIn | Reported, Field(discriminator="kind")]


class Submission(DocumentPart):
    """The complete submission document."""

    schema_version: Literal[1]
    system: System
    benchmarks: tuple[BenchmarkEntry, ...] = Field(min_length=1, max_length=20)
    source: Source

    @model_validator(mode="after")
    def _figures_are_of_its_benchmarks(self) -> Self:
        entered = [entry.name for entry in self.benchmarks]
        if len(set(entered)) < len(entered):
            raise ValueError("the same benchmark is listed twice; put its tracks in one entry")
        if isinstance(self.source, Reported):
            for figure in self.source.results:
                if figure.benchmark not in entered:
                    raise ValueError(f"some figures belong to {figure.benchmark}, which is not listed under benchmarks")
        return self


BLOCKS: dict[tuple[str, ...], type[DocumentPart]] = {
    (): Submission,
    ("system",): System,
    ("system", "links"): Links,
    ("benchmarks",): BenchmarkEntry,
    ("source", "outputs"): Outputs,
    ("source", "outputs", "made_by"): ModelSource,
    ("source", "outputs", "made_by", "base"): PinnedRepo,
    ("source", "outputs", "consent"): Consent,
    ("source", "model"): Model,
    ("source", "model", "base"): PinnedRepo,
    ("source", "model", "publish"): Publish,
    ("source", "model", "consent"): Consent,
    ("source", "human"): Human,
    ("source", "builtin"): BuiltIn,
    ("source", "reported"): Reported,
    ("source", "reported", "results"): ReportedFigure,
}
"""The class of the block at each path of field names; paths omit list positions and include the kind of source."""


def build_json_schema() -> dict[str, Any]:
    """Build the JSON Schema of the document as authors write it; `write_schema` gives `submissions/schema.json`."""
    schema = Submission.model_json_schema()
    results = schema["$defs"]["Reported"]["properties"]["results"]
    figures = {key: results.pop(key) for key in ("items", "minItems", "type")}
    results["anyOf"] = [figures, {"type": "string", "pattern": RESULTS_FILE}]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "podeval submission", **schema}


def write_schema() -> str:
    """Return the published form of the JSON Schema."""
    return json.dumps(build_json_schema(), indent=2, ensure_ascii=False) + "\n"
