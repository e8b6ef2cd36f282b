"""Apply fixed thresholds and the gate to the figures printed in vLLM-Omni's threads, for
docs/replace-your-threshold.md.

`python studies/serving_gate.py [COMPARISONS]` prints its tables as Markdown. vllm-omni#5480 prints the mean and median
WER of three nightly builds over the 1,088 English clips of Seed-TTS, but no values of single clips. The clips here are
simulated, because a lognormal distribution has exactly one spread for each mean and median. One part of the spread
belongs to the clip (and is the same in every build), and the rest to the build. Values are rounded to whole words in
sentences of 6 to 20 words. This distribution is an assumption.
"""

import sys
from dataclasses import dataclass

import numpy as np

from podeval.stats.sequential import count_to_show, evidence_of_increase

CLIPS = 1_088
EVIDENCE = 20.0
THRESHOLD = 0.35
RUNS_OF_A_THRESHOLD = 5
OWN_SHARES = (0.25, 0.5, 0.75)
"""Shares of the spread (of the logarithm) that belong to the clip and not to the build."""


@dataclass(frozen=True)
class Build:
    """The mean and median WER printed for a nightly build."""

    number: int
    mean: float
    median: float

    @property
    def spread(self) -> float:
        """The standard deviation of the logarithm: mean = median exp(spread² / 2)."""
        return float(np.sqrt(2 * np.log(self.mean / self.median)))


MAIN, *CHANGED = BUILDS = (Build(2915, 0.4036, 0.2308), Build(2916, 0.4487, 0.25), Build(2917, 0.4625, 0.25))


def draw_clips(generator: np.random.Generator, builds: list[Build], own: float, clips: int = CLIPS) -> np.ndarray:
    """Draw the WER of each clip in each build, `(builds, clips)`, on the same clips."""
    words = generator.integers(6, 21, clips)
    difficulty = generator.normal(size=clips)
    rows = [
        build.median
        * np.exp(build.spread * (np.sqrt(own) * difficulty + np.sqrt(1 - own) * generator.normal(size=clips)))
        for build in builds
    ]
    return np.round(np.array(rows) * words) / words


def break_clips(generator: np.random.Generator, values: np.ndarray, share: float) -> np.ndarray:
    """Return values for a model that answers a share of the clips instead of reading them; this adds as many errors as
    there are words.
    """
    return values + (generator.random(values.shape) < share)


@dataclass(frozen=True)
class Outcomes:
    """Shares of comparisons that each rule fails."""

    threshold: float
    worst_of_five: float
    one_look: float
    each_clip: float


def compare_builds(before: Build, after: Build, own: float, comparisons: int, clips: int = CLIPS) -> Outcomes:
    """Compare two builds by a fixed threshold, by the worst of five runs of the first build, and by the gate."""
    red = np.zeros((comparisons, 4))
    for number in range(comparisons):
        generator = np.random.default_rng(number)
        *five, last = draw_clips(generator, [before] * RUNS_OF_A_THRESHOLD + [after], own, clips)
        evidence = evidence_of_increase(last - five[0])
        worst = max(float(row.mean()) for row in five)
        red[number] = (
            last.mean() > THRESHOLD,
            last.mean() > worst,
            evidence[-1] >= EVIDENCE,
            evidence.max() >= EVIDENCE,
        )
    return Outcomes(*red.mean(axis=0).tolist())


def share_caught(share: float, own: float, comparisons: int) -> float:
    """Return the share of comparisons that the gate fails if a share of the clips is no longer read."""
    caught = 0
    for number in range(comparisons):
        generator = np.random.default_rng(number)
        first, second = draw_clips(generator, [MAIN, MAIN], own)
        caught += evidence_of_increase(break_clips(generator, second, share) - first)[-1] >= EVIDENCE
    return caught / comparisons


def main(comparisons: int) -> None:
    """Print the tables of the page."""
    print("| build | clip's share | threshold .35 | worst of five | gate, one look | gate, a look after each clip |")
    print("|---|---|---|---|---|---|")
    for build in BUILDS:
        for own in OWN_SHARES:
            done = compare_builds(MAIN, build, own, comparisons if build is MAIN else comparisons // 5)
            cells = (done.threshold, done.worst_of_five, done.one_look, done.each_clip)
            print(f"| {build.number}, mean {build.mean} | {own:.0%} | {' | '.join(f'{cell:.1%}' for cell in cells)} |")
    print("\n| every clip is worse by | " + " | ".join(f"the clip's share {own:.0%}" for own in OWN_SHARES) + " |")
    print("|---|---|---|---|")
    for size in (0.01, 0.02, 0.05, 0.1, 0.2):
        counts = []
        for own in OWN_SHARES:
            first, second = draw_clips(np.random.default_rng(0), [MAIN, MAIN], own)
            count = count_to_show(second - first, size, EVIDENCE)
            counts.append("over 3,200" if count is None else f"{count:,}")
        print(f"| {size} | {' | '.join(counts)} |")
    print("\n| clips that are not read any more | " + " | ".join(f"{own:.0%}" for own in OWN_SHARES) + " |")
    print("|---|---|---|---|")
    for share in (0.01, 0.02, 0.05, 0.1):
        cells = (f"{share_caught(share, own, comparisons // 5):.0%}" for own in OWN_SHARES)
        print(f"| {share:.0%} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
