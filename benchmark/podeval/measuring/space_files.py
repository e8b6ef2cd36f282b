"""Make the files of the metric Spaces (scripts and cards) from the declarations, and install them for offline use.

`evaluate.load("podeval/<name>")` looks on the Hub and then, after any failure, for the newest copy in `evaluate`'s
module cache. `install` puts the packaged scripts there, so the same call works without a network connection.
"""

import json
import shutil
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

from podeval.files import locate_hub_source
from podeval.metrics.catalogue import Metric, load_all_metrics
from podeval.metrics.description import (
    CURATOR,
    choose_own_profile,
    cite,
    collect_metric_facts,
    find_score_part,
    list_arguments,
    list_paper_values,
    list_places,
    list_values_of_metric,
    read_example_output,
)
from podeval.models import registry
from podeval.models.profiles import MEASURING
from podeval.version import __version__

BOARD_SPACE = "podeval/leaderboard"
BOARD_SITE = f"https://{BOARD_SPACE.replace('/', '-')}.hf.space"
"""Address of the board's own Space outside the Hub's frame, because the frame does not pass the path of an address
on."""
THUMBNAIL = f"https://huggingface.co/spaces/{BOARD_SPACE}/resolve/main/static/thumbnail.png"

TIMES = " * "
PREDICTION = {
    "system": '"aria"',
    "recording": '"episode.wav"',
    "recordings": '"recordings"',
    "text": '"So, why is the sea salty? Rivers carry salt, and the sea keeps it."',
    "passage": f'"So, why is the sea salty? Rivers carry salt, and the sea keeps it. "{TIMES}20',
    "generation_log": '{"wall_seconds": 12.5, "audio_seconds": 61.0}',
    "script": '"Host 1: So, why is the sea salty?\\nHost 2: Rivers carry salt, and the sea keeps it."',
    "dialogue": '{"turns": [{"user": "When does the train leave?", "answer": "At nine, from platform two."}]}',
}
_REFERENCE = {
    "reference_text": '"Why is the sea salty?"',
    "reference_voices": '"voice.wav"',
    "script": '"Host 1: So, why is the sea salty?\\nHost 2: Rivers carry salt, and the sea keeps it."',
    "reference_script": '"Host 1: Today we talk about the sea.\\nHost 2: It is salty."',
    "request": '"A short podcast for two hosts on why the sea is salty."',
    "script_grounding": '{"instruction": "Why the sea is salty", '
    '"sources": ["Rivers carry salt from the rocks into the sea, where it stays."]}',
    "reference_votes": '[{"first": "aria", "second": "basso", "outcome": "a", "voter": "p1"}]',
    "reference_marks": '[{"rater": "p1", "page": "Arts", "stimulus": "aria", "value": 70}, '
    '{"rater": "p1", "page": "Arts", "stimulus": "HQ", "value": 90}, '
    '{"rater": "p1", "page": "Arts", "stimulus": "LQ", "value": 5}]',
    "reference_answers": '[{"rater": "p1", "item": "Arts", "system": "aria", "question": "quality", "mark": 4, '
    '"reason": "clear"}]',
}
_JUDGE = 'judge="judge.yaml"'


BIAS_PICTURE = "bias.svg"
"""Name of the plot that `studies/bias.py` draws, in the folder of a metric's Space."""


def install() -> dict[str, Path]:
    """Copy every metric's script into the module cache of `evaluate`, and return the paths by name.

    `evaluate` uses the copy with the newest script, so a new installation replaces the files of an older version.
    """
    from evaluate.config import HF_MODULES_CACHE
    from evaluate.loading import files_to_hash, init_dynamic_modules

    init_dynamic_modules()
    installed = {}
    for metric in load_all_metrics():
        script = locate_hub_source("hf_metrics") / metric.name / f"{metric.name}.py"
        parent = Path(HF_MODULES_CACHE) / "evaluate_modules" / "metrics" / f"podeval--{metric.name}"
        folder = parent / files_to_hash([str(script)])
        folder.mkdir(parents=True, exist_ok=True)
        for package in (parent.parent, parent, folder):
            (package / "__init__.py").touch()
        shutil.copyfile(script, folder / script.name)
        installed[metric.name] = folder / script.name
    return installed


def list_sources(metric: Metric) -> dict[str, str]:
    """Return the files of a metric's Space, by name; `studies/bias.py` draws the plot of its bias."""
    picture = locate_hub_source("hf_metrics") / metric.name / BIAS_PICTURE
    return {
        f"{metric.name}.py": write_script(metric),
        "README.md": write_card(metric),
        "requirements.txt": f"podeval{name_extra(metric)}=={__version__}\n",
        "app.py": write_app(metric),
        "index.html": write_front_page(metric),
        **({BIAS_PICTURE: picture.read_text(encoding="utf-8")} if picture.exists() else {}),
    }


def name_extra(metric: Metric) -> str:
    """Return the extra that installs the models of a metric."""
    return f"[{choose_own_profile(metric)}]" if metric.needs else ""


def write_script(metric: Metric) -> str:
    """Write the script that `evaluate` loads; the package creates the module.

    If podeval is not installed, `evaluate` asks the user to install the package named after `From:`.
    """
    name = metric.name.title().replace("_", "")
    return (
        f'"""{metric.title} as a module of `evaluate`; the code is in the package podeval."""\n\n'
        f"from podeval.measuring.evaluate_module import module  # From: podeval{name_extra(metric)}\n\n"
        f'{name} = module("{metric.name}")\n'
    )


def write_app(metric: Metric) -> str:
    """Write a page for trying the metric on one file, for people who run the Space with `sdk: gradio`."""
    return (
        f'"""Try {metric.title} on one file: `pip install podeval{name_extra(metric)} gradio`, '
        f'then `python app.py`."""\n\n'
        "from podeval.measuring.demo_page import page\n\n"
        f'page("{metric.name}").launch()\n'
    )


def write_front_page(metric: Metric) -> str:
    """Write the page of the static Space: the purpose of the metric and an example call."""
    title, about = escape(metric.title), escape(metric.about)
    return (
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{title} · podeval</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<style>:root { color-scheme: light dark } pre { overflow-x: auto }"
        " body { font: 1rem/1.5 system-ui; max-width: 44rem; margin: 2rem auto; padding: 0 1rem }</style>\n"
        f"<h1>{title}</h1>\n<p>{about}</p>\n<pre><code>{escape(write_example(metric))}</code></pre>\n{_try_it(metric)}"
        f'<p><a href="https://huggingface.co/spaces/podeval/{metric.name}/blob/main/README.md">The metric card</a> '
        "says how it is computed, from what, and what it refuses.</p>\n</html>\n"
    )


def score_address(metric: Metric) -> str:
    """Return the address of the site's Score tab with the metric selected; empty if the tab does not offer it."""
    return f"{BOARD_SITE}/score?metric={metric.name}" if find_score_part(metric) else ""


def _try_it(metric: Metric) -> str:
    """Write the line of the page that links to the Score tab."""
    if not (address := score_address(metric)):
        return ""
    thing = "recording" if find_score_part(metric) == "recording" else "script"
    return (
        f'<p><a href="{address}" target="_blank" rel="noopener">Measure a {thing} of your own</a> on the board.</p>\n'
    )


def list_hub_models(metric: Metric) -> list[str]:
    """Return the model repos on the Hub that the metric uses in any profile."""
    cards = (card for card in registry.CARDS if card.job in metric.needs and card.profiles)
    return sorted({repo.id for card in cards for repo in card.hub})


def write_card(metric: Metric) -> str:
    """Write the metric card: front matter of a free static Space, purpose, an example that runs, and facts."""
    metric_facts = collect_metric_facts(metric)
    parts = [
        f"# {metric.title}\n\n{metric.documentation}",
        *([f"## Caution\n\n{metric.caution}"] if metric.caution else []),
        "## How to use\n\n" + _use(metric),
        "## Arguments of `compute`\n\n" + _arguments(metric),
    ]
    parts[1:1] = [f"## Intended use\n\n{metric.intended_use}", f"## Limitations and bias\n\n{_describe_bias(metric)}"]
    keys = [(f"`{k['name']}`", _better(k), k["unit"], k["range"], k["about"]) for k in metric_facts["keys"]]
    parts.append("## Values\n\n" + _table(("key", "better", "unit", "range", "what"), keys) + f"\n\n{RESULT}")
    parts.append(f"## Example output\n\n{_describe_output(metric)}")
    if metric.needs:
        rows = [
            (f"`{profile}`", job.replace("_", " "), model or "none in this version: items are unscored")
            for profile, jobs in metric_facts["models"].items()
            for job, model in jobs.items()
        ]
        parts.append("## Models by profile\n\n" + _table(("profile", "job", "model (licence)"), rows))
    parts += _describe_origin(metric)
    return _front_matter(metric) + "\n" + "\n\n".join(part.rstrip() for part in parts) + "\n"


def _describe_bias(metric: Metric) -> str:
    """Describe the metric's limits, the conclusions to avoid, and the plot of effects other than quality."""
    parts = [part for part in (metric.limitations, metric.misreading) if part]
    if metric.misreading and (locate_hub_source("hf_metrics") / metric.name / BIAS_PICTURE).exists():
        parts.append(f"![What affects {metric.title} besides quality: effects with intervals]({BIAS_PICTURE})")
    return "\n\n".join(parts)


def _describe_origin(metric: Metric) -> list[str]:
    """Write the parts of the card on benchmarks, values from papers, citation and curation."""
    places = [f"{title} (track {track})" for title, track in list_places(metric)]
    where = f"Measured by {', '.join(places)}." if places else f"No benchmark measures it. {metric.no_benchmark}"
    parts = [f"## Benchmarks\n\n{where}"]
    parts += [f"## Values from papers\n\n{_describe_paper_values(metric)}"]
    parts.append(
        f"## Origin\n\nPaper: {metric.paper}. Version {metric.version} of the metric, made from its declaration "
        "in podeval, the benchmark for long-form spoken audio made by machines. Licence of the code: Apache-2.0."
    )
    parts.append(f"## Citation\n\n```bibtex\n{cite(metric)}\n```")
    parts.append(
        f"## Curation\n\n{CURATOR} The metric contains no personal data, and the material that you measure stays with "
        "you."
    )
    return parts


def _describe_paper_values(metric: Metric) -> str:
    """Write the values from papers: the scores of systems over all items, and figures about the metric itself."""
    parts = []
    if values := list_paper_values(metric):
        head = ("paper, table, conditions", "key", "systems", "lowest to highest", "people")
        rows = [
            (", ".join(filter(None, where)), key, count, spread or "none", people or "none")
            for *where, key, count, spread, people in values
        ]
        parts += [
            "As printed, over all items. The papers used their own models and conditions, so do not compare these "
            "values with values under another protocol.",
            _table(head, rows),
        ]
    if own := list_values_of_metric(metric):
        parts += [
            "For the metric itself, on the paper's material and with its models:",
            _table(("paper, place", "what", "values as printed"), own),
        ]
    return "\n\n".join(parts) or "The papers whose tables podeval was checked against print no values for this metric."


def _describe_output(metric: Metric) -> str:
    """Write the output of the example, and the substitutes for a judge or for weights; a test computes it again."""
    output = read_example_output(metric)
    if output is None:
        return "There is no output here yet; `studies/example_outputs.py` computes it."
    audio = metric.inputs[0] == "recording"
    of = "the dialogue of the tutorials (`docs/tutorials/audio`), with its script," if audio else "the example above"
    of = output.get("of", of)
    if "reference_voices" in metric.inputs:
        of += " against the voices of two other people"
    by = "by this version"
    if "judge" in output:
        of += ' with `source="mix"`' if metric.needs else ""
        by += f" with a scripted judge, not a model, that neither listens nor reads: {output['judge']}"
    if "random" in output:
        by += (
            ", **with random numbers in place of the model, so the values mean nothing**: its weights come with "
            "no package, and only the keys and their form are those of real output"
        )
    values = json.dumps(output["output"], indent=1, ensure_ascii=False)
    return f"Output for {of} {by}{'.' if {'judge', 'random'} & output.keys() else ':'}\n\n```json\n{values}\n```"


RESULT = """\
`compute` returns these keys (means over scored items) and, in every case:

- `ci95`: 95 % interval by key, clustered by `groups`; None if it cannot be computed, as for one item.
- `scored`, `unscored`: how many items have a score, and how many could not be scored. Means leave out unscored items.
- `items`: for each item, its values and notes, or why it is `unscored` and the `cause` (`system` or `ours`).
- `protocol`: how the numbers were computed. Compare numbers only if `protocol["id"]` is the same."""


def _front_matter(metric: Metric) -> str:
    modality = "text" if metric.inputs[0] in ("text", "passage", "script") else "audio"
    models = "".join(f"- {name}\n" for name in list_hub_models(metric))
    return (
        f"---\ntitle: {metric.title}\nemoji: {metric.emoji}\ncolorFrom: indigo\n"
        "colorTo: gray\nsdk: static\npinned: false\nlicense: apache-2.0\ntags:\n- evaluate\n- metric\n- speech\n"
        f"- podeval\n- modality:{modality}\n"
        + (f"models:\n{models}" if models else "")
        + f"thumbnail: {THUMBNAIL}\ndescription: >-\n  {metric.about}\n---\n"
    )


def _use(metric: Metric) -> str:
    """Write the part of the card on installation, with the example."""
    # podeval is not on PyPI yet.
    commands = [f"pip install --editable '.{name_extra(metric)}'  # in a checkout of podeval"]
    if metric.asks:
        hears = "hears: true\\n" if metric.inputs[0] == "recording" else ""
        commands.append(
            f"printf 'backend: endpoint\\nmodel: NAME\\nendpoint: https://host/v1\\n{hears}' > judge.yaml"
            "  # key: PODEVAL_JUDGE_KEY"
        )
    if metric.needs:
        commands.append(f"podeval models install --profile {choose_own_profile(metric)}")
    commands.append("podeval metrics install  # optional: the example then needs no network")
    shell = "\n".join(commands)
    site = score_address(metric)
    tried = (
        f"\n\nWithout installing anything: [the Score tab of the board, with this metric selected]({site})."
        if site
        else ""
    )
    return f"```bash\n{shell}\n```\n\n```python\n{write_example(metric)}```{tried}"


def find_reference(metric: Metric) -> str:
    """Return the reference for a metric's example: its own, or the one for all metrics with this kind of reference."""
    return _REFERENCE.get(metric.name) or _REFERENCE[metric.reference or ""]


def write_example(metric: Metric) -> str:
    """Write an example call that runs as is if its files exist."""
    lines = ["import evaluate", "", f'metric = evaluate.load("podeval/{metric.name}")']
    call = f"predictions=[{PREDICTION[metric.inputs[0]]}]"
    if metric.reference:
        call += f", references=[{find_reference(metric)}]"
    if metric.asks:
        call += f", {_JUDGE}"
    if choose_own_profile(metric) != MEASURING[0]:
        call += f', profile="{choose_own_profile(metric)}"'
    lines += [f"result = metric.compute({call})", f'print(result["{metric.headline.name}"], result["protocol"]["id"])']
    return "\n".join(lines) + "\n"


def _arguments(metric: Metric) -> str:
    rows = [(f"`{a.name}`", a.values, a.about.rstrip(".")) for a in list_arguments(metric)]
    choices = ", ".join(f"`{parameter.name}`" for parameter in metric.parameters)
    note = f"\n\nThese are part of the protocol, so different choices give different protocols: {choices}."
    return _table(("argument", "values, default first", "what"), rows) + (note if choices else "")


def _better(key: dict[str, Any]) -> str:
    return f"{key['better']}; best: {key['ideal']}" if key["ideal"] else str(key["better"])


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
