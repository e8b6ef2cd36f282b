"""Print the values of `dialogue_naturalness` on the clips of PodEval's listening test, next to the listeners' order.

    python studies/dialogue_naturalness.py ../shared/data/podeval/subjective/audio_local_only

The folder contains a folder for each system, with clips named by category; the clips may not be redistributed. The
formula was fixed in docs/decisions/dialogue-naturalness.md before this script was run.
"""

import sys
from pathlib import Path

from scipy.stats import spearmanr

from podeval.metrics import catalogue
from podeval.metrics.score import Score
from podeval.recording import Recording

ORDER = ("HQ", "notebooklm", "mossttsd", "mooncast", "podagent", "LQ")
"""The systems in the order of the listeners, best first (PodEval, 7.2 and A.5.2); `reference` was not rated."""


def main() -> None:
    """Print a line for each clip, and the rank correlation within each category."""
    folder = Path(sys.argv[1])
    metric = catalogue.get("dialogue_naturalness")
    keys = [key.name for key in metric.keys]
    print("| category | system | " + " | ".join(keys) + " | voices heard |\n" + "|---" * (len(keys) + 3) + "|")
    for category in sorted({path.stem for path in folder.glob("*/*.wav")}):
        values: dict[str, float] = {}
        for system in (*ORDER, "reference"):
            path = folder / system / f"{category}.wav"
            result = metric({"recording": Recording.open(path)}) if path.exists() else None
            if isinstance(result, Score):
                values[system] = result.values["dialogue_naturalness"] or 0.0
                cells = ["" if result.values[key] is None else f"{result.values[key]:.2f}" for key in keys]
                print(f"| {category} | {system} | {' | '.join(cells)} | {result.notes['speakers_found']} |")
            elif result is not None:
                print(f"| {category} | {system} | {result.reason} |")
        rated = [system for system in ORDER if system in values]
        if len(rated) > 2:
            correlation = spearmanr([-ORDER.index(system) for system in rated], [values[system] for system in rated])
            print(f"\n{category}: SRCC with listeners' order {correlation.statistic:.2f} over {len(rated)} systems\n")


if __name__ == "__main__":
    main()
