"""The demo's voices speak an episode of ten minutes of Real-Pod's split `long`, and it is measured."""

from pathlib import Path

import pytest

from podeval import benchmarks
from podeval.errors import ModelMissing
from podeval.metrics.score import Score
from podeval.models import registry
from podeval.runs.measure import Task, measure_item
from podeval.runs.run import speak_item
from podeval.runs.run_folder import RunFolder
from podeval.systems import registry as systems

REAL_POD = benchmarks.get("real_pod")


@pytest.mark.long
@pytest.mark.models
@pytest.mark.timeout(3600)
def test_an_episode_of_ten_minutes_is_spoken_and_has_its_errors_by_minute(tmp_path: Path) -> None:
    if missing := registry.get_card("transcriber", "embedded").missing():
        pytest.skip(missing)
    system = systems.get("hibari_piper")
    try:
        system.require()
    except ModelMissing as missing_voice:
        pytest.skip(str(missing_voice))
    item = next(item for item in REAL_POD.items("long") if (item.properties["minutes"], item.voices) == ("10", 2))
    spoken = speak_item(system, item, seed=0)
    folder = RunFolder(tmp_path, "real_pod", "long", "hibari_piper")
    folder.write_output(*spoken)
    output = folder.output(item.id)
    assert 7 * 60 < output.duration < 14 * 60
    task = Task(item, output, folder.outputs, "embedded", "voice", REAL_POD.metrics("voice", "long"))
    results = measure_item(task)
    assert {name for name, result in results.items() if not isinstance(result, Score)} <= {"sim", "wsim"}
    for name in ("content_errors", "speaker_attribution"):
        score = results[name]
        assert len(score.timeline.starts) == round(output.duration / 60)
        assert set(score.timeline.drift) > {"per"}
    wer, attribution = results["wer"], results["speaker_attribution"]
    assert wer.values["wer"] < 0.2
    assert attribution.values["attribution_accuracy"] > 0.9
