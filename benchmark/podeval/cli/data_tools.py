"""`podeval data`: material for benchmarks and listening tests."""

import codecs
import os
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, NamedTuple

import typer

from podeval.cli.output import AsJson, emit, say, show_progress
from podeval.errors import BadAudio, BadInput, CannotScore, ModelMissing, PodevalError
from podeval.files import write_whole
from podeval.models.profiles import CHOICES
from podeval.text import dialogue_segments
from podeval.text.dialogue_segments import DialogueClip, Segment, Selection

if TYPE_CHECKING:
    from podeval.recording import Recording

    Draw = Callable[[Sequence[DialogueClip]], Selection]

data = typer.Typer(
    help="Prepare data for benchmarks and listening tests.\n\nExample: podeval data segments episode.wav --json",
    no_args_is_help=True,
)

_DIARISED = b"[Speaker"
_LATE = 1.0


class _Outputs(NamedTuple):
    """The paths of the requested output files."""

    clips: Path | None
    summary: Path | None
    transcript: Path | None


@data.command()
def segments(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="a diarised transcript, or audio")],
    audio: Annotated[
        Path | None, typer.Option(help="the recording that a transcript belongs to, for --clips-out and --summary-out")
    ] = None,
    clips_out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="cut the clips into this folder, as 16 kHz mono WAV")
    ] = None,
    summary_out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.wav", help="file to write with the first, middle and last minute, separated by a tone"
        ),
    ] = None,
    transcript_out: Annotated[
        Path | None, typer.Option(metavar="FILE.txt", help="write the diarised transcript that the clips come from")
    ] = None,
    select: Annotated[
        int | None,
        typer.Option(
            min=1, help="number of clips to draw from those of suitable length; 2 if only limits or a seed are given"
        ),
    ] = None,
    min_seconds: Annotated[
        float | None, typer.Option(help="shortest clip to select, in seconds; 15 by default")
    ] = None,
    max_seconds: Annotated[float | None, typer.Option(help="longest clip to select, in seconds; 25 by default")] = None,
    seed: Annotated[int | None, typer.Option(help="random seed of the draw; 0 by default")] = None,
    most_seconds: Annotated[
        float, typer.Option(min=0, help="seconds after which no further segment is added to a side of a clip")
    ] = dialogue_segments.MOST_SECONDS,
    back: Annotated[
        int, typer.Option(min=1, help="maximum number of segments before the turn")
    ] = dialogue_segments.BACK,
    forward: Annotated[
        int, typer.Option(min=1, help="maximum number of segments after the turn")
    ] = dialogue_segments.FORWARD,
    language: Annotated[str | None, typer.Option(help="language of the audio, such as en; detected by default")] = None,
    profile: Annotated[str, typer.Option(help=f"models for the audio: {CHOICES}")] = "embedded",
    allow_upsampling: Annotated[
        bool, typer.Option("--allow-upsampling", help="also use recordings whose sample rate is below the model's")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find the clips of a conversation in which the speaker changes, as PodEval does.

    FILE is a diarised transcript with lines of the form `[Speaker NAME] [start-end]: text`, or audio, which is first
    transcribed and diarised.

    Example: podeval data segments diarized_transcription.txt --json

    Example: podeval data segments episode.wav --select 2 --clips-out clips --summary-out summary.wav
    """
    from podeval.models import registry

    registry.require_profile(profile)
    draw = _make_draw(select, min_seconds, max_seconds, seed)
    group = partial(dialogue_segments.cut_dialogue_clips, most_seconds=most_seconds, back=back, forward=forward)
    outputs = _Outputs(clips_out, summary_out, transcript_out)
    _check_outputs(outputs, [path for path in (file, audio) if path])
    options = {"profile": profile, "allow_upsampling": allow_upsampling}
    output: dict[str, Any] = {"clips": []}
    try:
        _find(output, file, audio, outputs, group, draw, language, options)
        code = 0 if output["clips"] else 1
    except PodevalError as refusal:
        output |= {"clips": [], "reason": str(refusal)}
        code = 1 if isinstance(refusal, CannotScore | ModelMissing) else 2
    if "reason" in output:
        say(f"podeval: {output['reason']}")
    if as_json:
        emit(output, allow_nan=False)
    else:
        _print(output)
    raise typer.Exit(code)


def _find(
    output: dict[str, Any],
    file: Path,
    audio: Path | None,
    outputs: _Outputs,
    group: "Callable[[Sequence[Segment]], list[DialogueClip]]",
    draw: "Draw | None",
    language: str | None,
    options: dict[str, Any],
) -> None:
    """Collect everything to print, and write the requested files."""
    recording: Recording | None
    for folder in (outputs.clips, *(path.parent for path in (outputs.summary, outputs.transcript) if path)):
        if folder:
            _require_writable(folder)
    text = _read_transcript(file)
    if text is None:
        if audio:
            raise BadInput(f"{file} is already audio; leave out --audio {audio}")
        recording = _open_recording(output, file, outputs, options)
        spoken = _transcribe(output, recording, language)
    else:
        spoken = _parse(file, text)
        option = "--clips-out" if outputs.clips else "--summary-out" if outputs.summary else ""
        if option and audio is None:
            raise BadInput(f"{file} is a transcript; {option} also needs its recording: add --audio FILE")
        recording = _open_recording(output, audio, outputs, options) if option and audio else None
    if outputs.transcript:
        write_whole(outputs.transcript, "".join(f"{segment.to_line()}\n" for segment in spoken).encode())
    clips = group(spoken)
    if not clips:
        output["reason"] = f"{file}: {dialogue_segments.explain_no_clips(spoken)}"
    elif draw:
        clips = _apply_selection(output, draw(clips))
    if recording and outputs.clips:
        _write_clips(recording, clips, outputs.clips)
    for clip in clips:
        output["clips"].append(clip.to_json() | ({"audio_file": clip.file_name} if outputs.clips else {}))


def _parse(file: Path, text: str) -> "list[Segment]":
    try:
        return dialogue_segments.parse_diarised(text)
    except BadInput as error:
        raise BadInput(f"{file} is text, so it is read as a diarised transcript: {error}") from None


def _open_recording(output: dict[str, Any], path: Path, outputs: _Outputs, options: dict[str, Any]) -> "Recording":
    """Open the recording, and write its summary, which does not need a transcript."""
    from podeval.audio.excerpts import MINUTE, encode_pcm16_wav, join_minutes, locate_minutes
    from podeval.recording import Recording

    recording = Recording.open(path, **options)
    if outputs.summary:
        starts = locate_minutes(len(recording.samples), recording.rate)
        if starts is None:
            say(f"{path} is shorter than three minutes; {outputs.summary} contains all of it, without cuts")
        begins = [start / recording.rate for start in starts or ()]
        spans = [(start, start + MINUTE) for start in begins] or [(0.0, recording.duration)]
        _require_sound(recording, spans)
        write_whole(outputs.summary, encode_pcm16_wav(join_minutes(recording.samples, recording.rate), recording.rate))
        excerpts = [{"start": round(start, 3), "end": round(end, 3)} for start, end in spans]
        output["summary"] = {"file": str(outputs.summary), "excerpts": excerpts}
    return recording


def _read_transcript(path: Path) -> str | None:
    """Read the text of a text file; return None for audio.

    Raises:
        BadAudio: the file is missing, empty, a directory, or neither audio nor text; the message says which.
        BadInput: the transcript has an encoding other than UTF-8 or UTF-16.
    """
    from podeval.audio.decode import identify, open_regular

    with open_regular(path) as file:
        try:
            identify(file, path)
        except BadAudio as refusal:
            file.seek(0)
            return _decode_text(file, path, refusal)
    return None


def _decode_text(file: BinaryIO, path: Path, refusal: BadAudio) -> str:
    """Decode the file if its beginning is text; otherwise raise the error from reading it as audio."""
    head = file.read(4096)
    utf16 = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    decoder = codecs.getincrementaldecoder("utf-16" if utf16 else "utf-8")()
    try:
        text = decoder.decode(head)
        if "\0" in text:
            raise refusal
        return text + decoder.decode(file.read(), final=True)
    except UnicodeDecodeError as error:
        if head.lstrip().startswith(_DIARISED):
            raise BadInput(f"{path} is a transcript, but not in UTF-8 ({error}); save it as UTF-8") from None
        raise refusal from None


def _transcribe(output: dict[str, Any], recording: "Recording", language: str | None) -> "list[Segment]":
    """Transcribe and diarise a recording into segments."""
    from podeval.models import registry
    from podeval.recording.speaker_turns import transcribe_and_diarise

    say(f"{recording.name}: transcribing and diarising {recording.duration / 60:.1f} minutes of audio")
    with show_progress(Path(recording.name).name):
        transcript = transcribe_and_diarise(recording, language)
    left_out = len(transcript.nobody)
    if left_out:
        total = left_out + len(transcript.segments)
        say(f"{recording.name}: {left_out} of {total} segments are left out, because no speaker was found in them")
    models = {job: registry.get_card(job, recording.profile).id for job in ("transcriber", "diarizer")}
    output["heard"] = {"profile": recording.profile, **models, "language": transcript.language, "left_out": left_out}
    return list(transcript.segments)


def _apply_selection(output: dict[str, Any], selection: "Selection") -> "list[DialogueClip]":
    """Return the drawn clips; print a message if there are fewer clips than requested, or none at all."""
    output["selection"] = selection.to_json()
    limits = f"{selection.min_seconds:g} to {selection.max_seconds:g} s"
    if not selection.clips:
        output["reason"] = f"no clip lasts {limits}; choose other limits with --min-seconds and --max-seconds"
    elif selection.eligible < selection.requested:
        say(f"only {selection.eligible} of {selection.requested} requested clips of {limits} were found; all are used")
    return list(selection.clips)


def _write_clips(recording: "Recording", clips: "list[DialogueClip]", folder: Path) -> None:
    from podeval.audio.excerpts import CLIP_RATE, cut, encode_pcm16_wav

    # Check before anything is written, because the times may belong to another recording.
    for clip in clips:
        if clip.start >= recording.duration:
            raise BadInput(
                f"clip {clip.number} begins at {clip.start:.2f} s, but {recording.name} lasts {recording.duration:.2f} "
                "s; check that the transcript belongs to this recording"
            )
    if late := [clip for clip in clips if clip.end > recording.duration + _LATE]:
        say(f"these clips are cut short at the end of {recording.name}: {', '.join(str(clip.number) for clip in late)}")
    _require_sound(recording, [(clip.start, clip.end) for clip in clips])
    for clip in clips:
        samples = cut(recording.samples, recording.rate, clip.start, clip.end)
        write_whole(folder / clip.file_name, encode_pcm16_wav(samples, CLIP_RATE))


def _require_sound(recording: "Recording", spans: Sequence[tuple[float, float]]) -> None:
    """Refuse to export silence; only the exported part is checked, so that hours of audio need not be read."""
    frames = ((round(start * recording.rate), round(end * recording.rate)) for start, end in spans)
    if spans and not any(recording.samples[start:end].any() for start, end in frames):
        raise CannotScore(
            f"the part of {recording.name} to export is digital silence; check how the recording was exported"
        )


def _make_draw(
    count: int | None, min_seconds: float | None, max_seconds: float | None, seed: int | None
) -> "Draw | None":
    """Make the function that draws clips; return None if no option asks for clips."""
    if (count, min_seconds, max_seconds, seed) == (None, None, None, None):
        return None
    low = dialogue_segments.MIN_SECONDS if min_seconds is None else min_seconds
    high = dialogue_segments.MAX_SECONDS if max_seconds is None else max_seconds
    if not 0 <= low <= high < float("inf"):
        raise BadInput(f"no clip fits --min-seconds {low:g} and --max-seconds {high:g}; choose different limits")
    many = dialogue_segments.SELECTED if count is None else count
    return partial(dialogue_segments.select_clips, count=many, min_seconds=low, max_seconds=high, seed=seed or 0)


def _check_outputs(outputs: _Outputs, inputs: list[Path]) -> None:
    """Refuse to overwrite the input, or to write WAV data to a file with another extension.

    Raises:
        BadInput: an output path is refused.
    """
    if outputs.summary and outputs.summary.suffix.lower() != ".wav":
        raise BadInput(f"--summary-out writes WAV; change the name {outputs.summary} to one that ends in .wav")
    for path in (outputs.summary, outputs.transcript):
        if path and os.path.realpath(path) in [os.path.realpath(input_path) for input_path in inputs]:
            raise BadInput(f"{path} is an input and would be overwritten; choose another name for the output")


def _require_writable(folder: Path) -> None:
    """Check that the folder is writable, before hours of analysis.

    Raises:
        BadInput: the folder is not writable.
    """
    try:
        with tempfile.TemporaryFile(dir=next(path for path in (folder, *folder.parents) if path.exists())):
            return
    except OSError as error:
        raise BadInput(f"cannot write to {folder}: {error.strerror}; choose a folder that you can write to") from None


def _print(output: dict[str, Any]) -> None:
    for clip in output["clips"]:
        start, end = clip["time_range"]["start"], clip["time_range"]["end"]
        name = clip.get("audio_file", "")
        print(
            f"{start:.2f}-{end:.2f} ({end - start:.2f} s)  {clip['first_speaker']} → {clip['second_speaker']}"
            f"{f'  {name}' if name else ''}\n    {clip['text']}"
        )
