"""DNSMOS: an estimate of listeners' opinion of the quality of speech, on a scale of 1 to 5.

Two networks of the DNS Challenge score windows of 9.01 s every second. The P.835 network estimates the quality
of the speech (SIG), of the background (BAK) and overall (OVRL), which then pass, window by window, through a polynomial
fitted by its authors; the P.808 network estimates one overall quality.
Source: Reddy et al., "DNSMOS P.835", ICASSP 2022; microsoft/DNS-Challenge, `DNSMOS/dnsmos_local.py`.

Differs from that code in two ways. It scores every window, whereas the reference loses windows 7 to 23, 119 to 122
and more to a rounding error (`windows="upstream"` loses them too). And it computes what overlapping windows
share only once, in bounded memory, with values equal within float32 rounding.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import floor
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from podeval import progress
from podeval.errors import BadInput, CannotScore
from podeval.models.networks.dnsmos import (
    MaxPool,
    P808Network,
    compute_log_power,
    make_mel_basis,
    read_p835,
    run_dense,
    run_seamed,
    run_stack,
    wrap_seamless,
)
from podeval.models.threads import one_torch_thread, run_ahead, threads

if TYPE_CHECKING:
    from torch import Tensor

    # Features of seconds of a recording, and what windows have in place of their first and last frames.
    _Parts: TypeAlias = tuple[Tensor, Tensor, Tensor]

RATE = 16_000
WINDOW_SECONDS = 9.01
WINDOW = 144_160
HOP = 160
MEL_FRAME = 321
MEL_BANDS = 120
FRAMES_PER_SECOND = RATE // HOP
# Both networks use 900 frames of a window; the last 10 ms only complete its last frame.
SPAN = 9
# Small blocks keep the widest layer, 128 x 161 floats a frame, near the processor's cache.
BLOCK_SECONDS = 2
# The 4 convolutions before the shared part's first pool and the one after it reach 6 frames; pooling needs 8.
MARGIN = 8

POLYNOMIALS = {
    "sig": (-0.08397278, 1.22083953, 0.0052439),
    "bak": (-0.13166888, 1.60915514, -0.39604546),
    "ovrl": (-0.06766283, 1.11546468, 0.04602535),
}

Floats = npt.NDArray[np.float64]
WindowChoice = Literal["exact", "upstream"]


@dataclass(frozen=True)
class DnsmosWindows:
    """The scores of every window; the score of a recording is the mean of each.

    Attributes:
        start: seconds from the beginning of the recording, (windows,).
        sig: quality of the speech.
        bak: quality of the background (intrusiveness of noise).
        ovrl: overall quality.
        p808: overall quality by the P.808 network; no polynomial applies to it.
        sig_raw: `sig` before the polynomial.
        bak_raw: `bak` before the polynomial.
        ovrl_raw: `ovrl` before the polynomial.
    """

    start: Floats
    sig: Floats
    bak: Floats
    ovrl: Floats
    p808: Floats
    sig_raw: Floats
    bak_raw: Floats
    ovrl_raw: Floats


class Dnsmos:
    """The two DNSMOS networks, ready to score.

    Args:
        p835: path of `sig_bak_ovr.onnx`.
        p808: path of `model_v8.onnx`.

    Raises:
        ModelMissing: a file is absent or is another network.
    """

    def __init__(self, p835: Path, p808: Path) -> None:
        import torch

        self._p835 = read_p835(p835)
        self._p808 = P808Network(p808)
        pools = [index for index, layer in enumerate(self._p835.stack) if isinstance(layer, MaxPool)]
        # Windows start every 100 frames: divisible by the first two pools of 2, but not by the third.
        self._shared, self._per_window = self._p835.stack[: pools[1] + 1], self._p835.stack[pools[1] + 1 :]
        self._hann = torch.hann_window(MEL_FRAME, periodic=True, dtype=torch.float64).float()
        self._mel = torch.from_numpy(make_mel_basis(RATE, MEL_FRAME, MEL_BANDS))

    def score(self, samples: npt.NDArray[np.floating], *, windows: WindowChoice = "exact") -> DnsmosWindows:
        """Score every window of a recording.

        Args:
            samples: mono at 16 kHz, (samples,), of any length: read block by block, so a memory map of several hours
                is fine. Less than 9.01 s is repeated until long enough, as in the reference.
            windows: "exact" scores every window; "upstream" leaves out those that the reference loses.

        Returns:
            One value per window, in order.

        Raises:
            BadInput: there are no samples, more than one channel, or samples that are not floating point.
            CannotScore: some samples are NaN or infinite.
        """
        import torch

        # The windows to score, and the blocks of seconds that cover them.
        signal = _repeat_to_window(samples)
        starts = list_window_starts(len(signal), windows)
        to_score = set(starts)
        blocks = range(0, starts[-1] + SPAN, BLOCK_SECONDS)
        power, mel = _Windows(), _Windows()
        rated: list[Future[tuple[Tensor, npt.NDArray[np.float32]]]] = []
        with _start_workers() as pool, torch.inference_mode():
            for first, (powers, mels) in zip(
                blocks, run_ahead(pool, partial(self._compute_features, signal), blocks), strict=True
            ):
                # Windows that this block completes are rated while the next blocks are computed.
                complete = range(first - SPAN + 1, first - SPAN + 1 + BLOCK_SECONDS)
                ready = [start for start in complete if start in to_score]
                pictures = power.extend(*powers, keep=ready), mel.extend(*mels, keep=ready)
                if ready:
                    rated.append(pool.submit(self._rate, *map(torch.stack, pictures)))
                progress.report("DNSMOS", min(first + BLOCK_SECONDS, blocks.stop), blocks.stop)
            results = [future.result() for future in rated]
        raw, p808 = zip(*results, strict=True)
        return _make_scores(starts, torch.cat(raw).numpy(), np.concatenate(p808))

    def _compute_features(self, signal: npt.NDArray[np.floating], first: int) -> tuple[_Parts, _Parts]:
        """Compute what windows share of both networks over the block of seconds that starts at `first`."""
        import torch

        block = torch.from_numpy(_read_block(signal, first))
        with torch.inference_mode():
            return self._compute_power(block), self._compute_mel_power(block)

    def _rate(self, power: Tensor, mel: Tensor) -> tuple[Tensor, npt.NDArray[np.float32]]:
        """Return raw SIG, BAK and OVRL, and the P.808 quality, of complete windows."""
        import torch

        with torch.inference_mode():
            raw = run_dense(self._p835, run_stack(self._per_window, power))
            return raw, self._p808.run(_to_decibels(mel[:, 0]).numpy())

    def _compute_power(self, block: Tensor) -> _Parts:
        """Run the shared layers over a block: (seconds, channels, frames, bins), heads and tails of windows."""
        import torch

        bounds = MARGIN + FRAMES_PER_SECOND * torch.arange(BLOCK_SECONDS + 1)
        features = compute_log_power(self._p835.transform, block, HOP)
        shared = run_seamed(self._shared, wrap_seamless(features, bounds[:-1], bounds[1:]))
        kept = shared.whole[0, :, int(shared.starts[0]) : int(shared.ends[-1])]
        seconds = torch.stack(kept.tensor_split(BLOCK_SECONDS, dim=1))
        return seconds, shared.heads, shared.tails

    def _compute_mel_power(self, block: Tensor) -> _Parts:
        """Compute mel power over a block: (seconds, 1, frames, bands), heads and tails of windows (one frame each).

        Frames are centred on multiples of the hop: a window's first frame has zeros for the half that precedes
        the window, its last frame for the one sample that follows the network's input.
        """
        import torch

        first = (MARGIN - 1) * HOP
        frames = block[first : first + RATE * BLOCK_SECONDS + HOP + 1].unfold(0, MEL_FRAME, HOP)
        # The first and last frame of a window see zeros beyond its ends.
        heads = frames[::FRAMES_PER_SECOND].clone()
        heads[:, : MEL_FRAME // 2] = 0
        tails = frames[FRAMES_PER_SECOND - 1 :: FRAMES_PER_SECOND].clone()
        tails[:, -1] = 0
        spectrum = torch.fft.rfft(torch.cat([frames, heads, tails]) * self._hann)
        power = (spectrum.abs().square() @ self._mel.T)[:, None]
        whole, head, tail = power.tensor_split([len(frames), len(frames) + BLOCK_SECONDS])
        return (
            whole.reshape(BLOCK_SECONDS, 1, FRAMES_PER_SECOND, MEL_BANDS),
            head[:, :, None],
            tail[:, :, None],
        )


def from_files(files: dict[str, Path]) -> Dnsmos:
    """Build the networks from the files that the registry names."""
    return Dnsmos(files["sig_bak_ovr.onnx"], files["model_v8.onnx"])


class _Windows:
    """Assembles windows of features from seconds of features as they arrive."""

    def __init__(self) -> None:
        self._seconds: deque[Tensor] = deque(maxlen=SPAN)
        self._heads: deque[Tensor] = deque(maxlen=SPAN)
        self._next = 1 - SPAN

    def extend(self, seconds: Tensor, heads: Tensor, tails: Tensor, *, keep: list[int]) -> list[Tensor]:
        """Add seconds; return those of the windows they complete that are in `keep`."""
        import torch

        complete = []
        for second, head, tail in zip(seconds, heads, tails, strict=True):
            self._seconds.append(second)
            self._heads.append(head)
            if self._next in keep:
                window = torch.cat(list(self._seconds), dim=1)
                window[:, : head.shape[1]] = self._heads[0]
                window[:, -tail.shape[1] :] = tail
                complete.append(window)
            self._next += 1
        return complete


def list_window_starts(samples: int, windows: WindowChoice) -> list[int]:
    """Return the seconds at which windows start.

    Args:
        samples: length of a recording at 16 kHz, at least 144,160.
        windows: "exact" for every window that the reference means to score, "upstream" for those it scores.

    Returns:
        Whole seconds, ascending. The reference's count leaves out a last window that fits only because of the
        fraction of the recording's last second; so does "exact".
    """
    count = int(floor(samples / RATE) - WINDOW_SECONDS) + 1
    if windows == "exact":
        return list(range(count))
    # The reference's own expression, which is one sample short for some starts in floating point.
    return [i for i in range(count) if int((i + WINDOW_SECONDS) * RATE) - i * RATE >= WINDOW]


def _repeat_to_window(samples: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    if samples.ndim != 1 or not np.issubdtype(samples.dtype, np.floating):
        raise BadInput(
            f"DNSMOS takes mono floating-point samples, got shape {samples.shape} of {samples.dtype}; "
            "mix the channels and divide integers by their full scale first."
        )
    if not len(samples):
        raise BadInput("DNSMOS got a recording without samples; check that the file holds audio.")
    while len(samples) < WINDOW:
        samples = np.concatenate([samples, samples])
    return samples


def _read_block(signal: npt.NDArray[np.floating], first: int) -> npt.NDArray[np.float32]:
    """Return the samples of a block of seconds with the margin on both sides; zeros outside the recording."""
    start = first * RATE - MARGIN * HOP
    stop = (first + BLOCK_SECONDS) * RATE + (MARGIN + 1) * HOP
    present = np.asarray(signal[max(start, 0) : stop], dtype=np.float32)
    if not np.isfinite(present).all():
        raise CannotScore(
            f"samples near second {first} are NaN or infinite, which DNSMOS cannot score; decode the file again."
        )
    before = max(-start, 0)
    return np.pad(present, (before, stop - start - before - len(present)))


def _to_decibels(power: Tensor) -> Tensor:
    """Convert mel power to the P.808 network's input: dB below the window's maximum, at most 80, (dB + 40) / 40."""
    level = 10 * power.clamp_min(1e-10).log10()
    return ((level - level.amax(dim=(1, 2), keepdim=True)).clamp_min(-80) + 40) / 40


def _make_scores(starts: list[int], raw: npt.NDArray[np.float32], p808: npt.NDArray[np.float32]) -> DnsmosWindows:
    sig, bak, ovrl = raw.astype(np.float64).T
    return DnsmosWindows(
        start=np.array(starts, dtype=np.float64),
        sig=np.polyval(POLYNOMIALS["sig"], sig),
        bak=np.polyval(POLYNOMIALS["bak"], bak),
        ovrl=np.polyval(POLYNOMIALS["ovrl"], ovrl),
        p808=p808.astype(np.float64),
        sig_raw=sig,
        bak_raw=bak,
        ovrl_raw=ovrl,
    )


@contextmanager
def _start_workers() -> Iterator[ThreadPoolExecutor]:
    """Start PODEVAL_THREADS workers, or one per CPU core, each of which uses one thread of torch.

    Blocks in parallel scale like threads inside an operation, but do not wait for each other at every operation,
    which costs several times as much on a machine that is busy with something else.
    """
    import torch

    with (
        one_torch_thread(),
        ThreadPoolExecutor(threads(), initializer=torch.set_num_threads, initargs=(1,)) as pool,
    ):
        yield pool
