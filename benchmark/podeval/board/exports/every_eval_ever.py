"""Results in the format of Every Eval Ever, schema 0.3.0: a record for each run and a line for each measured item.

The package `every-eval-ever` defines the format, and the tests call its `validate`. A record is at
`data/<collection>/<developer>/<model>/<uuid>.json`, with the record's items next to it in `<uuid>_samples.jsonl`. Only
the ids of items are exported, not their texts; unscored items are counted but have no line, because the format does not
allow missing scores.
"""

import hashlib
import json
import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from podeval import benchmarks
from podeval.benchmarks.benchmark import Benchmark
from podeval.board import system_info
from podeval.errors import BadInput
from podeval.files import locate_hub_source, write_whole
from podeval.metrics import Key, Score
from podeval.metrics.prompts import list_all_prompts
from podeval.runs.aggregate import collect_metrics
from podeval.runs.board_tables import SystemRow
from podeval.runs.hub_figures import list_summaries
from podeval.runs.run_folder import KeyAggregate, MetricSummary, RunFolder, RunSummary
from podeval.systems.submission_reading import load_all
from podeval.version import __version__

SCHEMA = "0.3.0"
BOARD = "https://huggingface.co/podeval"

_DIRECTIONS = {"higher": False, "lower": True}
_NOT_JUDGED = "the format asks whether an answer is correct; this score does not say that, so false has no meaning"


@dataclass(frozen=True)
class ExportedRecord:
    """One written record: its file, the file of its items, and the numbers of its results and items."""

    path: Path
    samples: Path | None
    results: int
    rows: int
    left_out: tuple[str, ...]
    """Columns without a direction, which the format cannot express."""


def write_records(run: RunFolder, out: Path, *, profile: str | None = None) -> list[ExportedRecord]:
    """Write a record for each profile under which a run was measured; a repeated call writes the same files.

    Args:
        run: a measured run.
        out: folder for the new `data/`.
        profile: the only profile to export; all by default.

    Raises:
        BadInput: the run consists of recordings of people, or was not measured.
    """
    summaries = list_summaries(run, profile)
    if run.plan().shown_kind == "human":
        raise BadInput(f"{run.path} contains recordings of people, but Every Eval Ever accepts only results of models")
    return [_write_record(run, summary, out) for summary in summaries]


def _write_record(run: RunFolder, summary: RunSummary, out: Path) -> ExportedRecord:
    plan, benchmark = summary.plan, benchmarks.get(summary.plan.benchmark)
    about = _read_system(run)
    created = datetime.fromisoformat(summary.created)
    created = created if created.tzinfo else created.replace(tzinfo=UTC)
    model = _model_id(plan.system, about)
    identity = f"podeval/{plan.benchmark}/{plan.split}/{summary.profile}/{model}/{summary.created}"
    place = Path("data", f"podeval-{plan.benchmark}", *model.split("/"))
    # The id is not random but depends only on recorded data, so a second export overwrites the first.
    name = str(uuid.UUID(bytes=hashlib.sha256(identity.encode()).digest()[:16], version=4))
    columns = list(_columns(summary, benchmark))
    results = [_describe_result(summary, row, key, value) for row, key, value in columns if key.better in _DIRECTIONS]
    lines = [
        json.dumps(line, ensure_ascii=False, sort_keys=True)
        for row, key, _ in columns
        if key.better in _DIRECTIONS and not row.slice
        for line in _sample_lines(run, summary, row, key, identity, model)
    ]
    content = "".join(f"{line}\n" for line in lines).encode()
    samples = place / f"{name}_samples.jsonl"
    record: dict[str, Any] = {
        "schema_version": SCHEMA,
        "evaluation_id": identity,
        "evaluation_timestamp": summary.created,
        "retrieved_timestamp": f"{created.timestamp():.0f}",
        "source_metadata": {
            "source_name": "podeval",
            "source_type": "evaluation_run",
            "source_organization_name": "podeval",
            "source_organization_url": BOARD,
            "evaluator_relationship": "third_party",
            "additional_details": {"provenance": plan.provenance, "profile": summary.profile},
        },
        "model_info": _describe_model(summary, about, model),
        "eval_library": {
            "name": "podeval",
            "version": str(summary.provenance.get("podeval") or __version__),
            "additional_details": _texts(summary.provenance),
        },
        "evaluation_results": results,
    }
    if lines:
        record["detailed_evaluation_results"] = {
            "format": "jsonl",
            "file_path": samples.as_posix(),
            "hash_algorithm": "sha256",
            "checksum": hashlib.sha256(content).hexdigest(),
            "total_rows": len(lines),
        }
        write_whole(out / samples, content)
    path = out / place / f"{name}.json"
    write_whole(path, json.dumps(record, ensure_ascii=False, indent=1, allow_nan=False).encode())
    left_out = tuple(
        dict.fromkeys(f"{row.metric}.{key.name}" for row, key, _ in columns if key.better not in _DIRECTIONS)
    )
    return ExportedRecord(path, out / samples if lines else None, len(results), len(lines), left_out)


def _columns(summary: RunSummary, benchmark: Benchmark) -> Iterator[tuple[MetricSummary, Key, KeyAggregate]]:
    metrics = collect_metrics(benchmark, summary.plan.track)
    for row in summary.metrics:
        keys = {key.name: key for key in metrics[row.metric].keys}
        for name, value in row.keys.items():
            if value is not None:
                yield row, keys[name], value


def _describe_result(summary: RunSummary, row: MetricSummary, key: Key, value: KeyAggregate) -> dict[str, Any]:
    protocol = summary.protocols[row.protocol]
    path, _, revision = summary.plan.dataset.partition("@")
    low, high = key.bounds
    config: dict[str, Any] = {
        "evaluation_description": key.about or f"{key.name} of {row.metric}",
        "metric_id": f"podeval.{row.metric}.{key.name}",
        "metric_name": f"{row.metric}.{key.name}",
        "lower_is_better": _DIRECTIONS[key.better],
        "score_type": "continuous",
        "min_score": "-Infinity" if low is None else low,
        "max_score": "Infinity" if high is None else high,
        "additional_details": {"protocol": row.protocol, "protocol_content": _as_text(protocol)},
    }
    if key.unit:
        config["metric_unit"] = key.unit
    if scoring := _describe_judge(protocol):
        config["llm_scoring"] = scoring
    details: dict[str, Any] = {
        "score": value.mean,
        "details": {
            "slice": row.slice,
            "scored": str(row.scored),
            "unscored_system": str(row.unscored_system),
            "unscored_ours": str(row.unscored_ours),
            "reasons": _as_text(row.reasons),
            "complete": "yes" if row.rankable else "no",
        },
    }
    if value.low is not None and value.high is not None:
        interval = {"lower": value.low, "upper": value.high, "confidence_level": 0.95, "method": "bootstrap by cluster"}
        details["uncertainty"] = {"confidence_interval": interval, "num_samples": row.scored}
    return {
        "evaluation_result_id": _result_id(row, key),
        "evaluation_name": _evaluation_name(summary, row),
        "evaluation_timestamp": summary.created,
        "source_data": {
            "dataset_name": f"podeval-{summary.plan.benchmark}",
            "source_type": "hf_dataset",
            "hf_repo": path,
            "hf_split": summary.plan.split,
            "additional_details": {"revision": revision, "track": summary.plan.track},
        },
        "metric_config": config,
        "score_details": details,
        "generation_config": {
            "additional_details": {"seed": str(summary.plan.seed), **_texts(summary.plan.generation)}
        },
    }


def _sample_lines(
    run: RunFolder, summary: RunSummary, row: MetricSummary, key: Key, identity: str, model: str
) -> Iterator[dict[str, Any]]:
    results = run.results(summary.profile)
    for item in run.items() or benchmarks.get(summary.plan.benchmark).items(summary.plan.split):
        score, output = results.get((item.id, row.protocol)), run.output(item.id)
        value = score.values.get(key.name) if isinstance(score, Score) else None
        if value is None:
            continue
        answer = _describe_output(run, item.id)
        yield {
            "schema_version": SCHEMA,
            "evaluation_id": identity,
            "evaluation_result_id": _result_id(row, key),
            "evaluation_name": _evaluation_name(summary, row),
            "model_id": model,
            "sample_id": item.id,
            "interaction_type": "single_turn",
            "input": {"raw": item.topic or item.id, "reference": []},
            "output": {"raw": [answer]},
            "answer_attribution": [
                {
                    "turn_idx": 0,
                    "source": "output.raw",
                    "extracted_value": answer,
                    "extraction_method": f"podeval {row.protocol}",
                    "is_terminal": True,
                }
            ],
            "evaluation": {"score": float(value), "is_correct": False},
            "performance": {"generation_time_ms": 1000 * output.wall_seconds}
            if output is not None and output.wall_seconds is not None
            else None,
            "metadata": {"category": item.category, "protocol": row.protocol, "is_correct": _NOT_JUDGED},
        }


def _describe_output(run: RunFolder, item: str) -> str:
    """Describe a system's output as text: its script, or the name and length of its recording."""
    output = run.output(item)
    if output is None:
        return "this output was deleted"
    if output.audio and not output.answers:
        return f"{Path(output.audio).name}" + (f", {output.duration:.2f} s" if output.duration else "")
    if output.script:
        return "\n".join(f"{turn.get('speaker', '')}: {turn.get('text', '')}" for turn in output.script)
    return "\n".join(answer.words or answer.audio or "" for answer in output.answers)


def _describe_judge(protocol: Mapping[str, Any]) -> dict[str, Any] | None:
    """Describe the judge and the question; None if there is no judge, or if the prompt is from another version of
    podeval.
    """
    models = protocol.get("models") or {}
    judge, wordings = models.get("judge"), {prompt.id: prompt for prompt in list_all_prompts()}
    asked_prompts = [wordings[id] for id in models.get("prompts") or () if id in wordings]
    if not judge or not asked_prompts:
        return None
    name = str(judge.get("model") or judge["id"])
    details = {"deployment_type": "unknown", "model_availability": "unknown", "judge": _as_text(judge)}
    return {
        "judges": [
            {
                "model_info": {
                    "name": name,
                    "id": name if "/" in name else f"unknown/{name}",
                    "additional_details": details,
                }
            }
        ],
        "input_prompt": "\n\n".join(f"{prompt.system}\n\n{prompt.template}" for prompt in asked_prompts),
    }


def _describe_model(summary: RunSummary, about: SystemRow | None, model: str) -> dict[str, Any]:
    """Describe the system according to its submission document; missing facts are `unknown`."""
    opened = None if about is None else about.open
    details = {
        "deployment_type": "self_deployed" if summary.plan.provenance == "run by us" else "unknown",
        "model_availability": "unknown" if opened is None else "open_weights" if opened else "closed_weights",
        "podeval_system": summary.plan.system,
        "kind": summary.plan.system_kind,
    }
    if about is not None:
        details |= {"licence": about.licence, "revision": about.revision, "description": about.description}
    described = {"name": summary.plan.system_title, "id": model, "additional_details": details}
    return described | ({"developer": about.organisation} if about is not None and about.organisation else {})


def _read_system(run: RunFolder) -> SystemRow | None:
    rows = system_info.build_system_rows(load_all(locate_hub_source("submissions")).values(), [run])
    return next((row for row in rows if row.system == run.plan().system), None)


def _model_id(system: str, about: SystemRow | None) -> str:
    """Return `owner/name`: the Hub repo if there is one, otherwise the organisation in the document, or `podeval`."""
    repo, _, commit = (about.revision if about else "").partition("@")
    if about is not None and about.source == "model" and repo and commit:
        return repo
    owner = re.sub(r"[^a-z0-9]+", "-", (about.organisation if about else "").lower()).strip("-")
    return f"{owner or 'podeval'}/{system}"


def _result_id(row: MetricSummary, key: Key) -> str:
    return "/".join(part for part in (row.protocol, key.name, row.slice) if part)


def _evaluation_name(summary: RunSummary, row: MetricSummary) -> str:
    parts = ("podeval", summary.plan.benchmark, summary.plan.split, row.metric, row.slice)
    return ".".join(part for part in parts if part)


def _texts(content: Mapping[str, Any]) -> dict[str, str]:
    return {str(name): value if isinstance(value, str) else _as_text(value) for name, value in content.items()}


def _as_text(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, sort_keys=True, default=str)
