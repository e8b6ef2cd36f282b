"""Scores one recording as a separate program, which others can bound in memory and time and end at any moment.

`python -m podeval.measuring.isolated JOB.json` appends a line to `scored.jsonl` for each metric as soon as it has a
result, lines on how far it is, and writes `report.html` at the end. Facts of the recording go to `PODEVAL_CACHE`.
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from podeval.errors import PodevalError
from podeval.measuring.engine import MetricPlan, plan_metrics, read_request, score_source
from podeval.measuring.inputs import read_source
from podeval.measuring.recording_results import Defect, RecordingFacts, RecordingResults
from podeval.metrics.score import Result, parse_result

LINES, REPORT = "scored.jsonl", "report.html"


class ScoreJob(BaseModel):
    """What the program is told.

    Attributes:
        recording: the file.
        name: what it is called in the report.
        text: what is said in it; empty where nobody says.
        speakers: how many people speak; 0 where nobody says.
        metrics: names of those that are wanted; those whose inputs are missing are left out with the reason.
        out: folder for what it writes.
        language: of the report.
    """

    recording: Path
    name: str
    text: str
    speakers: int
    metrics: Sequence[str]
    out: Path
    language: str = "en"


def read_results(lines: Sequence[Mapping[str, Any]], name: str) -> RecordingResults | None:
    """Return what was scored so far, as the lines say; None before the first.

    Args:
        lines: as the program wrote them.
        name: the name of the recording.
    """
    results: dict[str, Result] = {}
    protocols: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    facts, defects = RecordingFacts(0.0, 0, 0), []
    for line in lines:
        left_out |= line.get("left_out", {})
        if "metric" in line:
            results[line["metric"]] = parse_result(line["result"])
            protocols[line["metric"]] = line["protocol"]
            facts = RecordingFacts.parse(line["facts"])
            defects += [Defect(**defect) for defect in line["defects"]]
    if not results and not left_out:
        return None
    in_order = tuple(sorted(set(defects), key=lambda one: (one.start, one.end)))
    return RecordingResults(name, results, left_out, {}, in_order, protocols, "embedded", facts)


def score_job(job: ScoreJob, tell: Callable[[Mapping[str, Any]], None]) -> None:
    """Score a recording metric by metric, tell each result, and write the report.

    Args:
        job: what is asked.
        tell: called with what stands on each line.

    Raises:
        BadInput: the recording or the words cannot be read.
    """
    # With a line break nothing that somebody wrote is taken for the name of a file.
    request = read_request(text=f"{job.text}\n" if job.text.strip() else None, speakers=job.speakers or None)
    plan = plan_metrics(request)
    # What takes little time comes first, so that there is something to read soon.
    chosen = tuple(
        sorted((metric for metric in plan.metrics if metric.name in job.metrics), key=lambda metric: len(metric.needs))
    )
    tell({"left_out": {name: plan.left_out[name] for name in job.metrics if name in plan.left_out}})
    source = read_source(job.recording, name=job.name)
    for number, metric in enumerate(chosen):
        tell({"at": number / len(chosen), "what": metric.title})
        scores = score_source(source, request, MetricPlan((metric,)))
        tell(
            {
                "metric": metric.name,
                "result": scores.results[metric.name].to_json(),
                "protocol": scores.protocols[metric.name],
                "facts": asdict(scores.facts),
                "defects": [asdict(defect) for defect in scores.defects],
            }
        )
    everything = score_source(source, request, replace(plan, metrics=chosen))
    everything.report(job.out / REPORT, job.language)


def main(job_file: str) -> None:
    """Score the recording of a job."""
    job = ScoreJob.model_validate_json(Path(job_file).read_text(encoding="utf-8"))
    with (job.out / LINES).open("a", encoding="utf-8") as file:

        def tell(line: Mapping[str, Any]) -> None:
            file.write(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")
            file.flush()

        try:
            score_job(job, tell)
        except PodevalError as error:
            tell({"refused": str(error)[:2_000]})


if __name__ == "__main__":
    main(sys.argv[1])
