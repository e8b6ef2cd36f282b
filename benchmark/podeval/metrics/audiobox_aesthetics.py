"""Audiobox Aesthetics: how well produced, complex, enjoyable and useful a sound is, whether speech or music.

Four ratings of about 1 to 10, predicted by one network at 16 kHz with channels averaged: production quality (PQ,
technical: clean, balanced, faithful), content enjoyment (CE) and content usefulness (CU, to people who make audio), for
all of which higher is better; and production complexity (PC, how many kinds of sound there are), which is neither good
nor bad: speech alone has little of it. Each value is the mean over consecutive windows of 10 s; a shorter last window
counts in proportion to its length. The recording is rated as it is, including music, but for a constant offset and
silence of more than a second at an end, which are not heard (version 1.1).

Not yet run on the real weights, which were not available where podeval was built. The loading code was run on tiny
models saved by the authors' package, and the values were compared with those of the package.

Source: Tjandra et al., "Meta Audiobox Aesthetics: Unified Automatic Quality Assessment for Speech, Music, and Sound",
2025 (arXiv 2502.05139); package `audiobox_aesthetics` 0.0.4. Used by papers on speech synthesis of Interspeech 2025
and later.

Differs from the package in how other sampling rates are converted to 16 kHz, and in how many windows are processed at
once: the package processes all windows of a file together, and those of an hour exhaust the memory.
"""

import numpy as np

from podeval.analysis import Recording
from podeval.analysis.predicted_windows import cut_to_sound
from podeval.metrics.declaration import Key, metric
from podeval.metrics.reach import UNRUN
from podeval.metrics.score import Score, Timeline

RATE = 16_000
WINDOW = 10
SHORTEST = 0.5
_ORDER = ("ce", "cu", "pc", "pq")


@metric(
    name="audiobox_aesthetics",
    title="Audiobox Aesthetics",
    version="1.1",
    dimension="audio.quality",
    about_zh="无论语音还是音乐，听众会觉得它制作得多好、多复杂、多悦耳、多有用。",
    keys=(
        Key(
            "pq",
            "higher",
            "",
            (1, 10),
            unreached=UNRUN,
            about="production quality",
            about_zh="声音的制作质量",
            zh="制作质量",
        ),
        Key(
            "ce",
            "higher",
            "",
            (1, 10),
            unreached=UNRUN,
            about="content enjoyment",
            about_zh="内容令人愉悦的程度",
            zh="内容愉悦度",
        ),
        Key(
            "cu",
            "higher",
            "",
            (1, 10),
            unreached=UNRUN,
            about="content usefulness",
            about_zh="内容可供利用的程度",
            zh="内容实用性",
        ),
        Key(
            "pc", "informative", "", (1, 10), about="production complexity", about_zh="制作的复杂程度", zh="制作复杂度"
        ),
    ),
    needs=("aesthetics",),
    paper="ours",
    intended_use=(
        "Comparing with papers that report its four axes; comparing a finished recording with others of its kind."
    ),
    limitations=(
        "Raters judged ten-second clips of speech, music and other sounds together. The axes therefore move with music"
        " and effects, complexity is not quality, and nobody rated an hour of talk. It does not tell whether the words"
        " are right."
    ),
)
def audiobox_aesthetics(recording: Recording) -> Score:
    """Score one recording.

    Args:
        recording: any sound, 16 kHz.
    """
    recording.require_sound(SHORTEST)
    (samples, begin), size = cut_to_sound(recording, RATE), WINDOW * RATE
    windows = [samples[start : start + size] for start in range(0, len(samples), size)]
    marks = recording.array_from(
        "aesthetics", lambda model: model.score(windows), window=size, part=[begin, len(samples)]
    )
    weights = [len(window) for window in windows]
    columns = dict(zip(_ORDER, np.asarray(marks, dtype=np.float64).T, strict=True))
    keys = ("pq", "ce", "cu", "pc")
    return Score(
        values={key: float(np.average(columns[key], weights=weights)) for key in keys},
        notes={"windows": len(windows)},
        timeline=Timeline(
            starts=[round(begin / RATE + number * WINDOW, 3) for number in range(len(windows))],
            window=min(float(WINDOW), round(len(samples) / RATE, 3)),
            values={key: [round(float(mark), 4) for mark in columns[key]] for key in keys},
        ),
    )
