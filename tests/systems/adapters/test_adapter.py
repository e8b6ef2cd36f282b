import csv
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest

from podeval.errors import BadInput
from podeval.systems.adapters import presets, script_writer, speech_to_speech, text_to_speech
from podeval.systems.adapters.adapter import TASKS, find_adapter
from podeval.systems.speech import Reference
from podeval.systems.submission import Task


def test_every_task_of_the_document_has_its_adapter_and_so_have_outputs() -> None:
    assert {*get_args(Task), "outputs"} == set(TASKS)
    for task in TASKS:
        assert find_adapter(task).task == task
        assert find_adapter(task).available() is None
    with pytest.raises(BadInput, match="no adapter for 'reported'"):
        find_adapter("reported")


@pytest.mark.parametrize(
    ("adapter", "model", "says"),
    [
        (script_writer, "lora", "specify the model that it adapts under base"),
        (script_writer, "vits", "'vits' is not a causal language model"),
        (text_to_speech, "lm", "cannot open a model of type 'llama'; it opens VITS"),
        (speech_to_speech, "lm", "cannot open a model of type 'llama'; it opens Qwen3-Omni"),
        (speech_to_speech, "lora", "no transcriber and no language_model and no speech"),
    ],
)
def test_a_model_of_another_class_or_without_a_part_is_refused(
    fetched: Any, adapter: ModuleType, model: str, says: str
) -> None:
    with pytest.raises(BadInput, match=says):
        adapter.check(fetched(model))


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
    with pytest.raises(BadInput, match="did you mean podbench"):
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
