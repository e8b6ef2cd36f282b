"""The metric Spaces on disk: made from the declarations, complete, and true."""

import csv
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import yaml

from podeval.measuring.space_files import THUMBNAIL, name_extra
from podeval.metrics import catalogue
from podeval.metrics.description import (
    choose_own_profile,
    list_paper_values,
    list_values_of_metric,
    read_example_output,
)
from podeval.models import registry
from podeval.recording.cache import Cache
from podeval.systems import registry as systems
from studies import example_outputs as examples
from studies import paper_values as study

SPACES = Path(__file__).parents[2] / "hf_metrics"
# The examples of metrics that ask a judge run in tests/metrics/judged, where there is one.
UNJUDGED = tuple(name for name in catalogue.NAMES if not catalogue.get(name).asks)
WITH_MODELS = tuple(name for name in UNJUDGED if catalogue.get(name).needs)
WITHOUT_MODELS = tuple(name for name in UNJUDGED if not catalogue.get(name).needs)


def blocks(card: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", card, flags=re.DOTALL)


def card_of(name: str) -> tuple[dict[str, Any], str]:
    """Front matter and text of a card."""
    _, front, text = (SPACES / name / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(front), text


@pytest.mark.parametrize("name", catalogue.NAMES)
def test_the_front_matter_is_that_of_a_static_space(name: str) -> None:
    front, _ = card_of(name)
    assert front["sdk"] == "static"
    assert {"evaluate", "metric"} <= set(front["tags"])
    assert len({"modality:audio", "modality:text"} & set(front["tags"])) == 1
    assert front["thumbnail"] == THUMBNAIL
    jobs = catalogue.get(name).needs
    hub = {repo.id for card in registry.CARDS if card.job in jobs and card.profiles for repo in card.hub}
    assert set(front.get("models", ())) == hub
    # Colours and a single emoji, as the Hub's card format asks.
    assert front["colorFrom"] in {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}
    assert front["emoji"]


@pytest.mark.parametrize("name", catalogue.NAMES)
def test_the_card_tells_keys_arguments_models_and_installation(name: str) -> None:
    metric = catalogue.get(name)
    _, text = card_of(name)
    for named in (*(key.name for key in metric.keys), *(p.name for p in metric.parameters), "predictions", "groups"):
        assert f"| `{named}` |" in text, named
    for named in ("ci95", "scored", "unscored", "items", "protocol"):
        assert f"`{named}`" in text, named
    assert f"pip install --editable '.{name_extra(metric)}'" in text
    assert (f"podeval models install --profile {choose_own_profile(metric)}" in text) == bool(metric.needs)
    assert ('profile="reference"' in text) == (choose_own_profile(metric) == "reference")
    for job in metric.needs:
        assert registry.get_card(job, choose_own_profile(metric)).title in text
    # What is not in a table is not cut by the pipes of one.
    columns = {line.count("|") for line in text.splitlines() if line.startswith("|")}
    assert columns <= {4, 6}


def test_no_card_holds_what_a_page_would_take_for_html() -> None:
    for name in catalogue.NAMES:
        assert not re.search(r"<[a-z/]", card_of(name)[1]), name


@pytest.mark.parametrize("name", catalogue.NAMES)
def test_a_machine_without_podeval_is_told_what_to_install(name: str, tmp_path: Path) -> None:
    loading = pytest.importorskip("evaluate.loading")
    # What `evaluate` reads off the script's import line and puts after `pip install`.
    found = loading.get_imports(str(SPACES / name / f"{name}.py"))
    assert found == [("library", "podeval", f"podeval{name_extra(catalogue.get(name))}", None)]


def printed_by_example(
    name: str, folder: Path, samples: np.ndarray[Any, Any], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> tuple[str, str]:
    """Value and protocol that the Python block of a card prints, run beside an episode."""
    soundfile.write(folder / "episode.wav", samples, 16_000)
    (folder / "recordings").mkdir()
    soundfile.write(folder / "recordings" / "episode.wav", samples, 16_000)
    monkeypatch.chdir(folder)
    (example,) = blocks(card_of(name)[1], "python")
    exec(example, {})
    value, protocol = capsys.readouterr().out.split()
    return value, protocol


@pytest.mark.parametrize("name", WITHOUT_MODELS)
@pytest.mark.usefixtures("installed_here")
def test_the_example_runs_as_it_stands(
    name: str, tmp_path: Path, speech_like: np.ndarray[Any, Any], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    value, protocol = printed_by_example(name, tmp_path, speech_like, monkeypatch, capsys)
    assert np.isfinite(float(value))
    assert protocol.startswith(f"{name}@")


@pytest.fixture(scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    """A cache of these tests alone: each model runs here, and once."""
    return Cache(tmp_path_factory.mktemp("cache"))


@pytest.mark.models
@pytest.mark.parametrize(
    "name", [name if name == "dnsmos" else pytest.param(name, marks=pytest.mark.long) for name in WITH_MODELS]
)
@pytest.mark.usefixtures("installed_here")
def test_the_example_of_a_metric_with_models_runs_as_it_stands(
    name: str,
    own_cache: Cache,
    tmp_path: Path,
    speech_like: np.ndarray[Any, Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: Any,
) -> None:
    for job in catalogue.get(name).needs:
        if missing := registry.get_card(job, choose_own_profile(catalogue.get(name))).missing():
            pytest.skip(missing)
    monkeypatch.setattr("podeval.recording.recording.open_default_cache", lambda: own_cache)
    value, protocol = printed_by_example(name, tmp_path, speech_like[: 3 * 16_000], monkeypatch, capsys)
    assert protocol.startswith(f"{name}@")
    # A buzz has no words in common with the reference and no voice to compare.
    ranges = {
        "wer": (0.8, np.inf),
        "dnsmos": (1, 5),
        "semantic_div": (0, 0.2),
        "content_errors": (1000, np.inf),
        "integrity": (0, np.inf),
    }
    low, high = ranges.get(name, (np.nan, np.nan))
    assert value == "None" if np.isnan(low) else low <= float(value) <= high


@pytest.mark.parametrize("name", catalogue.NAMES)
def test_the_card_says_what_a_metric_is_for_and_what_it_cannot_tell(name: str) -> None:
    metric = catalogue.get(name)
    _, text = card_of(name)
    assert len(metric.intended_use) > 40
    assert len(metric.limitations) > 80
    assert metric.intended_use in text
    assert metric.limitations in text
    for part in ("Intended use", "Limitations and bias", "Example output", "Origin", "Citation", "Curation"):
        assert f"\n## {part}\n" in text, part
    assert "\n@" in text


def test_values_from_papers_are_those_of_the_tables() -> None:
    values = {row[1:4]: row[4:] for row in list_paper_values(catalogue.get("wer"))}
    # LFS-Bench, Table 2: the least is MegaTTS3's, the greatest ZipVoice's, and people have 0.074.
    assert values["Table 2", "single speaker", "`wer`"] == ("16", "0.108 (megatts3) to 0.396 (zipvoice)", "0.074")
    assert list_paper_values(catalogue.get("pace")) == []
    assert "The papers whose tables podeval was checked against print no values for this metric." in card_of("pace")[1]


def test_every_card_has_what_papers_print_or_says_that_they_print_nothing() -> None:
    silent = set()
    for name in catalogue.NAMES:
        text = card_of(name)[1]
        assert "\n## Values from papers\n" in text, name
        if "print no values for this metric." in text:
            silent.add(name)
    # Metrics of podeval's own, and those that papers have as a picture or a name alone.
    own = {metric.name for metric in catalogue.load_all_metrics() if metric.paper == "ours"}
    assert silent == own - {"utmos22"} | {"timbre_similarity", "wsim"}


def test_values_of_a_metric_itself_are_those_of_the_tables() -> None:
    rows = {(where, what): values for where, what, values in list_values_of_metric(catalogue.get("pam"))}
    assert rows["PAM, Table 6", "PAM of speech synthesis"].startswith("StyleTTS (LibriTTS 100 sentences): 0.90; MQTTS")
    tables = Path(__file__).parents[3] / "shared/tables"
    if not tables.exists():
        pytest.skip(f"the transcribed tables are not at {tables}")
    with study.INTO.open(encoding="utf-8", newline="") as kept:
        assert list(csv.DictReader(kept)) == list(study.read_values(tables))


def kept_output(name: str) -> dict[str, Any]:
    """The output on the card, as the study gives it."""
    return dict(read_example_output(catalogue.get(name)) or {})


@pytest.mark.parametrize("name", catalogue.NAMES)
def test_the_example_output_of_a_card_is_what_its_example_gives(name: str) -> None:
    metric = catalogue.get(name)
    kept = kept_output(name)
    assert kept["output"].keys() <= {key.name for key in metric.keys}, "an example that is unscored shows nothing"
    assert any(value is not None for value in kept["output"].values())
    if not examples.needs_no_models(metric):
        return  # the test after the next computes it
    computed = examples.compute_example(metric)
    assert kept["output"] == pytest.approx(computed.pop("output"), abs=2e-3, nan_ok=True)
    assert kept == {"output": kept["output"], **computed}


@pytest.mark.parametrize("name", catalogue.NAMES)
def test_a_card_says_what_stood_in_for_a_judge_or_for_weights(name: str) -> None:
    metric, kept, text = catalogue.get(name), kept_output(name), card_of(name)[1].replace("\n", " ")
    assert ("judge" in kept) == bool(metric.asks)
    assert ("random" in kept) == (choose_own_profile(metric) != "embedded")
    assert ("with a scripted judge, not a model" in text) == ("judge" in kept)
    assert ("with random numbers in place of the model, so the values mean nothing" in text) == ("random" in kept)
    assert kept.get("judge", "") in text


@pytest.mark.long
@pytest.mark.models
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", WITH_MODELS)
def test_the_example_output_of_a_metric_with_models_is_what_its_example_gives(name: str) -> None:
    metric = catalogue.get(name)
    if examples.needs_no_models(metric):
        pytest.skip("the test before computes it")
    if name in examples.LONGER and (lacking := systems.get(examples.READER).available()):
        pytest.skip(lacking)
    kept = kept_output(name)["output"]
    for job in metric.needs:
        if missing := registry.get_card(job, "embedded").missing():
            pytest.skip(missing)
    computed = examples.compute_example(metric)["output"]
    assert list(kept) == list(computed)
    for key, value in computed.items():
        assert kept[key] == (pytest.approx(value, rel=0.05, abs=0.02) if isinstance(value, float) else value), key
