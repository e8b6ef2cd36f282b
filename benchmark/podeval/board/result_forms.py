"""The forms in which results of runs travel as text: the Hub's `.eval_results`, a card's `model-index`, BibTeX."""

import re
from collections.abc import Callable, Mapping, Sequence

import yaml

from podeval import __version__, benchmarks
from podeval.errors import BadInput
from podeval.hub import eval_results
from podeval.hub.eval_results import HubFigure
from podeval.runs.hub_figures import list_hub_figures
from podeval.runs.run_folder import RunFolder, RunSummary

BOARD = "https://huggingface.co/spaces/podeval/board"


def list_summaries(run: RunFolder, profile: str | None = None) -> Sequence[RunSummary]:
    """List the aggregates of a run, of one profile or of all.

    Raises:
        BadInput: it was not measured so.
    """
    summaries = [summary for summary in run.summaries() if profile in (None, summary.profile)]
    if not summaries:
        under = f" under the profile {profile}" if profile else ""
        raise BadInput(f"{run.path} has not been measured{under}; measure it with `podeval run`")
    return summaries


def render_eval_results(run: RunFolder, profile: str | None = None) -> str:
    """Render what a model's repo keeps as `.eval_results/podeval.yaml`.

    Raises:
        BadInput: no dimension of the run is complete.
    """
    return eval_results.write_eval_results_yaml(_figures(run, profile), BOARD)


def render_model_index(run: RunFolder, profile: str | None = None) -> str:
    """Render the `model-index` of a model's card.

    Raises:
        BadInput: no dimension of the run is complete.
    """
    index = eval_results.build_model_index(run.plan().system_title, _figures(run, profile), BOARD)
    return yaml.safe_dump({"model-index": index}, sort_keys=False, allow_unicode=True)


def render_bibtex(run: RunFolder, profile: str | None = None) -> str:
    """Render what a paper that prints these numbers cites: podeval, the benchmark, and the run with its protocols.

    Raises:
        BadInput: the run was not measured.
    """
    entries = [benchmarks.get(run.plan().benchmark).citation.strip(), _SOFTWARE.format(version=__version__)]
    return "\n\n".join([*entries, *(_cite_run(summary) for summary in list_summaries(run, profile))]) + "\n"


FORMS: Mapping[str, Callable[[RunFolder, str | None], str]] = {
    "eval-results": render_eval_results,
    "model-index": render_model_index,
    "bibtex": render_bibtex,
}
"""Forms of one run that are one text."""

_SOFTWARE = """@software{{podeval,
  title = {{podeval: the benchmark for long-form spoken audio made by machines}},
  author = {{{{The podeval founders}}}},
  year = {{2026}},
  version = {{{version}}},
  url = {{https://huggingface.co/podeval}}
}}"""


def _cite_run(summary: RunSummary) -> str:
    plan = summary.plan
    key = re.sub(r"[^A-Za-z0-9]+", "-", f"podeval-{plan.benchmark}-{plan.split}-{plan.system}-{summary.profile}")
    protocols = ", ".join(sorted(summary.protocols))
    title = f"{plan.system_title} on {benchmarks.get(plan.benchmark).title} ({plan.split}, {summary.profile} profile)"
    return (
        f"@misc{{{key},\n  title = {{{_escape(title)}}},\n  author = {{{{The podeval founders}}}},\n"
        f"  year = {{{summary.created[:4]}}},\n  url = {{{BOARD}}},\n"
        f"  note = {{Measured on {summary.created[:10]}; protocols {_escape(protocols)}}}\n}}"
    )


def _escape(text: str) -> str:
    """Characters that BibTeX and TeX take for something else."""
    return re.sub(r"([&%$#_{}])", r"\\\1", text.replace("\\", "/"))


def _figures(run: RunFolder, profile: str | None) -> Sequence[HubFigure]:
    figures = [figure for summary in list_summaries(run, profile) for figure in list_hub_figures(summary)]
    if not figures:
        raise BadInput(f"no dimension of {run.path} is complete, so there is no figure that the Hub could list")
    return figures
