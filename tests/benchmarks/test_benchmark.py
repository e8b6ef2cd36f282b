"""Records are complete, their data is what they pin, and mistakes are told in words."""

import json

import pytest
from pydantic import ValidationError

from podeval import benchmarks
from podeval.benchmarks.benchmark import Benchmark, Item, content_revision
from podeval.errors import BadInput, PodevalError

EVERY = [benchmarks.get(name) for name in benchmarks.names()]
each = pytest.mark.parametrize("benchmark", EVERY, ids=[benchmark.name for benchmark in EVERY])


def changed(benchmark: Benchmark, **fields: object) -> Benchmark:
    return Benchmark.model_validate({**benchmark.model_dump(), **fields})


@each
def test_no_text_of_a_record_is_empty(benchmark: Benchmark) -> None:
    def texts(part: object) -> list[str]:
        if isinstance(part, dict):
            return [text for value in part.values() for text in texts(value)]
        if isinstance(part, list):
            return [text for value in part for text in texts(value)]
        return [part] if isinstance(part, str) else []

    found = texts(json.loads(benchmark.model_dump_json()))
    assert len(found) > 20
    assert all(text.strip() for text in found)


@each
def test_every_split_has_the_items_it_pins(benchmark: Benchmark) -> None:
    for split in benchmark.splits:
        items = benchmark.items(split.name)
        assert items
        assert split.revision == content_revision(split.file)
        assert len({item.id for item in items}) == len(items)


@each
def test_items_fit_the_breakdowns_and_languages_of_their_benchmark(benchmark: Benchmark) -> None:
    groups = {breakdown.name: set(breakdown.groups) for breakdown in benchmark.breakdowns}
    for split in benchmark.splits:
        for item in benchmark.items(split.name):
            assert item.language in benchmark.languages
            assert item.category in groups.get("category", {item.category})
            assert benchmark.cluster(item)


@each
def test_a_split_that_serves_the_voice_track_has_scripts_with_the_voices_asked_for(
    benchmark: Benchmark,
) -> None:
    for split in benchmark.splits:
        if "voice" in split.tracks:
            for item in benchmark.items(split.name):
                assert item.script is not None
                assert len(item.script.speakers) == item.voices


@each
def test_every_track_has_a_dimension_and_a_split(benchmark: Benchmark) -> None:
    tracks = {track.name for track in benchmark.tracks}
    assert {name for dimension in benchmark.dimensions for name in dimension.tracks} == tracks
    assert {name for split in benchmark.splits for name in split.tracks} == tracks


@each
def test_a_benchmark_that_gates_on_accuracy_measures_wer(benchmark: Benchmark) -> None:
    gated = [dimension for dimension in benchmark.dimensions if dimension.needs_accurate_speech]
    for dimension in gated:
        for track in dimension.tracks:
            assert "wer" in {use.name for use in benchmark.metrics(track)}


def test_an_unknown_benchmark_is_answered_with_the_closest_name() -> None:
    with pytest.raises(BadInput, match=r"'realpod'; did you mean real_pod\?"):
        benchmarks.get("realpod")
    with pytest.raises(BadInput, match=r"choose one of .*real_pod"):
        benchmarks.get("zzz")


def test_an_unknown_split_is_answered_with_the_splits_there_are() -> None:
    with pytest.raises(BadInput, match="no split 'test'; choose one of demo, topics"):
        benchmarks.get("real_pod").items("test")


def test_a_data_file_other_than_the_pinned_one_is_refused() -> None:
    real_pod = benchmarks.get("real_pod")
    splits = [{**split.model_dump(), "revision": "sha256:" + "0" * 64} for split in real_pod.splits]
    with pytest.raises(PodevalError, match="pins sha256:000000000000"):
        changed(real_pod, splits=splits).items("demo")


def test_a_record_cannot_be_edited_in_place() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        benchmarks.get("real_pod").wer_ceiling = 1.0


def test_a_record_that_names_an_undeclared_track_or_column_is_refused() -> None:
    real_pod = benchmarks.get("real_pod")
    dimensions = [dimension.model_dump() for dimension in real_pod.dimensions]
    with pytest.raises(ValidationError, match="tracks that are not declared: sing"):
        changed(real_pod, dimensions=[{**dimensions[0], "tracks": ["sing"]}])
    with pytest.raises(ValidationError, match=r"main column mattr\.matr"):
        changed(real_pod, dimensions=[{**dimensions[0], "main": "mattr.matr"}])
    with pytest.raises(ValidationError, match="share a name"):
        changed(real_pod, dimensions=[dimensions[0], dimensions[0]])


def test_items_resample_by_what_the_record_says() -> None:
    real_pod = benchmarks.get("real_pod")
    item = Item(id="a", topic="Tea", category="Arts", language="en", voices=2)
    assert real_pod.cluster(item) == "Tea"
    by_category = changed(real_pod, aggregation={"cluster": "category"})
    assert by_category.cluster(item) == "Arts"


def test_metrics_are_listed_once_and_by_track() -> None:
    real_pod = benchmarks.get("real_pod")
    assert [use.name for use in real_pod.metrics("write")] == ["distinct_n", "mattr", "info_dens"]
    everything = [use.name for use in real_pod.metrics()]
    assert len(everything) == len(set(everything)) == 8
