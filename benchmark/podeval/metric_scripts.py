"""The metric Spaces: their scripts and cards, made from the declarations, and installed for offline use.

`evaluate.load("podeval/<name>")` looks on the Hub and then, on any failure, for the newest copy under
`evaluate`'s module cache. `install` puts the packaged scripts there, so that the same call works without network.
"""

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from podeval import __version__
from podeval.hub_sources import hub_source
from podeval.metrics.catalogue import all_metrics
from podeval.metrics.declaration import Metric
from podeval.metrics.facts import facts

EMOJI = {"script": "📝", "speech": "🗣️", "acoustics": "🎙️", "audio": "🎚️"}


def install() -> dict[str, Path]:
    """Copy every metric's script into the module cache of `evaluate`; where each went, by name."""
    from evaluate.config import HF_MODULES_CACHE
    from evaluate.loading import files_to_hash, init_dynamic_modules

    init_dynamic_modules()
    installed = {}
    for metric in all_metrics():
        script = hub_source("hf_metrics") / metric.name / f"{metric.name}.py"
        parent = Path(HF_MODULES_CACHE) / "evaluate_modules" / "metrics" / f"podeval--{metric.name}"
        folder = parent / files_to_hash([str(script)])
        folder.mkdir(parents=True, exist_ok=True)
        for package in (parent.parent, parent, folder):
            (package / "__init__.py").touch()
        shutil.copyfile(script, folder / script.name)
        folder.touch()
        installed[metric.name] = folder / script.name
    return installed


def sources(metric: Metric) -> dict[str, str]:
    """The files of a metric's Space, by name."""
    return {
        f"{metric.name}.py": script(metric),
        "README.md": card(metric),
        "requirements.txt": f"podeval{extras(metric)}=={__version__}\n",
        "app.py": app(metric),
    }


def extras(metric: Metric) -> str:
    """The extra a metric's models come with."""
    return "[embedded]" if metric.needs else ""


def script(metric: Metric) -> str:
    """What `evaluate` loads: the module, made by the package."""
    name = metric.name.title().replace("_", "")
    return (
        f'"""{metric.title} as a module of `evaluate`; the code is in the package podeval."""\n\n'
        "import podeval  # noqa: F401\n"
        "from podeval.evaluate_module import module\n\n"
        f'{name} = module("{metric.name}")\n'
    )


def app(metric: Metric) -> str:
    """A page to try the metric on one file, for whoever runs the Space with `sdk: gradio`."""
    return (
        f'"""Try {metric.title} on one file: `pip install podeval{extras(metric)} gradio`, then `python app.py`."""\n\n'
        "from podeval.metric_page import page\n\n"
        f'demo = page("{metric.name}")\n\n'
        'if __name__ == "__main__":\n'
        "    demo.launch()\n"
    )


def card(metric: Metric) -> str:
    """The metric card: front matter of a free static Space, facts, an example that runs."""
    known = facts(metric)
    front = (
        f"---\ntitle: {metric.title}\nemoji: {EMOJI[metric.dimension.partition('.')[0]]}\ncolorFrom: indigo\n"
        "colorTo: gray\nsdk: static\npinned: false\nlicense: apache-2.0\ntags:\n- evaluate\n- metric\n- speech\n"
        f"- podeval\ndescription: >-\n  {metric.about}\n---\n"
    )
    parts = [
        front,
        f"# {metric.title}\n\n{metric.documentation}",
        "## Keys\n\n" + _table(("key", "better", "unit", "range", "what"), _key_rows(known)),
        "## Use\n\n```python\n" + example(metric) + "```\n\n" + RESULT,
    ]
    arguments = [(name, "required", about) for name, about in known["inputs"].items()]
    arguments += [(name, "optional", about) for name, about in known["optional_inputs"].items()]
    parts.append("## Inputs\n\n" + _table(("input", "", "what"), arguments))
    if known["parameters"]:
        rows = [(f"`{p['name']}`", _choices(p), p["about"]) for p in known["parameters"]]
        parts.append("## Choices\n\nPassed to `compute`; each is part of the protocol.\n\n"
                     + _table(("name", "values (default first)", "what"), rows))
    if metric.needs:
        rows = [(profile, job.replace("_", " "), model or "none in this version")
                for profile, jobs in known["models"].items() for job, model in jobs.items()]
        parts.append("## Models\n\n" + _table(("profile", "job", "model"), rows))
    parts.append(
        f"Source: {metric.paper}. Metric version {metric.version}. "
        f"Install: `pip install 'podeval{extras(metric)}'`"
        + (", then `podeval models install --profile embedded`." if metric.needs else ".")
    )
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


RESULT = (
    "`compute` returns the keys (mean over scored items) and always `ci95` (95 % interval by key), `scored`, "
    "`unscored`, `items` (values, or the reason there are none) and `protocol` (what the number was computed by)."
)


def example(metric: Metric) -> str:
    """A call that runs as it stands, given the files it names."""
    lines = ["import evaluate", "", f'metric = evaluate.load("podeval/{metric.name}")']
    if metric.inputs[0] == "recording":
        call = 'predictions=["episode.wav"]'
    else:
        call = 'predictions=["So, why is the sea salty? Rivers carry salt, and the sea keeps it."]'
    if "reference_text" in metric.inputs:
        call += ', references=["Why is the sea salty?"]'
    lines += [f"result = metric.compute({call})", f'print(result["{metric.headline.name}"], result["protocol"]["id"])']
    return "\n".join(lines) + "\n"


def write_sources(folder: Path) -> None:
    """Write the sources of every metric Space below a folder."""
    for metric in all_metrics():
        for name, content in sources(metric).items():
            path = folder / metric.name / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")


def _key_rows(known: dict[str, Any]) -> list[tuple[str, ...]]:
    return [(f"`{k['name']}`", k["better"], k["unit"], k["range"], k["about"]) for k in known["keys"]]


def _choices(parameter: dict[str, Any]) -> str:
    others = [choice for choice in parameter["choices"] if choice != parameter["default"]]
    return ", ".join(f"`{value}`" for value in (parameter["default"], *others))


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
