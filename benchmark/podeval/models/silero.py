"""Silero VAD with the ONNX file and the segmentation rule that faster-whisper ships."""

from pathlib import Path

import numpy as np
from faster_whisper.vad import VadOptions, get_speech_timestamps

from podeval import progress
from podeval.audio.windows import Span
from podeval.models.interfaces import RATE, Samples, VoiceActivity

_PIECE = 30 * 60 * RATE


class SileroVoiceActivity(VoiceActivity):
    """A voice activity detector that processes half an hour at a time and joins spans that touch a cut."""

    def __init__(self, files: dict[str, Path], **options: float) -> None:
        self._options = VadOptions(**options)

    def speech(self, samples: Samples) -> tuple[Span, ...]:
        """Return the spans that contain speech, in order."""

        def find_in_piece(start: int) -> list[dict[str, int]]:
            piece = np.ascontiguousarray(samples[start : start + _PIECE], dtype=np.float32)
            return list(get_speech_timestamps(piece, self._options))

        spans: list[Span] = []
        starts = range(0, len(samples), _PIECE)
        # One piece at a time: each needs half a gigabyte, and finding speech takes little of the time of any metric.
        for start, timestamps in zip(starts, map(find_in_piece, starts), strict=True):
            for timestamp in timestamps:
                span = Span((start + timestamp["start"]) / RATE, (start + timestamp["end"]) / RATE)
                if spans and span.start - spans[-1].end < 0.1:
                    span = Span(spans.pop().start, span.end)
                spans.append(span)
            progress.report("finding speech", min(start + _PIECE, len(samples)) / RATE, len(samples) / RATE)
        return tuple(spans)
