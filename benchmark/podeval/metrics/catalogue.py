"""The declaration of a metric, with every fact about it except its formula, and the catalogue of all metrics by name.

The `evaluate` module, the card, the command line's help, the docs table and the board's column come from a metric's
declaration. A metric's function takes the inputs as positional parameters and the settings as keyword-only parameters.
A metric has the name of its file; looking it up imports only that file.
"""

from __future__ import annotations

import importlib
import inspect
import math
import re
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from podeval.errors import BadInput, CannotScore, ModelMissing, NoWords, PodevalError, require_fields
from podeval.metrics.facts import DIMENSION_GROUPS, INPUTS, MISREADINGS, UNWARNED, JudgeUse, Key
from podeval.metrics.score import Protocol, Result, Score, Unscored, describe_provenance
from podeval.recording.recording import MODEL_RATE

if TYPE_CHECKING:
    from podeval.judges.rounds import Asked, Conversation
    from podeval.metrics.judge_use import JudgeConfig

_KINDS = {int: "a whole number", float: "a number", str: "a text"}


@dataclass(frozen=True)
class Constraint:
    """Facts about a parameter that its type does not express, given as `Annotated[float, Constraint(…)]`.

    Attributes:
        least: minimum of a number; None if there is no limit.
        added: whether the parameter was added after values were published; protocols then state it only if it differs
            from its default.
    """

    least: float | None = None
    added: bool = False


@dataclass(frozen=True)
class Parameter:
    """A setting of a metric that affects its values."""

    name: str
    default: Any
    choices: tuple[Any, ...]
    kind: type
    about: str
    constraint: Constraint = Constraint()

    def read(self, value: Any) -> Any:
        """Read a value from text or data and check it.

        Raises:
            BadInput: the value is not one of the choices, or is of the wrong kind for the parameter.
        """
        if self.choices:
            if value not in self.choices:
                raise BadInput(f"{self.name} must be one of {', '.join(map(str, self.choices))}, not {value!r}")
            return value
        if self.kind is bool and isinstance(value, str):
            if value.lower() not in ("true", "false"):
                raise BadInput(f"{self.name} must be true or false, not {value!r}")
            return value.lower() == "true"
        try:
            read = self.kind(value)
        except (TypeError, ValueError, OverflowError):
            read = None
        if read is None or (isinstance(value, float) and read != value):
            raise BadInput(f"{self.name} must be {_KINDS.get(self.kind, self.kind.__name__)}, not {value!r}")
        if isinstance(read, float) and not math.isfinite(read):
            raise BadInput(f"{self.name} must be a finite number, not {value!r}")
        if self.constraint.least is not None and read < self.constraint.least:
            raise BadInput(f"{self.name} must be {self.constraint.least:g} or more, not {value!r}")
        return read


def describe_parameter(parameter: inspect.Parameter, hint: Any, about: str) -> Parameter:
    """Return the declaration of a keyword of a metric's function, based on its type hint."""
    hint, *constraints = typing.get_args(hint) if typing.get_origin(hint) is Annotated else (hint,)
    choices = typing.get_args(hint) if typing.get_origin(hint) is Literal else ()
    kind = type(choices[0]) if choices else hint
    return Parameter(parameter.name, parameter.default, choices, kind, about, *constraints)


def read_arguments(docstring: str) -> dict[str, str]:
    """Read the descriptions in a docstring's `Args` section, by argument."""
    section = re.search(r"^Args:\n((?:[ ]+.*\n?|\n)+)", docstring, flags=re.MULTILINE)
    lines = section.group(1) if section else ""
    entries = re.findall(r"^ {4}(\w+): ((?:.*)(?:\n {8}.*)*)", lines, flags=re.MULTILINE)
    return {name: re.sub(r"\s+", " ", text).strip() for name, text in entries}


_OCCASIONAL = ("separator", "second_transcriber", "segmentation")
"""Jobs that only some recordings need."""


@dataclass(frozen=True)
class Metric:
    """A named measurement; call it with an item's inputs to get a `Score` or `Unscored`.

    If a metric `asks` a judge, its function returns a conversation.
    """

    name: str
    title: str
    version: str
    dimension: str
    keys: tuple[Key, ...]
    needs: tuple[str, ...]
    paper: str
    function: Callable[..., Result | Conversation[Result]]
    inputs: tuple[str, ...]
    optional_inputs: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    asks: JudgeUse | None = None
    only_for: str = ""
    """Condition that a recording must meet for its value to be meaningful; empty if every recording of speech meets it.
    """
    caution: str = ""
    """A sentence for the metric's card about how the value can be raised without an improvement, or misread."""
    needs_speakers: bool = False
    """Whether an item is unscored if neither a script nor the parameter `speakers` states the number of speakers."""
    intended_use: str = ""
    """Intended uses of the metric, and uses for which it is not meant."""
    limitations: str = ""
    """Limits of the metric: distinctions that it cannot make, and speakers or recordings that it favours."""
    where_available: tuple[str, ...] = ()
    """The model jobs that the metric uses in profiles with a model for the job, and does without in other profiles."""
    no_benchmark: str = ""
    """Reason why no benchmark measures the metric; empty if a benchmark does."""
    courses: tuple[Key, ...] = ()
    """Values over time that do not exist for a recording as a whole."""

    @property
    def emoji(self) -> str:
        """The emoji of the metric's Space, which is the emoji of its dimension's group."""
        return DIMENSION_GROUPS[self.dimension.partition(".")[0]]

    def title_of(self, key: Key) -> str:
        """Return the column title of a key."""
        if key.title or key.name == self.name or len(self.keys) == 1:
            return key.title or self.title
        return f"{self.title} {key.name.removeprefix(f'{self.name}_').replace('_', ' ')}"

    @property
    def misreading(self) -> str:
        """A sentence that says which conclusions its values do not allow."""
        return f"Do not conclude {MISREADINGS.get(self.name, UNWARNED)}"

    @property
    def about(self) -> str:
        """The first paragraph of the metric's file."""
        return self.documentation.partition("\n\n")[0].replace("\n", " ")

    @property
    def purpose(self) -> str:
        """The measured quantity, without the metric's name in front."""
        return self.about.partition(": ")[2] or self.about

    @property
    def documentation(self) -> str:
        """The docstring of the metric's file: formula, units, source, and differences from the original."""
        return inspect.getdoc(inspect.getmodule(self.function)) or ""

    def jobs(self, parameters: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the model jobs that can change its values under these parameters.

        Music detection does not run on a recording that is scored as it is (`source="mix"`), so profiles that otherwise
        use the same networks share a protocol. Answers are not transcribed if the system's own transcript is used.
        """
        unused = ("music_detector", "separator") if parameters.get("source") == "mix" else ()
        reads = any(parameter.name == "transcripts" for parameter in self.parameters)
        if reads and (parameters.get("transcripts") != "heard" or parameters.get("modality") == "audio"):
            unused = (*unused, "transcriber")
        return tuple(job for job in self.needs if job not in unused)

    @property
    def reference(self) -> str | None:
        """The input with which every item is compared; None if there is no such input."""
        return self.inputs[1] if len(self.inputs) > 1 else None

    @property
    def headline(self) -> Key:
        """The key to show if there is room for only one key."""
        return self.keys[0]

    def key(self, name: str) -> Key:
        """Return the declaration of one key."""
        return next(key for key in self.keys if key.name == name)

    def read_parameters(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return every parameter with its value: given values are checked, and missing values are the defaults.

        Raises:
            BadInput: a parameter is unknown, or has an invalid value.
        """
        parameters = {parameter.name: parameter for parameter in self.parameters}
        for name in values:
            if name not in parameters:
                raise BadInput(f"{self.name} has no parameter {name!r}; it has {', '.join(parameters) or 'none'}")
        return {
            name: parameter.read(values[name]) if name in values else parameter.default
            for name, parameter in parameters.items()
        }

    def state_parameters(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters that protocols state: all except parameters that were added later and have their
        default value.

        Raises:
            BadInput: a parameter is unknown, or has an invalid value.
        """
        added = {parameter.name: parameter.default for parameter in self.parameters if parameter.constraint.added}
        return {n: v for n, v in self.read_parameters(values).items() if n not in added or v != added[n]}

    def __call__(
        self, inputs: Mapping[str, Any], parameters: Mapping[str, Any] | None = None, client: Asked | None = None
    ) -> Result:
        """Score one item from its inputs, with the parameters that differ from their defaults and a judge's client.

        Raises:
            PodevalError: the item is refused; an item that cannot be scored is unscored, with the cause.
        """
        (result,) = self.score([inputs], self.read_parameters(parameters or {}), client)
        if isinstance(result, PodevalError):
            raise result
        return result

    def score(
        self, items: Sequence[Mapping[str, Any]], chosen: Mapping[str, Any], client: Asked | None
    ) -> Iterator[Result | PodevalError]:
        """Yield the result of each item, or the error for a refused item; a judge is asked about all items together."""
        if self.asks:
            from podeval.metrics.judge_use import hold_conversations

            outcomes = hold_conversations(self.function, map(self._arguments, items), chosen, client)
            yield from map(self.to_result, outcomes, items)
            return
        for inputs in items:
            try:
                result: Any = self.function(**self._arguments(inputs), **chosen)
            except CannotScore as refusal:
                # If a model is missing, say so first, so that nobody changes the file in vain.
                result = self._find_missing_model(inputs, chosen) or refusal
            except PodevalError as error:
                result = error
            yield self.to_result(result, inputs)

    def _find_missing_model(self, inputs: Mapping[str, Any], chosen: Mapping[str, Any]) -> ModelMissing | None:
        """Return the error for a missing model that every recording needs; None if no such model is missing."""
        from podeval.models import registry

        beside = {"script", "reference_text"} & inputs.keys()
        occasional = {*_OCCASIONAL, "diarizer" if beside else "transcriber"}
        profile = getattr(inputs.get("recording"), "profile", "")
        try:
            for job in self.jobs(chosen) if profile else ():
                if job not in occasional and registry.explain_missing([job], profile):
                    registry.load(job, profile)
        except ModelMissing as missing:
            return missing
        return None

    def to_result(self, outcome: Result | PodevalError, inputs: Mapping[str, Any]) -> Result | PodevalError:
        """Turn an error that makes an item unscored into `Unscored`, return any other error unchanged, and check a
        score's values.
        """
        if isinstance(outcome, CannotScore):
            return Unscored(str(outcome), "ours" if isinstance(outcome, NoWords) else "system")
        if isinstance(outcome, PodevalError):
            from podeval.judges.rounds import NoAnswer

            return Unscored(str(outcome), "ours") if isinstance(outcome, ModelMissing | NoAnswer) else outcome
        return self._check_values(outcome, inputs.get("recording"))

    def _arguments(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the inputs for the function.

        Raises:
            BadInput: a required input is missing.
        """
        arguments = {name: inputs[name] for name in (*self.inputs, *self.optional_inputs) if name in inputs}
        missing = [INPUTS[name] for name in self.inputs if name not in arguments]
        if missing:
            raise BadInput(f"{self.name} also needs {' and '.join(missing)}")
        return arguments

    def _check_values(self, result: Result, recording: Any) -> Result:
        """Check that the values are numbers, and note if the recording was upsampled for a model."""
        if not isinstance(result, Score):
            return result
        for key, value in result.values.items():
            if value is not None and not math.isfinite(value):
                reason = f"{self.name} computed {value} for {key}, which is not a score; please report this bug"
                return Unscored(reason, "ours")
        if self.needs and recording is not None and recording.rate < MODEL_RATE:
            return replace(result, notes={**result.notes, "upsampled_from": recording.rate})
        return result


REGISTERED: dict[str, Metric] = {}
"""The metrics whose files have been imported, by name."""


def metric(
    *,
    name: str,
    title: str = "",
    version: str = "",
    dimension: str = "",
    keys: tuple[Key, ...] = (),
    paper: str = "",
    needs: tuple[str, ...] = (),
    asks: JudgeUse | None = None,
    only_for: str = "",
    caution: str = "",
    needs_speakers: bool = False,
    intended_use: str = "",
    limitations: str = "",
    where_available: tuple[str, ...] = (),
    no_benchmark: str = "",
    courses: tuple[Key, ...] = (),
) -> Callable[[Callable[..., Result | Conversation[Result]]], Metric]:
    """Declare a function as a metric.

    Args:
        name: the metric's name, on the Hub and on the command line; its file has the same name.
        title: its name as usually written in the field.
        version: its version, which is part of the protocol and increases with every change that affects a value.
        dimension: the column group of the board, `group.column`.
        keys: the values, with the headline first.
        paper: the source paper.
        needs: the model jobs that it uses; their weights become part of the protocol.
        asks: the kind of question that it asks a judge, if any.
        only_for: condition that a recording must meet for its value to be meaningful; a recording that does not meet it
            is unscored, which is not a failure.
        caution: a sentence about how the value can be raised without an improvement, or how it can be misread.
        needs_speakers: whether it needs a script or the parameter `speakers` for the number of speakers.
        intended_use: its intended uses, and uses that it is not meant for; shown on its card.
        limitations: distinctions that it cannot make, and speakers or recordings that it favours; shown on its card.
        where_available: model jobs that it uses in profiles with a model for the job, and does without in other
            profiles.
        no_benchmark: the reason why no benchmark measures it, in a sentence; shown on its card.
        courses: values over time that do not exist for a recording as a whole.

    Raises:
        ValueError: an essential field of the metric is missing, or the dimension's group is not in `DIMENSION_GROUPS`.
    """
    required = {"title": title, "version": version, "dimension": dimension, "keys": keys, "paper": paper}
    if not all(required.values()):
        require_fields(name, required)
    if dimension.partition(".")[0] not in DIMENSION_GROUPS:
        raise ValueError(
            f"{name}: the dimension's group must be one of {', '.join(DIMENSION_GROUPS)}, not {dimension!r}"
        )

    def declare(function: Callable[..., Result | Conversation[Result]]) -> Metric:
        signature = inspect.signature(function)
        hints = typing.get_type_hints(function, include_extras=True)
        described = read_arguments(inspect.getdoc(function) or "")
        positional = [p for p in signature.parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
        declared = Metric(
            name=name,
            title=title,
            version=version,
            dimension=dimension,
            keys=keys,
            needs=needs,
            paper=paper,
            function=function,
            inputs=tuple(p.name for p in positional if p.default is p.empty),
            optional_inputs=tuple(p.name for p in positional if p.default is not p.empty),
            parameters=tuple(
                describe_parameter(p, hints[p.name], described.get(p.name, ""))
                for p in signature.parameters.values()
                if p.kind is p.KEYWORD_ONLY
            ),
            asks=asks,
            only_for=only_for,
            caution=caution,
            needs_speakers=needs_speakers,
            intended_use=intended_use,
            limitations=limitations,
            where_available=where_available,
            no_benchmark=no_benchmark,
            courses=courses,
        )
        REGISTERED[name] = declared
        return declared

    return declare


_ORDER = (
    "distinct_n",
    "mattr",
    "info_dens",
    "semantic_div",
    "dialogue_judge",
    "instruction_following",
    "script_quality",
    "script_grounding",
    "wer",
    "dnsmos",
    "sim",
    "sptd",
    "wsim",
    "timbre_consistency",
    "timbre_similarity",
    "reverb_consistency",
    "sound_fidelity",
    "prosodic_coherence",
    "expressive_richness",
    "expressive_hierarchy",
    "rtf",
    "loudness",
    "smr",
    "casp",
    "pam",
    "rubric",
    "content_density",
    "distillmos",
    "utmos22",
    "nisqa_tts",
    "turn_taking",
    "pace",
    "dialogue_naturalness",
    "human_likeness",
    "speaker_attribution",
    "content_errors",
    "integrity",
    "endurance",
    "podcast_checks",
    "grounding",
    "arena",
    "mushra",
    "mos",
)
"""Metrics in the order of the board, which is not alphabetical; metrics not listed here come last."""


def _find_modules() -> dict[str, str]:
    """Return each metric's module by name: each file in a subfolder of `metrics` is a metric with the same name."""
    paths = [path for path in sorted(Path(__file__).parent.glob("*/[!_]*.py"))]
    return {path.stem: f"podeval.metrics.{path.parent.name}.{path.stem}" for path in paths}


_MODULES = _find_modules()

NAMES = (*(name for name in _ORDER if name in _MODULES), *(name for name in _MODULES if name not in _ORDER))
"""Every metric, in the order of the board."""


def get(name: str) -> Metric:
    """Return the metric with this name.

    Raises:
        BadInput: there is no such metric; the message suggests the closest name.
    """
    name = name.removeprefix("podeval/")
    if name not in NAMES:
        close = get_close_matches(name, NAMES, n=1, cutoff=0.4)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise BadInput(f"there is no metric {name!r}; {hint}`podeval metrics list` shows all of them")
    if name not in REGISTERED:
        importlib.import_module(_MODULES[name])
    return REGISTERED[name]


def get_title(name: str) -> str:
    """Return the title of a metric, or its name if this version does not have the metric."""
    return get(name).title if name in NAMES else name.replace("_", " ")


def load_all_metrics() -> tuple[Metric, ...]:
    """Return every metric, in the order of the board."""
    return tuple(get(name) for name in NAMES)


def make_protocol(
    metric: Metric,
    parameters: Mapping[str, Any],
    given_inputs: tuple[str, ...],
    models: Mapping[str, Any],
    *,
    dataset: str | None = None,
    generation: Mapping[str, Any] | None = None,
    task: Mapping[str, Any] | None = None,
) -> Protocol:
    """Return the protocol of a metric with these parameters, inputs and models.

    Args:
        metric: the metric whose values the protocol describes.
        parameters: the given parameters; the others have their default values.
        given_inputs: names of the available inputs; those that the metric uses are part of the protocol.
        models: the identities of the metric's `needs`, from `podeval.models.registry.describe_identities`.
        dataset: revision of the dataset, if there is one.
        generation: facts about how the items were generated.
        task: the conditions that the task sets for every system alike; without them, `generation` is hashed.
    """
    used = tuple(name for name in (*metric.inputs, *metric.optional_inputs) if name in given_inputs)
    return Protocol(
        metric=metric.name,
        version=metric.version,
        parameters=metric.state_parameters(parameters),
        inputs=used,
        models=models,
        dataset=dataset,
        generation=generation or {},
        task=None if any(key.timing for key in metric.keys) else task,
    )


def describe_protocol(
    metric: Metric,
    parameters: Mapping[str, Any],
    input_names: tuple[str, ...],
    profile: str,
    bench: JudgeConfig | None = None,
) -> dict[str, Any]:
    """Return the protocol of a metric as data, with the provenance; outside a benchmark, it includes no dataset."""
    models: dict[str, Any] = {}
    jobs = metric.jobs(parameters)
    if jobs or metric.where_available:
        from podeval.models.registry import describe_identities

        models = describe_identities(jobs, profile, metric.where_available)
    if metric.asks:
        from podeval.metrics.judge_use import NOBODY

        models |= (bench or NOBODY).identity(metric.asks, metric.read_parameters(parameters))
    protocol = make_protocol(metric, parameters, input_names, models)
    return {**protocol.to_json(), "provenance": describe_provenance(profile)}
