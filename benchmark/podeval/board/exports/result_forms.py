"""The formats of exported results: the Hub's `.eval_results`, a card's `model-index`, BibTeX and a dataset repo.

The dataset contains all results of a folder of runs, for `load_dataset` and the Hub's viewer, without audio or texts.
"""

import json
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from podeval import benchmarks
from podeval.board.build import write_tables
from podeval.board.exports import downloads, every_eval_ever
from podeval.board.reported_elsewhere import list_rows
from podeval.board.view import FALSE_COLUMNS
from podeval.errors import BadInput
from podeval.files import locate_hub_source, write_whole
from podeval.hub import eval_results
from podeval.hub.commits import HUB_PARQUET
from podeval.runs.board_tables import BOARD, ITEMS, SYSTEMS, read_table
from podeval.runs.hub_figures import list_hub_figures, list_summaries
from podeval.runs.run_folder import RunFolder, RunSummary, run_folders
from podeval.systems.submission import Reported
from podeval.systems.submission_reading import load_all
from podeval.text.table_files import make_csv_safe
from podeval.version import __version__

BOARD_ADDRESS = "https://huggingface.co/spaces/podeval/leaderboard"

CONFIGS = {
    "results": "one number of the board: one value of a metric for one system, over all items or a slice, with its "
    "interval and rank range, and the unscored items with their reasons; `profile` is `paper` for figures that papers "
    "print",
    "items": "one result on one item, as JSON: the values with notes and timeline, or the reason why there is none",
    "systems": "the statements of a system's submission document; empty where it states nothing",
    "protocols": "how a score was computed: metric and version, parameters, models with the hashes of their weights, "
    "the dataset's revision",
}
"""The dataset's configs, each with a description of its rows."""

SPLIT = "test"
FILE = f"{SPLIT}-00000-of-00001.parquet"

_TABLES = {"results": BOARD, "items": ITEMS, "systems": SYSTEMS}


def render_eval_results(run: RunFolder, profile: str | None = None) -> str:
    """Render the content of `.eval_results/podeval.yaml` in a model's repo.

    Raises:
        BadInput: the run has no complete dimension.
    """
    return eval_results.write_eval_results_yaml(_figures(run, profile), BOARD_ADDRESS)


def render_model_index(run: RunFolder, profile: str | None = None) -> str:
    """Render the `model-index` of a model card.

    Raises:
        BadInput: the run has no complete dimension.
    """
    index = eval_results.build_model_index(run.plan().system_title, _figures(run, profile), BOARD_ADDRESS)
    return yaml.safe_dump({"model-index": index}, sort_keys=False, allow_unicode=True)


def render_bibtex(run: RunFolder, profile: str | None = None) -> str:
    """Render the citations for these numbers: podeval, the benchmark, and the run with its protocols.

    Raises:
        BadInput: the run was not measured.
    """
    entries = [benchmarks.get(run.plan().benchmark).citation.strip(), _SOFTWARE.format(version=__version__)]
    return "\n\n".join([*entries, *(_cite_run(summary) for summary in list_summaries(run, profile))]) + "\n"


_SOFTWARE = """@software{{podeval,
  title = {{podeval: the benchmark for long-form spoken audio made by machines}},
  author = {{{{The podeval founders}}}},
  year = {{2026}},
  version = {{{version}}},
  url = {{https://huggingface.co/podeval}}
}}"""


def render_evaluation_tables(runs: Iterable[RunFolder], profile: str | None = None) -> str:
    """Render evaluation tables in the format of Papers with Code: one per split, with a row for each run and profile.

    Raises:
        BadInput: a run was not measured.
    """
    return _render_tables(
        {
            "task": benchmarks.get(summary.plan.benchmark).title,
            "dataset": summary.plan.split,
            "paper": "The podeval leaderboard",
            "address": BOARD_ADDRESS,
            "protocol": f"Measured by podeval {__version__}.",
            "system": f"{summary.plan.system_title} ({summary.profile} profile)",
            "printed": figure.metric,
            "value": f"{figure.value:g}",
            "note": figure.note,
            "date": summary.created[:10],
        }
        for run in runs
        for summary in list_summaries(run, profile)
        for figure in list_hub_figures(summary)
    )


def render_printed_tables() -> str:
    """Render every printed figure as evaluation tables, for systems on our benchmarks and on others.

    A task is a benchmark or a source, a dataset is a table under one protocol, and a subdataset is a part of a dataset.
    """
    cells: list[dict[str, Any]] = []
    for submission in load_all(locate_hub_source("submissions")).values():
        for figure in submission.source.results if isinstance(submission.source, Reported) else ():
            benchmark = benchmarks.get(figure.benchmark)
            paper, table = _read_title(benchmark.citation), f"{figure.table}, {figure.variant.replace('_', ' ')}"
            place = {
                "task": benchmark.title,
                "dataset": table,
                "part": f"{figure.breakdown}: {figure.group}" if figure.breakdown else "",
                "paper": paper,
                "address": benchmark.paper,
                "protocol": f"{paper}, {table}, as printed; podeval ran nothing.",
                "system": submission.system.name,
            }
            cells.append(figure.model_dump(mode="json", exclude_none=True) | place)
    for row in list_rows():
        protocol = f"{row['by']}, {row['table']}, as printed. {row['protocol']}"
        place = {"task": row["source"], "dataset": row["table"], "part": row["group"], "paper": row["by"]}
        cells.append(row | place | {"protocol": protocol})
    return _render_tables(cells)


def _render_tables(cells: Iterable[Mapping[str, Any]]) -> str:
    """Group values into tasks, datasets and subdatasets."""
    tasks: dict[str, dict[str, dict[str, list[Mapping[str, Any]]]]] = {}
    for cell in cells:
        parts = tasks.setdefault(cell["task"], {}).setdefault(cell["dataset"], {"": []})
        parts.setdefault(cell.get("part", ""), []).append(cell)
    listed = [
        {
            "task": task,
            "datasets": [
                {
                    "dataset": name,
                    **_describe_table(parts.pop("")),
                    "subdatasets": [{"subdataset": part, **_describe_table(parts[part])} for part in parts],
                }
                for name, parts in datasets.items()
            ],
        }
        for task, datasets in tasks.items()
    ]
    return json.dumps(listed, ensure_ascii=False, indent=1) + "\n"


def _describe_table(cells: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a dataset's description, papers and rows, with one row for each system."""
    rows: dict[str, dict[str, Any]] = {}
    for cell in cells:
        row = {"model_name": cell["system"], "paper_title": cell["paper"], "paper_url": cell["address"]}
        row = rows.setdefault(cell["system"], {**row, "paper_date": cell.get("date"), "metrics": {}})
        # The spread of a value, and the number of items or votes on which it is based, are separate entries.
        for field, ending in (("value", ""), ("spread", " (spread)"), ("count", " (n)")):
            if cell.get(field, "") != "":
                row["metrics"][cell["printed"] + ending] = str(cell[field])
    lines = [
        *(cell["protocol"] for cell in cells),
        *(f"{c['printed']}: {c['better']} is better." for c in cells if c.get("better", "neither") != "neither"),
        *(f"{cell['system']}, {cell['printed']}: {cell['note']}" for cell in cells if cell.get("note")),
    ]
    papers = dict.fromkeys((cell["paper"], cell["address"]) for cell in cells)
    names = dict.fromkeys(name for row in rows.values() for name in row["metrics"])
    return {
        "description": "\n".join(dict.fromkeys(lines)),
        "dataset_citations": [{"title": title, "url": address} for title, address in papers],
        "sota": {"metrics": list(names), "rows": list(rows.values())},
    }


def _read_title(citation: str) -> str:
    """Return the title in a BibTeX entry, without its braces."""
    match = re.search(r"title\s*=\s*\{(.+?)\},\n", citation, re.DOTALL)
    return " ".join(re.sub("[{}]", "", match[1] if match else "").split())


def _cite_run(summary: RunSummary) -> str:
    plan = summary.plan
    key = re.sub(r"[^A-Za-z0-9]+", "-", f"podeval-{plan.benchmark}-{plan.split}-{plan.system}-{summary.profile}")
    protocols = ", ".join(sorted(summary.protocols))
    title = f"{plan.system_title} on {benchmarks.get(plan.benchmark).title} ({plan.split}, {summary.profile} profile)"
    return (
        f"@misc{{{key},\n  title = {{{_escape(title)}}},\n  author = {{{{The podeval founders}}}},\n"
        f"  year = {{{summary.created[:4]}}},\n  url = {{{BOARD_ADDRESS}}},\n"
        f"  note = {{Measured on {summary.created[:10]}; protocols {_escape(protocols)}}}\n}}"
    )


def _escape(text: str) -> str:
    """Escape characters that have a special meaning in BibTeX and TeX."""
    return re.sub(r"([&%$#_{}])", r"\\\1", text.replace("\\", "/"))


def _figures(run: RunFolder, profile: str | None) -> Sequence[eval_results.HubFigure]:
    figures = [figure for summary in list_summaries(run, profile) for figure in list_hub_figures(summary)]
    if not figures:
        raise BadInput(f"no dimension of {run.path} is complete, so the Hub cannot list any of its figures")
    return figures


def write_dataset(runs: Path, out: Path) -> dict[str, int]:
    """Write the dataset folder; return the number of rows of each config.

    Args:
        runs: folder of runs; it is not modified.
        out: folder to write; it must not contain anything else.

    Raises:
        BadInput: there are no runs, or the folder contains other data.
    """
    require_runs(runs)
    files = {out / "README.md", *(out / config / FILE for config in CONFIGS)}
    if out.exists() and (strange := [path for path in out.rglob("*") if path.is_file() and path not in files]):
        raise BadInput(
            f"{out} contains {strange[0].relative_to(out)}, which does not belong to an export; choose another "
            "folder with --out"
        )
    tables = _read_tables(runs)
    tables["protocols"] = pd.DataFrame(
        _protocol_rows(tables["results"]), columns=["id", "metric", "version", "content"]
    )
    for config, table in tables.items():
        sink = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_pandas(table, preserve_index=False), sink, **HUB_PARQUET)
        write_whole(out / config / FILE, sink.getvalue().to_pybytes())
    rows = {config: len(table) for config, table in tables.items()}
    ranked = tables["results"].dropna(subset="rank_best")
    columns = ranked[["benchmark", "split", "profile", "slice", "protocol", "key"]].drop_duplicates()
    write_whole(out / "README.md", _render_card(rows, len(columns)).encode())
    return rows


def write_results(runs: Path, file: Path) -> int:
    """Write every number of the board to a CSV or Parquet file, depending on its name; return the number of rows.

    In CSV files, texts are escaped so that spreadsheets do not treat them as formulas.

    Raises:
        BadInput: there are no runs.
    """
    table = _read_tables(runs)["results"]
    is_parquet = file.suffix == ".parquet"
    write_whole(
        file, table.to_parquet(index=False) if is_parquet else make_csv_safe(table).to_csv(index=False).encode()
    )
    return len(table)


def require_runs(runs: Path) -> None:
    """Refuse a folder without runs.

    Raises:
        BadInput: there are no results.
    """
    if not run_folders(runs):
        raise BadInput(
            f"there are no runs in {runs}; create some with `podeval run` or `podeval demo`, "
            "or choose another folder with --runs"
        )


def _read_tables(runs: Path) -> dict[str, pd.DataFrame]:
    """Read the tables of the board by config; the folder of runs is not modified."""
    require_runs(runs)
    with tempfile.TemporaryDirectory(prefix="podeval-results-") as aside:
        write_tables(runs, Path(aside))
        return {config: read_table(Path(aside) / name) for config, name in _TABLES.items()}


def _protocol_rows(results: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for protocol, content in sorted(dict(zip(results["protocol"], results["protocol_json"], strict=True)).items()):
        facts = json.loads(content)
        yield {
            "id": protocol,
            "metric": str(facts.get("metric", "")),
            "version": str(facts.get("version", "")),
            "content": content,
        }


def _render_card(rows: dict[str, int], ranked_columns: int) -> str:
    head = {
        "pretty_name": "Results of podeval",
        "license": "apache-2.0",
        "language": ["en", "zh"],
        "tags": ["podeval", "benchmark", "leaderboard", "modality:audio", "modality:tabular"],
        "configs": [
            {"config_name": config, "data_files": [{"split": SPLIT, "path": f"{config}/{FILE}"}]}
            | ({"default": True} if config == "results" else {})
            for config in CONFIGS
        ],
    }
    about = "\n".join(f"- `{config}` ({rows[config]} rows): {what}" for config, what in CONFIGS.items())
    return (
        f"---\n{yaml.safe_dump(head, sort_keys=False, allow_unicode=True)}---\n\n# Results of podeval\n\n"
        "Every number of a board of podeval, with its protocol. Compare numbers only if their benchmark, split, "
        "profile, slice and protocol are the same. A rank is a range, and differences within it are not meaningful. "
        "Ranks are corrected separately in each column: if all systems were equally good, a false rank would be "
        f"expected in at most {FALSE_COLUMNS * ranked_columns:.2g} of the {ranked_columns} ranked columns (5 % of "
        f"them).\n\n{about}\n\nWritten by podeval {__version__}: `podeval report export --form dataset`.\n"
    )


@dataclass(frozen=True)
class Export:
    """The runs to export (some or all of a folder), and the target folder.

    Attributes:
        runs: the folder of all runs.
        chosen: the runs that the user named.
        out: folder to write to.
        profile: the only profile to export; None for all.
    """

    runs: Path
    chosen: tuple[RunFolder, ...]
    out: Path
    profile: str | None = None


@dataclass(frozen=True)
class ResultForm:
    """A format for exporting results.

    Attributes:
        write: function that writes the results and yields a sentence about each file; for a text format, the function
            yields the text.
        of_all: whether the format contains all results in a folder of runs instead of only those of named runs.
        is_text: whether the format is text for standard output.
        has_print: whether the format contains the papers' figures when no run is named.
    """

    write: Callable[[Export], Iterable[str]]
    of_all: bool = False
    is_text: bool = False
    has_print: bool = False


def _write_every_eval_ever(export: Export) -> Iterator[str]:
    for run in export.chosen:
        for record in every_eval_ever.write_records(run, export.out, profile=export.profile):
            yield f"{record.path}: {record.results} results, {record.rows} lines of items"
            if record.left_out:
                columns = ", ".join(record.left_out)
                yield f"left out, because the format requires a direction and these columns have none: {columns}"


def _write_table(export: Export, ending: str) -> Iterator[str]:
    file = export.out / f"results.{ending}"
    yield f"{file}: {write_results(export.runs, file)} rows"


def _write_dataset(export: Export) -> Iterator[str]:
    for config, rows in write_dataset(export.runs, export.out).items():
        yield f"{export.out / config}: {rows} rows"


def _render_each(render: Callable[[RunFolder, str | None], str]) -> Callable[[Export], Iterable[str]]:
    return lambda export: (render(run, export.profile) for run in export.chosen)


FORMS: Mapping[str, ResultForm] = {
    "csv": ResultForm(partial(_write_table, ending="csv"), of_all=True),
    "parquet": ResultForm(partial(_write_table, ending="parquet"), of_all=True),
    "dataset": ResultForm(_write_dataset, of_all=True),
    "open-tts": ResultForm(lambda e: [downloads.write_columns(_read_tables(e.runs)["results"], e.out)], of_all=True),
    "site": ResultForm(lambda export: map(str, downloads.write_site(export.runs, export.out)), of_all=True),
    "every-eval-ever": ResultForm(_write_every_eval_ever),
    "papers-with-code": ResultForm(
        lambda e: [render_evaluation_tables(e.chosen, e.profile) if e.chosen else render_printed_tables()],
        is_text=True,
        has_print=True,
    ),
    "eval-results": ResultForm(_render_each(render_eval_results), is_text=True),
    "model-index": ResultForm(_render_each(render_model_index), is_text=True),
    "bibtex": ResultForm(_render_each(render_bibtex), is_text=True),
}
"""The forms by name. To add a form, add an entry here and a line to the help of `podeval report export`."""
