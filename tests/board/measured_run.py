"""A run on disk as `podeval run` leaves it, measured without a model."""

from pathlib import Path

from podeval import benchmarks
from podeval.metrics.score import Score, Timeline, Unscored
from podeval.runs.aggregate import summarise
from podeval.runs.measure import CONDITIONS, make_protocols
from podeval.runs.run_folder import Output, RunFolder, RunPlan

BENCHMARK = benchmarks.get("real_pod")
ITEMS = BENCHMARK.items("demo")


def write_run(runs: Path, system: str, kind: str, ovrl: float) -> Path:
    """A measured run whose DNSMOS falls by 0.1 over each recording; the rest is unscored."""
    folder = RunFolder(runs, "real_pod", "demo", system)
    plan = RunPlan(
        benchmark="real_pod", split="demo", dataset="podeval/real_pod@sha256:0", track="voice", system=system,
        system_title=system.title(), system_kind=kind, generation={}, seed=0,
    )  # fmt: skip
    folder.begin(plan)
    folder.write_items(ITEMS)
    for number, item in enumerate(ITEMS):
        folder.write_output(Output(item=item.id, script=({"speaker": "A", "text": "Hello."},)))
        for protocol in make_protocols(BENCHMARK, plan, "embedded", CONDITIONS).values():
            if protocol.metric == "dnsmos":
                value = ovrl + 0.01 * number
                starts = [float(second) for second in range(20)]
                timeline = Timeline(starts, 1.0, {"ovrl": [value - 0.005 * second for second in range(20)]})
                result: Score | Unscored = Score({"ovrl": value, "sig": value, "bak": value}, timeline=timeline)
            else:
                result = Unscored("nothing to hear", "system")
            folder.append_results("embedded", item.id, [(protocol, result)])
    folder.write_summary(summarise(folder, "embedded", BENCHMARK, ITEMS))
    return folder.path
