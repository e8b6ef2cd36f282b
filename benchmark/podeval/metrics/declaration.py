"""The declaration of a metric: every fact about it except its formula, stated once.

The `evaluate` module, the card, the command line's help, the docs table and the board's column come from it. A metric's
function takes its inputs as positional parameters and its settings as keyword-only parameters.
"""

from __future__ import annotations

import inspect
import math
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from podeval.errors import BadInput, CannotScore, ModelMissing, NoWords, PodevalError, require_fields
from podeval.metrics.facts import MISREADINGS, UNWARNED, JudgeUse, Parameter, Reach, describe_parameter, read_arguments
from podeval.metrics.score import Result, Score, Unscored
from podeval.recording.recording import MODEL_RATE

if TYPE_CHECKING:
    from podeval.judges.rounds import Asked, Conversation

Better = Literal["higher", "lower", "in range", "informative"]
DIMENSION_GROUPS = {
    "script": "📝",
    "speech": "🗣️",
    "acoustics": "🎙️",
    "semantics": "🎼",
    "expressiveness": "🎭",
    "audio": "🎚️",
    "podcast": "📻",
    "dialogue": "💬",
    "human": "👂",
    "efficiency": "⏱️",
}
"""The emoji of each group of dimensions, in the order of the board; the group is the part of a dimension before the
dot.
"""
INPUTS = {
    "recording": "audio to measure",
    "recordings": "the recordings of one system: a folder",
    "text": "a script or plain text",
    "passage": "a script or plain text",
    "reference_text": "the words that should be heard",
    "readings": "the same text, line by line, with every accepted reading of its parts",
    "script": "a script with its speakers; next to audio, it states who speaks when",
    "reference_voices": "a recording of the voice that each speaker should have",
    "reference_script": "the script to compare with, which counts as 0",
    "request": "the request: a text, or an object with `instruction` and `sources`",
    "dialogue": "a spoken dialogue: what the user and the system say, turn by turn, with its criteria",
    "generation_log": "a log of generation times and lengths of the generated audio",
    "system": "the name of the system to score",
    "reference_votes": "the votes on all systems, as JSON lines or CSV, or a file with them",
    "reference_marks": "the marks of all listeners, as JSON lines, or a file with them",
    "reference_answers": "the answers of all listeners, as JSON lines, or a file with them",
}
"""The inputs that a metric may ask for, by parameter name."""
ARROWS: Mapping[Better, str] = {"higher": "↑", "lower": "↓", "in range": "↔", "informative": ""}
"""Arrow that shows which direction is better, by direction."""

_OCCASIONAL = ("separator", "second_transcriber", "segmentation")
"""Jobs that only some recordings need."""


@dataclass(frozen=True)
class Key:
    """One value of a metric: its direction, bounds and unit."""

    name: str
    better: Better
    unit: str = ""
    bounds: tuple[float | None, float | None] = (None, None)
    ideal: tuple[float, float] | None = None
    about: str = ""
    title: str = ""
    """Title of the column; if it is empty, the title is made from the metric's title and the key's name."""
    reach: Reach | None = None
    """Values that people and good systems reach; None if no comparable values are known."""
    ranked: bool = True
    """Whether systems are ranked by it; False for a key that is easy to game and shown only because a paper prints it.
    """
    unreached: str = ""
    """Reason why no comparable values are known; a key that ranks systems has this or `reach`."""
    timing: bool = False
    """Whether it depends on pauses between turns, in which case the protocol's id includes how the items were
    generated.
    """
    percent: bool = False
    """Whether it is displayed as a percentage; data contain the fraction."""
    only_for: str = ""
    """Condition under which the key exists for an item; if it is empty, None is a gap."""

    @property
    def unit_text(self) -> str:
        """Unit, and an arrow that shows the better direction: `MOS ↑`, `LUFS ↔`."""
        return f"{self.unit} {ARROWS[self.better]}".strip()


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
    """A sentence for its card about how the value can be raised without an improvement, or be misread."""
    needs_speakers: bool = False
    """Whether an item is unscored if neither a script nor the parameter `speakers` states the number of speakers."""
    intended_use: str = ""
    """Intended use of the metric, and uses that it is not meant for."""
    limitations: str = ""
    """Limits of the metric: distinctions that it cannot make, and speakers or recordings that it favours."""
    where_available: tuple[str, ...] = ()
    """The model jobs that it uses in profiles that have a model for them, and does without in others."""
    no_benchmark: str = ""
    """Reason why no benchmark measures it; empty if one does."""
    courses: tuple[Key, ...] = ()
    """Values over time that do not exist for a recording as a whole."""

    @property
    def emoji(self) -> str:
        """The emoji of its Space: that of its dimension's group."""
        return DIMENSION_GROUPS[self.dimension.partition(".")[0]]

    def title_of(self, key: Key) -> str:
        """Return the column title of a key."""
        if key.title or key.name == self.name or len(self.keys) == 1:
            return key.title or self.title
        return f"{self.title} {key.name.removeprefix(f'{self.name}_').replace('_', ' ')}"

    @property
    def misreading(self) -> str:
        """A sentence about what must not be concluded from its values."""
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
        """The docstring of the metric's file: formula, units, source, how it differs from the original."""
        return inspect.getdoc(inspect.getmodule(self.function)) or ""

    def jobs(self, parameters: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the model jobs that can change its values under these parameters.

        Music detection does not run on a recording that is scored as it is (`source="mix"`), so profiles that otherwise
        use the same network share a protocol. Answers are not transcribed if the system's own transcript is used.
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
        """The key to show if there is room for only one."""
        return self.keys[0]

    def key(self, name: str) -> Key:
        """Return the declaration of one key."""
        return next(key for key in self.keys if key.name == name)

    def read_parameters(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return every parameter with its value: given values are checked, and the others are the defaults.

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
        """Return the parameters that protocols state: all except those that were added later and have their default
        value.

        Raises:
            BadInput: a parameter is unknown, or has an invalid value.
        """
        added = {parameter.name: parameter.default for parameter in self.parameters if parameter.constraint.added}
        return {n: v for n, v in self.read_parameters(values).items() if n not in added or v != added[n]}

    def __call__(
        self, inputs: Mapping[str, Any], parameters: Mapping[str, Any] | None = None, client: Asked | None = None
    ) -> Result:
        """Score one item from its inputs, with the parameters that differ from their defaults and the client of a
        judge.

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
        """Yield the result of each item, or the error of a refused item; a judge is asked about all items together."""
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
                reason = f"{self.name} computed {value} for {key}, which is not a score; please report it"
                return Unscored(reason, "ours")
        if self.needs and recording is not None and recording.rate < MODEL_RATE:
            return replace(result, notes={**result.notes, "upsampled_from": recording.rate})
        return result


REGISTERED: dict[str, Metric] = {}
"""The metrics whose files have been imported, by name; `podeval.metrics.catalogue` imports a file by its name."""


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
        title: its usual spelling in the field.
        version: its version, which is part of the protocol and increases with every change that affects a value.
        dimension: the column group of the board, `group.column`.
        keys: the values, with the headline first.
        paper: the source paper.
        needs: the model jobs that it uses; their weights become part of the protocol.
        asks: the kind of question that it asks a judge, if it asks one.
        only_for: condition that a recording must meet for its value to be meaningful; a recording that does not meet it
            is unscored, which is not a failure.
        caution: a sentence about how the value can be raised without an improvement, or how it can be misread.
        needs_speakers: whether it needs a script or the parameter `speakers` for the number of speakers.
        intended_use: its intended uses, and uses that it is not meant for; shown on its card.
        limitations: distinctions that it cannot make, and speakers or recordings that it favours; shown on its card.
        where_available: model jobs that it uses in profiles that have a model for them, and does without in others.
        no_benchmark: the reason why no benchmark measures it, in a sentence; shown on its card.
        courses: values over time that do not exist for a recording as a whole.

    Raises:
        ValueError: an essential field of the metric is missing, or the dimension's group is not in `DIMENSION_GROUPS`.
    """
    required = {"title": title, "version": version, "dimension": dimension, "keys": keys, "paper": paper}
    require_fields(name, required)
    if dimension.partition(".")[0] not in DIMENSION_GROUPS:
        raise ValueError(f"{name}: the dimension's group is one of {', '.join(DIMENSION_GROUPS)}, not {dimension!r}")

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
