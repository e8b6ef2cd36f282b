"""PAM: whether sound is clear or noisy, according to a model trained on sounds and their descriptions.

Every chunk of 7 s is compared with two prompts, one good and one bad. A softmax over the two similarities gives the
share of the good prompt, and the score is the mean over chunks; 0 to 1, higher is better. `pam_avg` averages the scores
from two pairs of prompts; `pam_avgsim` averages the similarities of two good and two bad prompts before the softmax.
Any sound can be scored: speech, music or a mix. A recording with a lower rate than the model's is upsampled, as in the
paper, whose speech is at 16 and 24 kHz. Deshmukh et al., Interspeech 2024; MS-CLAP 2023 at 44.1 kHz, mean of the
channels.

Differs from the paper's formula, as the public code does: similarities are multiplied by the model's learned scale, and
the prompts end in full stops. Differs from that code in scoring all chunks of a recording by default (the last one ends
with the recording) after removing a constant offset and silence of more than a second at the ends; in mixing channels;
and in the resampler (SoX HQ instead of torchaudio's windowed sinc with 6 zero crossings), which does not affect files
at 44.1 kHz. `variant` selects a different computation:

- `paper`: the plain similarity, without the scale, as in the paper's formula; all values are close to 0.5.
- `repro`: the first 7 s only, of the mean of the channels.
- `msclap`: channels joined one after the other in time, as the public code reads them.
- `pcc`: the first 7 s of the joined channels, as in `pcc.py`, the public script that correlates PAM with listeners'
  ratings. For stereo, these are the first 7 s of the first channel, followed by the second channel if the first is
  shorter.
- `naive`: only the cosine with the good prompt (−1 to 1), which, according to the paper, does not agree with listeners.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from podeval.audio.samples import resample
from podeval.errors import BadInput
from podeval.metrics import Key, Reach, Score, Timeline, facts, metric
from podeval.models.interfaces import Samples
from podeval.recording import Recording
from podeval.recording.predicted_windows import cut_to_sound, start_windows

RATE = 44_100
CHUNK_SECONDS = 7
CHUNK = CHUNK_SECONDS * RATE

SHORTEST = 0.5
"""Minimum length in seconds of sound that may be looped to fill a chunk."""

GOOD = ("the sound is clear and clean.", "the sound quality is good.")
BAD = ("the sound is noisy and with artifacts.", "the sound quality is bad.")
_PAIRS = ((0, 1), (1, 0))
"""Pairs of good and bad prompts for `pam_avg`: the paper found that the crossed pairs work best."""

Variant = Literal["default", "paper", "repro", "msclap", "pcc", "naive"]
Floats = NDArray[np.float64]


@metric(
    name="pam",
    title="PAM",
    version="1.2",
    dimension="audio.quality",
    keys=(
        Key(
            "pam",
            "higher",
            bounds=(0, 1),
            about="quality according to one pair of opposite prompts",
            reach=Reach(facts.PAM_READERS, systems=(0.81, 0.9)),
        ),
        Key(
            "pam_avg",
            "higher",
            bounds=(0, 1),
            unreached=facts.VARIANT,
            only_for="the paper's prompts",
            about="mean of the scores from two pairs of prompts",
        ),
        Key(
            "pam_avgsim",
            "higher",
            bounds=(0, 1),
            unreached=facts.VARIANT,
            only_for="the paper's prompts",
            about="score from the mean similarities of two pairs of prompts",
        ),
    ),
    needs=("audio_text",),
    paper="PAM",
    intended_use="Screening for audible noise and artefacts in any sound, music included.",
    limitations=(
        "A recording below 44.1 kHz is upsampled, and the missing frequencies may count as unclear; the effect has not "
        "been measured, because the weights were not available here (`studies/low_rates.py reference` measures it). "
        "Two text prompts decide the score: it reflects what the captions in its training data call clear or noisy. It "
        "was not trained to rate speech, and long recordings are judged in windows of a few seconds."
    ),
)
def pam(recording: Recording, *, variant: Variant = "default", prompts: str = "") -> Score:
    """Score one recording.

    Args:
        recording: any sound; it is upsampled to 44.1 kHz if its rate is lower.
        variant: `default`, or one of `paper`, `repro`, `msclap`, `pcc` and `naive`.
        prompts: your own prompts, the good one first, separated by a vertical bar; the averages are then not computed.
    """
    good, bad = _parse_prompts(prompts) if prompts else (GOOD, BAD)
    recording.require_sound(SHORTEST)
    tracks, begin = _tracks(recording, variant)
    frames = sum(len(track) for track in tracks)
    starts = [0] if variant in ("repro", "pcc") else start_windows(frames, CHUNK)
    audio_embeddings = recording.array_from(
        "audio_text",
        lambda model: model.audio([_chunk(tracks, start) for start in starts]),
        chunks=starts[-1],
        count=len(starts),
        joined=len(tracks),
        **({"part": [begin, frames]} if _is_cut(tracks[0], recording, variant) else {}),
    ).astype(np.float64)
    texts = [*good, *bad]
    text_embeddings = recording.array_from("audio_text", lambda model: model.text(texts), texts=texts).astype(
        np.float64
    )
    scale = recording.array_from("audio_text", lambda model: np.array(model.scale), value="scale")
    likeness = audio_embeddings @ text_embeddings.T
    if variant == "naive":
        columns = {"pam": likeness[:, 0]}
    else:
        columns = _columns(likeness if variant == "paper" else likeness * float(scale), len(good))
    return Score(
        values={
            key: float(columns[key].mean()) if key in columns else None for key in ("pam", "pam_avg", "pam_avgsim")
        },
        notes={
            "windows": len(starts),
            **({"prompts": texts} if prompts else {}),
            **({"upsampled_from": recording.rate} if recording.rate < RATE else {}),
        },
        # Joined channels do not correspond to times in the recording.
        timeline=None
        if len(tracks) > 1
        else Timeline(
            starts=[round((begin + start) / RATE, 3) for start in starts],
            window=float(CHUNK_SECONDS),
            values={key: [round(float(value), 4) for value in column] for key, column in columns.items()},
        ),
    )


def _parse_prompts(prompts: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Parse a text with a good and a bad prompt.

    Raises:
        BadInput: there are not exactly two prompts.
    """
    parts = [part.strip() for part in prompts.split("|")]
    if len(parts) != 2 or not all(parts):
        raise BadInput(
            "prompts must be two texts separated by |, the good one first, such as "
            f"'the sound is clear.|the sound is noisy.', not {prompts!r}"
        )
    return (parts[0],), (parts[1],)


def _columns(logits: Floats, count: int) -> dict[str, Floats]:
    """Return the scores of every chunk from its logits for `count` good prompts and the same number of bad prompts."""
    good, bad = logits[:, :count], logits[:, count:]
    columns = {"pam": _share(good[:, 0], bad[:, 0])}
    if count > 1:
        columns["pam_avg"] = np.mean([_share(good[:, i], bad[:, j]) for i, j in _PAIRS], axis=0)
        columns["pam_avgsim"] = _share(good.mean(axis=1), bad.mean(axis=1))
    return columns


def _share(good: Floats, bad: Floats) -> Floats:
    """Return the softmax share of the good logits among the good and the bad logits."""
    return np.asarray(0.5 + 0.5 * np.tanh((good - bad) / 2))


def _tracks(recording: Recording, variant: Variant) -> tuple[list[Samples], int]:
    """Return the samples to score at 44.1 kHz (the mean of the channels, or each channel), and the first index."""
    if variant == "default":
        samples, begin = cut_to_sound(recording, RATE)
        return [samples], begin
    if variant not in ("msclap", "pcc") or recording.channels == 1:
        return [recording.mono(RATE, offset=True, upsample=True)], 0
    return [resample(recording.samples[:, number], recording.rate, RATE) for number in range(recording.channels)], 0


def _is_cut(samples: Samples, recording: Recording, variant: Variant) -> bool:
    """Return whether only a part of the recording is used; variants share embeddings only of whole recordings."""
    if variant != "default":
        return False
    whole = recording.mono(RATE, offset=True, upsample=True)
    return len(samples) < len(whole) or not np.shares_memory(samples, whole)


def _chunk(tracks: Sequence[Samples], start: int) -> Samples:
    """Return 7 s from `start` of the concatenated tracks, looped if they are shorter."""
    pieces: list[Samples] = []
    for track in tracks:
        if start < len(track) and sum(len(piece) for piece in pieces) < CHUNK:
            pieces.append(track[max(start, 0) : start + CHUNK])
        start -= len(track)
    chunk = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
    return chunk if len(chunk) == CHUNK else np.resize(chunk, CHUNK)
