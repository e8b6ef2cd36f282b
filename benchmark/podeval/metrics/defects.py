"""All defects of one recording, with their times, as a proof-listener would list them.

The list combines the notes of `speaker_attribution`, `content_errors` and `integrity` on a recording with changes in
pace, in chronological order; each of these metrics can also be computed separately, with the same result. The pace of
words is checked only if a script is given, because words are not transcribed otherwise.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from podeval.errors import CannotScore, ModelMissing, PodevalError
from podeval.metrics import Metric, Result, Score, Unscored, catalogue
from podeval.metrics.audio.integrity import SHORTEST, list_faults
from podeval.recording import Recording
from podeval.recording.defects import TimedDefect, find_long_pauses, find_pace_changes
from podeval.recording.spoken_script import hear_script

LISTENING = ("integrity", "content_errors", "speaker_attribution")
"""The metrics whose notes list defects."""

_COVERS = 0.5
"""Share of a stretch that another stretch must cover for the two to count as the same."""


@dataclass(frozen=True)
class DefectReport:
    """The defects found in one recording, and the checks that were impossible.

    Attributes:
        defects: the defects in chronological order.
        unscored: a sentence that says why a check was impossible, by metric.
    """

    defects: tuple[TimedDefect, ...]
    unscored: Mapping[str, Unscored]


def find_defects(inputs: Mapping[str, Any], parameters: Mapping[str, Mapping[str, Any]] | None = None) -> DefectReport:
    """Find the defects of one recording.

    Args:
        inputs: `recording` and, if they exist, its `script` and `reference_voices`; without a script, only the faults
            that `integrity` detects are found.
        parameters: parameters that differ from their defaults, by metric.

    Raises:
        BadInput: an input cannot be read, or two inputs do not fit together.
    """
    results: dict[str, Result | PodevalError] = {}
    for name in LISTENING:
        metric = catalogue.get(name)
        if all(each in inputs for each in metric.inputs):
            names = (*metric.inputs, *metric.optional_inputs)
            own_inputs = {each: inputs[each] for each in names if each in inputs}
            chosen = (parameters or {}).get(name) or {}
            results[name] = (
                _list_faults(metric, own_inputs, chosen) if name == "integrity" else metric(own_inputs, chosen)
            )
    try:
        paced = _list_pace_defects(inputs)
    except (CannotScore, ModelMissing) as error:
        paced, results["pace"] = [], catalogue.get("pace").to_result(error, inputs)
    unscored = {name: result for name, result in results.items() if isinstance(result, Unscored)}
    listed = [*collect_defects(results.values()), *paced]
    return DefectReport(tuple(sorted(listed, key=_order_of)), unscored)


def _list_faults(metric: Metric, inputs: Mapping[str, Any], parameters: Mapping[str, Any]) -> Result | PodevalError:
    """Return the faults that `integrity` notes, without computing PLCMOS, which finds no defects and takes three times
    as long.
    """
    music_asked = metric.read_parameters(parameters)["music"] == "asked"
    recording: Recording = inputs["recording"]
    try:
        recording.require_sound(SHORTEST)
        faults, _ = list_faults(recording, inputs.get("script"), music_asked=music_asked)
    except (CannotScore, ModelMissing) as error:
        return metric.to_result(error, inputs)
    return Score({}, notes={"defects": [fault.to_json() for fault in faults]})


def _list_pace_defects(inputs: Mapping[str, Any]) -> list[TimedDefect]:
    recording: Recording = inputs["recording"]
    recording.require_sound()
    defects = find_long_pauses(recording.speech(), recording.music())
    if "script" in inputs:
        track = recording.speech_track()
        defects += find_pace_changes(hear_script(track, inputs["script"])[1], track.speech())
    return defects


def collect_defects(results: Iterable[Result | PodevalError]) -> list[TimedDefect]:
    """Collect the defects from the results' notes in chronological order; a defect in two results is listed once."""
    noted = [
        TimedDefect.from_json(entry)
        for result in results
        if isinstance(result, Score)
        for entry in result.notes.get("defects", ())
    ]
    repeated = [defect for defect in noted if defect.kind == "repeated"]
    # If a stretch is both a loop and repeated words, keep the repeated words, which are more informative.
    kept = [
        defect
        for defect in noted
        if defect.kind != "loop"
        or not any(
            min(defect.end, each.end) - max(defect.start, each.start) >= _COVERS * (defect.end - defect.start)
            for each in repeated
        )
    ]
    return sorted(kept, key=_order_of)


def _order_of(defect: TimedDefect) -> tuple[float, float, str]:
    return defect.start, defect.end, defect.kind
