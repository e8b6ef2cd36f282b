"""The expected reaction of each metric to each distortion, written down before the study was run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

MONOTONE = 0.9
"""Minimum value of Spearman's coefficient, for the median item, at which a metric follows a distortion's levels."""


@dataclass(frozen=True)
class Expected:
    """A claim: the quantity falls or rises with the distortion, or stays within `tolerance` at every level."""

    quantity: str
    distortion: str
    move: Literal["falls", "rises", "stays"]
    tolerance: float = 0.0

    @property
    def claim(self) -> str:
        """The claim in words."""
        return f"stay within ±{self.tolerance:g}" if self.move == "stays" else self.move.rstrip("s")


def _all() -> tuple[Expected, ...]:
    found = [
        Expected("dnsmos.bak", "noise", "falls"),
        Expected("dnsmos mix.bak", "music", "falls"),
        *(Expected("dnsmos.sig", name, "falls") for name in ("tanh", "mu_law", "low_pass", "clip", "reverb")),
        *(Expected("dnsmos.ovrl", n, "falls") for n in ("noise", "tanh", "mu_law", "low_pass", "clip", "reverb")),
        *(Expected(f"dnsmos.{key}", "gain", "stays", 0.1) for key in ("ovrl", "sig", "bak", "p808")),
        *(
            Expected("distillmos.distillmos", name, "falls")
            for name in ("noise", "tanh", "mu_law", "low_pass", "clip", "reverb")
        ),
        Expected("distillmos.distillmos", "gain", "stays", 0.1),
        *(Expected("wer.wer", name, "rises") for name in ("noise", "tanh", "low_pass", "clip", "reverb", "music")),
        Expected("wer.wer", "gain", "stays", 0.02),
        Expected("timbre_consistency.timbre_consistency", "voice", "falls"),
        Expected("timbre_consistency.timbre_consistency", "gain", "stays", 0.01),
        Expected("timbre_consistency.timbre_consistency", "reverb", "stays", 0.1),
        *(Expected("sim.sim", name, "falls") for name in ("noise", "low_pass", "voice")),
        Expected("sim.sim", "gain", "stays", 0.01),
        Expected("timbre_similarity.timbre_similarity", "voice", "falls"),
        Expected("timbre_similarity.timbre_similarity", "gain", "stays", 0.01),
        Expected("sptd.sptd", "gain", "stays", 0.02),
        Expected("reverb_consistency.srmr", "reverb", "falls"),
        *(Expected(f"reverb_consistency{v}.reverb_consistency", "room", "rises") for v in ("", " norm")),
        *(Expected(f"reverb_consistency{v}.reverb_consistency", "gain", "stays", 0.01) for v in ("", " norm")),
        Expected("loudness.integrated", "reverb", "stays", 0.01),
        Expected("loudness.range", "gain", "stays", 0.01),
        Expected("smr.smr", "music", "falls"),
        *(Expected("pam.pam", name, "falls") for name in ("noise", "tanh", "mu_law")),
        Expected("pam.pam", "reverb", "stays", 0.1),
        *(Expected("sound_fidelity.pesq_estimate", name, "falls") for name in ("noise", "clip", "reverb")),
        Expected("speaker_attribution.cpwer", "noise", "rises"),
        *(
            Expected("speaker_attribution.attribution_accuracy", name, "stays", 0.05)
            for name in ("gain", "speed", "mu_law", "low_pass", "reverb", "music")
        ),
        Expected("content_errors.errors_per_1000", "noise", "rises"),
        *(
            Expected("content_errors.errors_per_1000", name, "stays", 20)
            for name in ("gain", "speed", "mu_law", "clip", "reverb")
        ),
        Expected("integrity.clipped", "clip", "rises"),
        Expected("integrity.unasked_music", "music", "rises"),
        *(Expected("integrity.faults_per_hour", name, "stays", 1) for name in ("gain", "noise", "speed", "reverb")),
        *(Expected("integrity.plcmos", name, "falls") for name in ("noise", "clip", "reverb")),
    ]
    return tuple(found)


EXPECTATIONS = _all()


def verdict(
    expected: Expected, changes: Sequence[Mapping[str, float]], trend: tuple[float, float, int] | None
) -> tuple[str, str]:
    """Return whether the claim held, and the figures: the median change at each level, and Spearman's coefficient.

    A claim to stay holds if the median change is within the tolerance at every level. A claim to move holds if the
    median item moves that way at the strongest level, and is said to follow if Spearman's coefficient over the levels
    is at least 0.9.
    """
    medians = [float(np.median(list(found.values()))) for found in changes if found]
    shown = ", ".join(f"{median:+.3g}" for median in medians)
    if expected.move == "stays":
        return ("yes" if max(map(abs, medians)) <= expected.tolerance else "**no**"), shown
    sign = -1 if expected.move == "falls" else 1
    if trend is None:
        return ("yes" if sign * medians[-1] > 0 else "**no**"), shown
    figures = f"{shown}; ρ {trend[0]:+.2f}"
    if sign * medians[-1] <= 0:
        return "**no**", figures
    return ("yes" if sign * trend[0] >= MONOTONE else "yes, not level by level"), figures
