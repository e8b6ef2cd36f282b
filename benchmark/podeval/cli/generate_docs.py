"""Write the files that are generated from declarations into a checkout: metric Spaces, dataset cards and docs pages.

`python -m podeval.cli.generate_docs` in the checkout writes these files; a test fails if a file is not current.
"""

import ast
import csv
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from podeval.benchmarks import presets as paper_presets
from podeval.datasets import card
from podeval.datasets import catalogue as datasets
from podeval.judges.prompt import RULES, Prompt
from podeval.measuring.space_files import list_sources
from podeval.metrics.catalogue import Metric, load_all_metrics
from podeval.metrics.description import format_range, group_by_weights
from podeval.metrics.prompts import PROTOCOLS
from podeval.metrics.standing import NEVER_COMPARED, describe_human_agreement, format_reach, read_human_agreements
from podeval.models.registry import CARDS
from podeval.plots.svg import draw_layers
from podeval.stats.agreement import Estimate
from podeval.systems.adapters.adapter import ModelClass, list_adapters
from podeval.systems.adapters.presets import PRESETS

_ROOM = re.compile(r"^\| (\d) \| `(\w+)` \|", re.MULTILINE)


def floors(checkout: Path) -> dict[str, int]:
    """Read the floor (layer) of every room (package) from the table in docs/architecture.md; the lowest is 1."""
    page = (checkout / "docs" / "architecture.md").read_text(encoding="utf-8")
    return {room: int(floor) for floor, room in _ROOM.findall(page)}


def imports(engine: Path) -> dict[str, set[str]]:
    """Find the engine modules that each engine module imports: at the top, in functions, or for types."""
    paths = {
        ".".join(path.relative_to(engine.parent).with_suffix("").parts).removesuffix(".__init__"): path
        for path in engine.rglob("*.py")
    }
    return {
        name: {module for module in _imported(ast.parse(path.read_bytes()), set(paths)) if module != name}
        for name, path in sorted(paths.items())
    }


def room_of(module: str) -> str:
    """Return the room of a module: `podeval.audio.decode` is in `audio`; the top-level package itself has no room."""
    return module.split(".")[1] if "." in module else ""


def picture(checkout: Path) -> str:
    """Draw the floors as SVG, with lines from each room to the rooms on the next lower floor that it imports."""
    rooms = floors(checkout)
    layers = [[room for room in rooms if rooms[room] == floor] for floor in sorted(set(rooms.values()))]
    arrows = {
        (upper, lower)
        for module, others in imports(checkout / "benchmark" / "podeval").items()
        for upper, lower in ((room_of(module), room_of(other)) for other in others)
        if upper in rooms and lower in rooms and rooms[upper] - rooms[lower] == 1
    }
    return draw_layers(layers, sorted(arrows), "The nine floors of the engine and the rooms on each")


def _imported(tree: ast.AST, modules: set[str]) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names if alias.name in modules}
        elif isinstance(node, ast.ImportFrom) and node.module in modules:
            parts = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= parts & modules
            if parts - modules:
                names.add(node.module)
    return names


SITE = "https://huggingface.co/spaces/podeval/leaderboard/blob/main/docs/"
_PAGE = re.compile(r"\[([^\[\]\n]{1,200})\]\(([\w/-]{1,200}\.md)\)(?:: ([^\n]+))?")


def write_llms(checkout: Path) -> str:
    """Write llms.txt with the Markdown source of every page that docs/README.md lists."""
    page = (checkout / "docs" / "README.md").read_text(encoding="utf-8").replace("\n  ", " ")
    links = [
        f"- [{title}]({SITE}{target})" + (f": {about}" if about else "") for title, target, about in _PAGE.findall(page)
    ]
    return (
        "# podeval\n\n> The benchmark for long-form spoken audio made by machines: metrics, datasets, runs, an arena, "
        "listening tests and a leaderboard, each number with its protocol, its interval and what could not be "
        "scored.\n\nEach page of the site is also available as Markdown, under the same name with `.md`.\n\n"
        "## Pages\n\n" + "\n".join(links) + "\n"
    )


def pages(checkout: Path) -> dict[Path, str]:
    """Return every generated file of a checkout with the content that it should have."""
    contents = {
        checkout / "hf_metrics" / metric.name / name: content
        for metric in load_all_metrics()
        for name, content in list_sources(metric).items()
    }
    contents |= {
        checkout / "dataset_builders" / name / "README.md": card.render_card(datasets.get(name), {})
        for name in datasets.NAMES
    }
    contents[checkout / "docs" / "metrics.md"] = metrics_page()
    tables = render_validity_tables(checkout) | {
        "adapters": render_adapters_table(),
        "presets": _write_table(
            ("preset", "what it sets", "from"), [(f"`{one.name}`", one.about, one.source) for one in PRESETS.values()]
        ),
        "full size": render_full_size_table(),
        "paper presets": render_paper_presets(),
        "weights": _write_table(("what you need", "for these metrics"), group_by_weights(load_all_metrics())),
    }
    for name in ("adapters", "presets", "reference-profile", "validity"):
        page = checkout / "docs" / f"{name}.md"
        contents[page] = _fill_tables(page.read_text(encoding="utf-8"), tables)
    board = checkout / "space" / "README.md"
    contents[board] = _list_models(board.read_text(encoding="utf-8"))
    contents[checkout / "docs" / "judge-prompts.md"] = prompts_page()
    contents[checkout / "docs" / "architecture.svg"] = picture(checkout)
    contents[checkout / "docs" / "llms.txt"] = write_llms(checkout)
    return contents


def render_paper_presets() -> str:
    """Render the settings of each preset by paper."""
    parts = []
    for preset in paper_presets.PRESETS.values():
        values = [f"{metric}.{name}={v}" for metric, of in preset.parameters.items() for name, v in of.items()]
        name, *models = preset.profile.split(",")
        profile = f"`{name}`" + (f" with {', '.join(f'`{model}`' for model in models)}" if models else "")
        sampling = ", ".join(f"`{field}={value}`" for field, value in preset.sampling.items())
        parts.append(
            f"## {preset.title}\n\n{preset.reproduction}\n\n"
            f"- Parameters: {', '.join(f'`{value}`' for value in values)}\n"
            f"- Models: {profile if name else 'none, or those of the profile that you choose'}"
            + (f"\n- Sampling of a system with a chat API (`--server`): {sampling}" if sampling else "")
        )
    return "\n\n".join(parts)


DOCS = Path(__file__).resolve().parents[3] / "docs"
"""The pages of the checkout; the pages of studies contain a picture of the effects on each measured metric."""


def _fill_tables(page: str, tables: dict[str, str]) -> str:
    """Return a page with its marked tables updated."""
    for name, table in tables.items():
        marked_table = re.search(rf"<!-- {name} table:.*?-->\n(.*?)<!-- /{name} table -->", page, re.DOTALL)
        if marked_table:
            page = f"{page[: marked_table.start(1)]}\n{table}\n{page[marked_table.end(1) :]}"
    return page


def _list_models(card: str) -> str:
    """Return the Space's card, listing the Hub models that measure in any profile."""
    names = sorted({repo.id for model in CARDS if model.profiles for repo in model.hub})
    return re.sub(r"(?<=\nmodels:\n)(  - \S+\n)*", "".join(f"  - {name}\n" for name in names), card, count=1)


def summary_table() -> str:
    """Return a table with one line per metric: key, direction, description and paper."""
    rows = [
        (
            f"[{metric.title}](../hf_metrics/{metric.name}/README.md)",
            metric.about.partition(": ")[2].rstrip(".") or metric.about,
            metric.headline.better,
            metric.paper,
        )
        for metric in load_all_metrics()
    ]
    return _write_table(("metric", "says", "better", "from"), rows)


def metrics_page() -> str:
    """Return the page with every metric: its keys, its settings, and the docstring that describes its computation."""
    parts = ["# Metrics\n\nMade from the declarations by `python -m podeval.cli.generate_docs`.\n", summary_table()]
    parts += [_section(metric) for metric in load_all_metrics()]
    return "\n".join(parts)


def _section(metric: Metric) -> str:
    lines = [f"## {metric.title} (`{metric.name}`)\n", metric.documentation, ""]
    lines += [f"**Caution.** {metric.caution}", ""] if metric.caution else []
    picture_of_bias = f"studies/bias-{metric.name}.svg"
    if (DOCS / picture_of_bias).exists():
        lines += [f"![What affects {metric.title} besides quality: effects with intervals]({picture_of_bias})", ""]
    else:
        lines += [f"**Bias.** {_say_what_was_looked_at(metric)}", ""]
    lines += [metric.misreading, ""] if metric.misreading else []
    rows = [(f"`{k.name}`", k.better, k.unit, format_range(k), *format_reach(k), k.about) for k in metric.keys]
    lines.append(_write_table(("key", "better", "unit", "range", "people", "good systems", "what"), rows))
    for source in dict.fromkeys(k.reach.source for k in metric.keys if k.reach):
        lines += [f"People and good systems: {source}.", ""]
    for choice in metric.parameters:
        values = ", ".join(f"`{value}`" for value in choice.choices) or f"`{choice.default}` by default"
        lines.append(f"- `{choice.name}`: {choice.about} ({values})")
    return "\n".join(lines).rstrip() + "\n"


def _say_what_was_looked_at(metric: Metric) -> str:
    """For a metric without a picture of effects, state the effects not measured, and the conclusions to avoid."""
    if metric.asks:
        looked = (
            "Each judge has its own biases: `podeval report judge` measures the biases of the judge in use, from its "
            "records or with --probe"
        )
    elif metric.inputs[0] in ("text", "passage", "script"):
        looked = (
            "Whether the metric favours a language, a dialect or a topic has not been measured beyond the tricks in "
            "[gaming](gaming.md)"
        )
    else:
        looked = "Whether the metric favours a voice, a level, a codec or a room has not been measured"
    return f"{looked}; the absence of effects here does not mean that the metric is fair."


def prompts_page() -> str:
    """Return the page of every protocol's prompts as judges read them, with their sources and the differences from the
    sources.
    """
    parts = [
        "# What judges are asked\n\nMade from the prompts by `python -m podeval.cli.generate_docs`. The wording is "
        "podeval's own; "
        "what is judged, the scales and the points are the papers'. A prompt's id is made from its wording, the schema "
        "of its answer and the rules that separate material from instructions, and is part of every protocol. "
        "Those rules and the schema are added to each system text:\n\n" + _quote(RULES.strip()),
    ]
    for title, text, prompts in PROTOCOLS:
        parts.append(f"## {title}\n\n{text.strip()}")
        parts += [_prompt_section(prompt) for prompt in prompts]
    return "\n\n".join(parts) + "\n"


def _prompt_section(prompt: Prompt) -> str:
    schema = json.dumps(prompt.schema, ensure_ascii=False, indent=1)
    return (
        f"### `{prompt.name}`, version {prompt.version}\n\nId `{prompt.id}`. After: {prompt.source}.\n\n"
        f"System:\n\n{_quote(prompt.system.strip())}\n\nRequest:\n\n{_quote(prompt.template.strip())}\n\n"
        f"<details><summary>Schema of the answer</summary>\n\n```json\n{schema}\n```\n\n</details>"
    )


def _quote(text: str) -> str:
    return f"```text\n{text}\n```"


FULL_SIZE = Path(__file__).parents[1] / "systems" / "adapters" / "full_size.json"
"""Records from `studies/speed/full_size.py`: a line for each model of a published size on each device."""

_OUTPUTS = "Reads audio, scripts or answers made elsewhere; no model runs, and the board shows this."


def render_adapters_table() -> str:
    """Render a line for each model class that an adapter opens."""
    rows = []
    for adapter in list_adapters():
        for model in adapter.models:
            kind = "" if model.type in ("*", "lora", "cascade") else f" (`{model.type}`)"
            proven = f"*plumbing only*; {_describe_sizes(adapter.task, model)}"
            rows.append((f"`{adapter.task}`", f"{model.title}{kind}", model.about, proven))
        if not adapter.models:
            rows.append((f"`{adapter.task}`", "no model", _OUTPUTS, "needs none"))
    return _write_table(("task", "opens", "what it can do", "proven"), rows)


def read_full_sizes() -> list[dict[str, Any]]:
    """Read the list of models that ran with random weights at published sizes, and their results."""
    return list(json.loads(FULL_SIZE.read_bytes()))


def render_full_size_table() -> str:
    """Render a line for each model that ran with random weights at a published size."""
    head = ("task", "size of", "parameters", "device", "dtype", "memory", "load", "whole job", "made", "commit, date")
    rows = [
        (
            f"`{line['task']}`",
            line["published"],
            f"{line['parameters'] / 1e6:,.0f} million",
            line["device"],
            line["dtype"],
            f"{line['memory_gb']:.1f} GB"
            + (f", GPU {line['gpu_memory_gb']:.1f} GB" if "gpu_memory_gb" in line else ""),
            f"{line['load_seconds']:.0f} s",
            f"{line['wall_seconds']:.0f} s",
            line["made"],
            f"`{line['commit'][:8]}`, {line['date']}",
        )
        for line in read_full_sizes()
    ]
    return _write_table(head, rows)


def _describe_sizes(task: str, model: ModelClass) -> str:
    """Name the devices on which a model class ran at a published size, or say that only tiny models ran."""
    devices = [
        line["device"].partition(",")[0]
        for line in read_full_sizes()
        if (line["task"], line["type"]) == (task, model.type)
    ]
    return f"at full size on {' and '.join(dict.fromkeys(devices))}" if devices else "only small"


STUDIES: dict[str, tuple[str, str]] = {
    "real raters": ("real_raters.csv", "No results of real raters are available yet."),
    "likeness": ("human_likeness.csv", "Not measured yet: `human_likeness` is shown as not validated until it is."),
}
"""Tables in docs/validity.md that a study writes to docs/studies as CSV, each with a sentence that is shown if the file
is missing.
"""


def render_validity_tables(checkout: Path) -> dict[str, str]:
    """Render the tables in docs/validity.md; each row has its figure, and its interval if the source prints one."""
    from podeval.validation.paper_runs import list_printed_agreements, recompute_agreement

    turned = {"higher": "", "lower": ", reversed", "in range": ", distance from the range, reversed"}
    clips = [
        (
            f"{row.metric}.{row.key}{turned[row.better]}",
            _write_estimate(row.systems),
            "–" if row.without_one is None else " to ".join(map(_write_figure, row.without_one)),
            "–" if row.chance is None else f"{100 * row.chance:.3g} %",
            *((_write_estimate(row.within), str(row.within.count)) if row.within else ("–", "0")),
        )
        for row in recompute_agreement(over_outputs=False)
    ]
    printed: dict[tuple[str, ...], str] = {}
    for one in list_printed_agreements():
        what = (f"{one['paper']}, {one['table']}", one["about"], one["statistic"], one["n"] or "not stated")
        printed[what] = f"{printed.get(what, '')}, {one['who']} {_write_figure(one['value'])}".lstrip(", ")
    evidence = [
        (
            f"`{row['metric']}.{row['key']}`",
            f"{row['statistic']} {row['value']}",
            f"[{row['low']}, {row['high']}]" if row["low"] else "none printed",
            f"{row['n']} {row['of']}",
            row["source"],
        )
        for row in read_human_agreements()
        if not row["source"].startswith("public clips")
    ]
    unmeasured = [
        one.name
        for one in load_all_metrics()
        if all(describe_human_agreement(one, key) == NEVER_COMPARED for key in one.keys)
    ]
    tables = {
        "public clips": _write_table(
            ("key", "SRCC of 6 systems [95 %]", "with one left out", "by chance", "within a category [95 %]", "n"),
            clips,
        ),
        "printed agreement": _write_table(
            ("paper", "about", "statistic", "n", "values"), [(*k, v) for k, v in printed.items()]
        ),
        "evidence": _write_table(("key", "agreement", "95 % interval", "n", "source"), evidence)
        + f"\nNever measured: {', '.join(f'`{name}`' for name in unmeasured)}.\n",
    }
    for name, (file, absent) in STUDIES.items():
        path = checkout / "docs" / "studies" / file
        lines = list(csv.reader(path.read_text(encoding="utf-8").splitlines())) if path.exists() else []
        tables[name] = _write_table(lines[0], lines[1:]) if lines else f"{absent}\n"
    return tables


def _write_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)) + "\n"


def _write_estimate(estimate: Estimate) -> str:
    if estimate.value is None:
        return "–"
    ends = () if estimate.low is None else (estimate.low, estimate.high or 0.0)
    return _write_figure(estimate.value) + (f" [{', '.join(map(_write_figure, ends))}]" if ends else "")


def _write_figure(value: float) -> str:
    """Write a number with two decimals and without a leading zero."""
    return re.sub(r"^(−?)0\.", r"\1.", f"{value:.2f}".replace("-", "−"))


def main() -> None:
    """Write every page that is not current."""
    checkout = Path(__file__).resolve().parents[3]
    for path, content in pages(checkout).items():
        if not path.exists() or path.read_text(encoding="utf-8") != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
            print(path.relative_to(checkout))


if __name__ == "__main__":
    main()
