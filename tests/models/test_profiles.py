"""Profiles are one table, and a declaration that lacks a field says which."""

import dataclasses

import pytest

from podeval.benchmarks.benchmark import Benchmark
from podeval.benchmarks.real_pod import BENCHMARK
from podeval.cli.completion import complete_profile
from podeval.metrics.catalogue import load_all_metrics
from podeval.models import registry
from podeval.models.card import ModelCard
from podeval.models.profiles import CHOICES, MEASURING, PROFILES, Profile
from podeval.runs.executor import count_workers


def test_an_entry_is_what_users_choose_from_and_what_every_card_belongs_to() -> None:
    assert (MEASURING, CHOICES) == (("embedded", "reference"), "embedded or reference")
    assert list(PROFILES) == [*MEASURING, "paper"]
    assert complete_profile("") == list(MEASURING)
    for name in MEASURING:
        assert any(name in card.profiles for card in registry.CARDS)
        assert count_workers(name) >= 1
    assert count_workers("nosuch") >= 1


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({}, "^profile: the declaration lacks name and about and gigabytes$"),
        ({"name": "small", "gigabytes": 1.0}, "^profile small: the declaration lacks about$"),
        ({"name": "small", "about": "small models"}, "^profile small: the declaration lacks gigabytes$"),
    ],
)
def test_a_profile_without_a_field_is_refused_by_the_field_s_name(fields: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Profile(**fields)  # type: ignore[arg-type]


def test_a_profile_of_printed_figures_needs_no_gpu() -> None:
    assert Profile("printed", "figures", measures=False).gigabytes == 0


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"title": "", "licence": ""}, "^openai/whisper-base: the declaration lacks title and licence$"),
        ({"id": ""}, "^a model card: the declaration lacks id$"),
        ({"rate": -1}, "^openai/whisper-base: the declaration lacks rate$"),
        ({"profiles": ()}, "^openai/whisper-base: the declaration lacks profiles$"),
        ({"megabytes": 0.0}, "^openai/whisper-base: the declaration lacks megabytes$"),
        ({"build": ""}, "^openai/whisper-base: the declaration lacks build$"),
        ({"job": "oracle"}, "^openai/whisper-base: the job must be one of transcriber, .*, not 'oracle'$"),
        (
            {"profiles": ("paper",)},
            "^openai/whisper-base: the profile must be one of embedded, reference, not 'paper'$",
        ),
        (
            {"variant_in": ("nosuch",)},
            "^openai/whisper-base: the profile must be one of embedded, reference, not 'nosuch'$",
        ),
    ],
)
def test_a_model_card_without_a_field_is_refused_by_the_field_s_name(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        dataclasses.replace(registry.get_card("transcriber", "embedded"), **changes)  # type: ignore[arg-type]


def test_a_card_that_states_nothing_names_every_field() -> None:
    fields = "id and job and title and revision and licence and megabytes and build and rate and profiles"
    with pytest.raises(ValueError, match=f"lacks {fields}$"):
        ModelCard()


def test_what_names_a_profile_elsewhere_is_held_to_the_table() -> None:
    reaches = [key.reach for metric in load_all_metrics() for key in metric.keys if key.reach]
    assert {reach.profile for reach in reaches} == {None, *MEASURING}
    first, *others = BENCHMARK.dimensions
    changed = first.model_copy(update={"profiles": ("paper",)})
    with pytest.raises(ValueError, match=rf"{first.name}: the profile must be one of embedded, reference, not 'paper'"):
        Benchmark.model_validate(dict(BENCHMARK) | {"dimensions": (changed, *others)})
