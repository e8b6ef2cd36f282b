import csv
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from podeval.errors import BadInput
from podeval.systems.adapters import presets
from podeval.systems.adapters.adapter import TASKS, ModelClass, find_adapter, label, list_adapters
from podeval.systems.speech import Reference
from podeval.systems.submission import Submission

DOCUMENT = {
    "schema_version": 1,
    "system": {"id": "x", "name": "X", "description": "X.", "licence": "MIT", "open": True, "languages": ["en"]},
    "benchmarks": [{"name": "real_pod", "tracks": ["voice"]}],
}


def test_every_task_of_the_document_has_its_adapter() -> None:
    tasks = ("text-to-speech", "podcast", "script-writer", "speech-to-speech")
    for task in tasks:
        source = {"kind": "model", "repo": "a/b", "revision": "0" * 40, "task": task}
        document = Submission.model_validate(
            {**DOCUMENT, "system": {**DOCUMENT["system"], "id": "xx"}, "source": source}
        )
        assert find_adapter(document).task == task
    assert set(TASKS) == {*tasks, "outputs"}


@pytest.mark.parametrize("kind", ["outputs", "human"])
def test_what_was_made_elsewhere_is_read(kind: str) -> None:
    assert find_adapter(SimpleNamespace(kind=kind)).task == "outputs"


def test_nothing_is_generated_for_reported_figures() -> None:
    with pytest.raises(BadInput, match="no adapter for 'reported'"):
        find_adapter(SimpleNamespace(source=SimpleNamespace(kind="reported")))


def test_every_adapter_says_what_it_needs_and_how_far_it_is_proven() -> None:
    for adapter in list_adapters():
        assert adapter.about.endswith(".")
        assert adapter.needs
        assert label(adapter) in ("verified with real weights", "plumbing only")
        assert adapter.available() is None


def test_an_adapter_is_verified_when_all_its_classes_are() -> None:
    proven = ModelClass("a", "A", "a", "verified with real weights")
    adapter = SimpleNamespace(models=(proven,))
    assert label(adapter) == "verified with real weights"
    adapter.models = (proven, ModelClass("b", "B", "b"))
    assert label(adapter) == "plumbing only"


def test_the_registry_loads_no_torch() -> None:
    program = (
        "import sys\nfrom podeval.systems.adapters.adapter import list_adapters\nlist_adapters()\n"
        "assert not {'torch', 'transformers', 'peft', 'accelerate'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_presets_have_the_papers_settings() -> None:
    """MTalk-Bench 6.1; PodBench 4.1; LFS-Bench E.3."""
    assert (presets.get_preset("mtalk").temperature, presets.get_preset("mtalk").top_p) == (0.5, 0.95)
    assert presets.get_preset("podbench").max_new_tokens == 16_384
    assert presets.get_preset("lfs").rate == 24_000
    assert presets.get_preset("default").settings() == {"name": "default"}


def test_an_unknown_preset_names_the_closest() -> None:
    with pytest.raises(BadInput, match="did you mean 'podbench'"):
        presets.get_preset("podbnech")


def test_reference_voices_are_those_of_the_paper() -> None:
    table = Path(__file__).parents[3] / "../shared/tables/lfs_table07_reference_voices.csv"
    if not table.is_file():
        pytest.skip(f"no table at {table}")
    ages = {"Children": "child", "Teenager": "teenager", "Youth-Adult": "young adult", "Elderly": "elderly"}
    with table.open(encoding="utf-8") as file:
        printed = [
            presets.LfsVoice(
                int(row["no"]),
                row["gender"].lower(),  # type: ignore[arg-type]
                ages.get(row["age_group"], "middle-aged"),  # type: ignore[arg-type]
                {"English": "en", "Chinese": "zh"}[row["language"]],  # type: ignore[arg-type]
                row["data_source"],
            )
            for row in csv.DictReader(file)
        ]
    assert list(presets.REFERENCE_VOICES) == printed


def test_given_voices_go_before_those_of_the_preset() -> None:
    own, pool = Reference(audio="own.wav"), (Reference(audio="1.wav"),)
    assert presets.assign_voices(("Ann", "Ben", "Cem"), {"Ben": own}, pool) == {"Ann": pool[0], "Ben": own}
