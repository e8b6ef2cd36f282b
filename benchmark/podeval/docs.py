"""Write what is made from declarations into a checkout: metric Spaces, docs/metrics.md, the table in the README.

`python -m podeval.docs` in the checkout writes them; a test fails while they are not current.
"""

import re
from pathlib import Path

from podeval.metric_scripts import sources
from podeval.metrics.catalogue import all_metrics
from podeval.metrics.declaration import Metric
from podeval.metrics.facts import range_text

_MARKED = re.compile(r"(<!-- metrics table:.*?-->\n).*?(<!-- /metrics table -->)", re.DOTALL)


def pages(checkout: Path) -> dict[Path, str]:
    """Every generated file of a checkout with the content it should have."""
    found = {
        checkout / "hf_metrics" / metric.name / name: content
        for metric in all_metrics()
        for name, content in sources(metric).items()
    }
    readme = checkout / "README.md"
    found[readme] = _MARKED.sub(
        lambda marks: f"{marks[1]}\n{summary_table()}\n{marks[2]}", readme.read_text(encoding="utf-8")
    )
    found[checkout / "docs" / "metrics.md"] = metrics_page()
    return found


def summary_table() -> str:
    """One line a metric: its key, direction, what it says, its paper."""
    lines = ["| metric | says | better | from |", "| --- | --- | --- | --- |"]
    for metric in all_metrics():
        link = f"[{metric.title}](hf_metrics/{metric.name}/README.md)"
        says = metric.about.partition(": ")[2].rstrip(".") or metric.about
        lines.append(f"| {link} | {says} | {metric.headline.better} | {metric.paper} |")
    return "\n".join(lines) + "\n"


def metrics_page() -> str:
    """Every metric with its keys, choices and the docstring that says how it is computed."""
    parts = ["# Metrics\n\nMade from the declarations by `python -m podeval.docs`.\n"]
    parts += [_section(metric) for metric in all_metrics()]
    return "\n".join(parts)


def _section(metric: Metric) -> str:
    lines = [f"## {metric.title} (`{metric.name}`)\n", metric.documentation, ""]
    lines += ["| key | better | unit | range | what |", "| --- | --- | --- | --- | --- |"]
    lines += [f"| `{k.name}` | {k.better} | {k.unit} | {range_text(k)} | {k.about} |" for k in metric.keys]
    lines.append("")
    for choice in metric.parameters:
        values = ", ".join(f"`{value}`" for value in choice.choices) or f"`{choice.default}` by default"
        lines.append(f"- `{choice.name}`: {choice.about} ({values})")
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    """Write every page whose content is not current."""
    checkout = Path(__file__).resolve().parents[2]
    for path, content in pages(checkout).items():
        if not path.exists() or path.read_text(encoding="utf-8") != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
            print(path.relative_to(checkout))


if __name__ == "__main__":
    main()
