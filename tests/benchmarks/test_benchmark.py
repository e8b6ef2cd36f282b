"""Records are complete, their data is what they pin, and mistakes are told in words."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from podeval import benchmarks
from podeval.benchmarks.benchmark import Benchmark, Item, Split
from podeval.benchmarks.records import compute_content_revision
from podeval.datasets.items import load_items
from podeval.errors import BadInput, PodevalError

EVERY = [benchmarks.get(name) for name in benchmarks.list_benchmarks()]
each = pytest.mark.parametrize("benchmark", EVERY, ids=[benchmark.name for benchmark in EVERY])


def changed(benchmark: Benchmark, **fields: object) -> Benchmark:
    return Benchmark.model_validate({**benchmark.model_dump(), **fields})


def at_hand(benchmark: Benchmark) -> list[tuple[Split, tuple[Item, ...]]]:
    """The splits that need nothing from elsewhere, with their items."""
    return [
        (split, load_items(benchmark, split.name).items)
        for split in benchmark.splits
        if split.file is not None or split.sample
    ]


@each
def test_every_benchmark_can_be_tried_with_what_is_pinned_and_ships_with_podeval(benchmark: Benchmark) -> None:
    splits = at_hand(benchmark)
    assert splits
    for split, items in splits:
        assert items
        assert split.revision == (
            compute_content_revision(split.file) if split.file else load_items(benchmark, split.name).revision
        )
        assert len({item.id for item in items}) == len(items)


@each
def test_items_fit_the_breakdowns_and_languages_of_their_benchmark(benchmark: Benchmark) -> None:
    for split, items in at_hand(benchmark):
        for item in items:
            assert item.language in benchmark.languages
            assert benchmark.cluster(item)
            for breakdown in benchmark.breakdowns:
                if breakdown.within or (breakdown.splits and split.name not in breakdown.splits):
                    continue
                assert not breakdown.groups or item.group(breakdown.name) in breakdown.groups, (split.name, item.id)


@each
def test_a_split_holds_what_its_tracks_need(benchmark: Benchmark) -> None:
    for split, items in at_hand(benchmark):
        for item in items:
            if "voice" in split.tracks:
                assert item.script is not None
                assert len(item.script.speakers) == item.voices
            if "write" in split.tracks:
                assert item.topic
            if "respond" in split.tracks:
                assert all(turn.words and turn.audio and Path(turn.audio).is_file() for turn in item.user)
                assert item.user[-1].criteria


@each
def test_a_composite_is_made_of_columns_of_its_track(benchmark: Benchmark) -> None:
    for composite in benchmark.composites:
        measured = {use.name for use in benchmark.metrics(composite.track)}
        assert {column.partition(".")[0] for column in composite.columns} <= measured


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
    with pytest.raises(BadInput, match=r"choose from .*real_pod"):
        benchmarks.get("zzz")


def test_an_unknown_split_is_answered_with_the_splits_there_are() -> None:
    with pytest.raises(BadInput, match="no split of real_pod 'test'; choose from demo, topics, spontaneous"):
        benchmarks.get("real_pod").items("test")


def test_a_data_file_other_than_the_pinned_one_is_refused() -> None:
    real_pod = benchmarks.get("real_pod")
    splits = [{**split.model_dump(), "revision": "sha256:" + "0" * 64} for split in real_pod.splits]
    with pytest.raises(PodevalError, match="pins sha256:000000000000"):
        changed(real_pod, splits=splits).items("demo")


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


def test_a_dimension_is_measured_by_the_profiles_it_names() -> None:
    real_pod = benchmarks.get("real_pod")

    def names(profile: str | None) -> set[str]:
        return {use.name for use in real_pod.metrics("voice", "topics", profile)}

    assert names("reference") - names("embedded") == {"utmos22", "nisqa_tts"}
    assert names("reference,transcriber=openai/whisper-base") == names("reference") == names(None)


def test_a_dimension_is_measured_in_the_splits_it_names() -> None:
    real_pod = benchmarks.get("real_pod")
    by_split = {
        split: {use.name for use in real_pod.metrics("voice", split)} for split in ("demo", "topics", "spontaneous")
    }
    assert by_split["topics"] - by_split["demo"] == {"sim", "wsim", "timbre_similarity", "turn_taking", "pace"}
    assert by_split["spontaneous"] == {"loudness"}
    dimensions = [dimension.model_dump() for dimension in real_pod.dimensions]
    with pytest.raises(ValidationError, match="splits that are not declared: nowhere"):
        changed(real_pod, dimensions=[{**dimensions[0], "splits": ["nowhere"]}])
