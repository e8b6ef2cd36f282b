"""Read the duration of an audio file without decoding the file."""

import os
from pathlib import Path

from podeval.audio.compressed import open_with_ffmpeg
from podeval.audio.container import NOTED_SHORTFALL, TIMED, Container, PartReader
from podeval.audio.decode import identify, open_regular
from podeval.errors import BadAudio


def read_container_and_seconds(path: Path) -> tuple[str, float]:
    """Read an audio file's container and duration, from its header or, if the header does not state the duration, from
    the packets' timestamps.

    Returns:
        The container's name (see `Container`) and the duration in seconds.

    Raises:
        BadAudio: the file is missing, is not audio, is shorter than it states, or contains nothing to play.
    """
    import av

    with open_regular(path) as file:
        container = identify(file, path)
        size = file.seek(0, os.SEEK_END)
        seconds, problem = container.stated_seconds or 0.0, f"is {container.name}, but contains no audio"
        try:
            for part in () if seconds else container.parts:
                seconds += _measure_part(PartReader(file, part), container, seconds)
        except (av.FFmpegError, ValueError, RuntimeError, NotImplementedError, OSError) as error:
            seconds, problem = 0.0, f"looks like {container.name}, but cannot be read ({error})"
    end = container.stated_bytes or 0
    if end > size and not 0 < container.estimate_missing(seconds, size) <= NOTED_SHORTFALL:
        raise BadAudio(f"{str(path)!r} is cut off: {size} of at least {end} bytes are present.")
    if not seconds:
        raise BadAudio(f"{str(path)!r} {problem}.")
    return container.name, seconds


def _measure_part(file: PartReader, container: Container, before: float) -> float:
    """Return a part's stated duration, or the time from its first to its last packet; `before` is the duration of the
    earlier parts.
    """
    import av
    import soundfile

    if container.reader == "soundfile":
        return float(soundfile.info(file).duration)
    with open_with_ffmpeg(file, container) as source:
        if not source.streams.audio:
            return 0.0
        # For MP3 and AAC streams without a container, FFmpeg's duration would be a guess from the bit rate of the first
        # frames.
        if container.name in TIMED and source.duration:
            # A fragment states its end time, which includes the time before it; an earlier part may already contain
            # that time.
            start = max(0.0, min(before, (source.start_time or 0) / av.time_base))
            return max(0.0, float(source.duration / av.time_base - start))
        stream = source.streams.audio[0]
        begin, end = None, 0
        # Use integer ticks, because hours of audio have hundreds of thousands of packets, and fractions are slow.
        for packet in source.demux(stream):
            if packet.pts is not None:
                begin = packet.pts if begin is None else min(begin, packet.pts)
                end = max(end, packet.pts + (packet.duration or 0))
        return float((end - begin) * stream.time_base) if begin is not None and stream.time_base else 0.0
