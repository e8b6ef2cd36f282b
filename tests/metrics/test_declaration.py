import inspect
from typing import Literal

import pytest

from podeval.errors import BadInput, CannotScore, ModelMissing, NoWords
from podeval.measuring.space_files import write_card
from podeval.metrics import catalogue
from podeval.metrics.catalogue import Metric, metric
from podeval.metrics.description import collect_metric_facts, list_arguments, list_places
from podeval.metrics.facts import DIMENSION_GROUPS, INPUTS, Key
from podeval.metrics.score import Score, Unscored

EVERY = [pytest.param(catalogue.get(name), id=name) for name in catalogue.NAMES]
LEVELS = {"LUFS", "LU", "dBTP", "Elo points", "s"}


def toy(returns: object) -> Metric:
    """A metric whose function gives this, or raises it."""

    def function(
        text: str, *, size: int = 2, share: float = 0.5, strict: bool = False, mode: Literal["a", "b"] = "a"
    ) -> Score:
        """Score one text.

        Args:
            text: words.
            size: how many
                words.
            share: of them.
            strict: or not.
            mode: a or b.
        """
        if isinstance(returns, Exception):
            raise returns
        return Score(values={"toy": returns})  # type: ignore[dict-item]

    declare = metric(
        name="toy", title="Toy", version="1.0", dimension="script.toy", keys=(Key("toy", "higher"),), paper="none"
    )
    return declare(function)


@pytest.mark.parametrize("declared", EVERY)
def test_every_metric_is_declared_in_full(declared: Metric) -> None:
    assert declared.title
    assert declared.paper
    assert declared.version.count(".") == 1
    group, _, column = declared.dimension.partition(".")
    assert group in DIMENSION_GROUPS
    assert column
    for key in declared.keys:
        assert key.about, key.name
        assert key.bounds != (None, None) or key.unit in LEVELS or key.unit.endswith("per 10 min"), key.name
        assert key.better != "in range" or key.ideal, f"{key.name} is best in no range"
    for parameter in declared.parameters:
        assert parameter.about, f"{parameter.name} has no line under Args"
        assert parameter.read(parameter.default) == parameter.default
        if parameter.kind in (int, float):
            assert parameter.constraint.least is not None, f"{parameter.name} has no least value"
            with pytest.raises(BadInput, match=rf"{parameter.name} must be [\d.]+ or more, not '-1'"):
                parameter.read("-1")
    for name in (*declared.inputs, *declared.optional_inputs):
        assert name in INPUTS


@pytest.mark.parametrize("declared", EVERY)
def test_every_metric_says_where_it_is_from_and_how_it_differs(declared: Metric) -> None:
    assert declared.about.endswith(".")
    assert len(declared.about) < 160
    assert any(
        paper in declared.documentation
        for paper in ("PodEval", "LFS-Bench", "PodBench", "MTalk-Bench", "Interspeech", "ICASSP")
    )
    assert "\n\nDiffers from " in declared.documentation


@pytest.mark.parametrize("declared", EVERY)
def test_the_arguments_shown_are_those_of_the_function(declared: Metric) -> None:
    shown = {argument.name for argument in list_arguments(declared)}
    choices = {p.name for p in inspect.signature(declared.function).parameters.values() if p.kind is p.KEYWORD_ONLY}
    assert choices <= shown
    assert ("references" in shown) == bool(declared.reference)
    assert ("scripts" in shown) == ("script" in declared.optional_inputs)
    assert all(argument.about and argument.values for argument in list_arguments(declared))


@pytest.mark.parametrize("declared", EVERY)
def test_every_metric_is_part_of_a_benchmark_or_its_card_says_why_not(declared: Metric) -> None:
    places = list_places(declared)
    assert bool(places) != bool(declared.no_benchmark), "either, and not both"
    card = write_card(declared)
    assert (f"No benchmark measures it. {declared.no_benchmark}" in card) == (not places)
    assert all(f"{title} (track {track})" in card for title, track in places)


def test_the_metrics_of_music_and_of_sound_are_those_of_finished_podcasts() -> None:
    for name in ("smr", "casp", "pam"):
        assert ("Real-Pod", "podcast") in list_places(catalogue.get(name))


def test_facts_name_the_model_of_each_profile() -> None:
    models = collect_metric_facts(catalogue.get("dnsmos"))["models"]
    assert models["embedded"]["speech_quality"] == models["reference"]["speech_quality"]
    assert "MIT" in models["embedded"]["speech_quality"]
    assert (
        collect_metric_facts(catalogue.get("wer"))["models"]["reference"]["transcriber"]
        == "Whisper large v3 (Apache-2.0)"
    )


def test_ranges_and_ideals_are_shown_as_a_person_writes_them() -> None:
    shown = {
        key["name"]: (key["range"], key["ideal"]) for key in collect_metric_facts(catalogue.get("loudness"))["keys"]
    }
    assert shown["integrated"] == ("", "−18 to −14")
    assert shown["true_peak"] == ("", "up to −1")
    assert shown["range"] == ("0 and more", "4 to 18")
    assert shown["range_score"] == ("0 to 1", "")


def test_an_argument_s_description_may_run_over_lines() -> None:
    assert [p.about for p in toy(1.0).parameters] == ["how many words.", "of them.", "or not.", "a or b."]


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({"size": "3"}, 3),
        ({"size": 3.0}, 3),
        ({"share": "0.25"}, 0.25),
        ({"share": 1}, 1.0),
        ({"strict": "True"}, True),
        ({"strict": "false"}, False),
        ({"mode": "b"}, "b"),
    ],
)
def test_parameters_are_read_from_text_and_data(given: dict[str, object], read: object) -> None:
    (name,) = given
    found = toy(1.0).read_parameters(given)
    assert found[name] == read
    assert type(found[name]) is type(read)
    assert found.keys() == {"size", "share", "strict", "mode"}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"size": "two"}, "size must be a whole number, not 'two'"),
        ({"size": "2.5"}, "size must be a whole number, not '2.5'"),
        ({"size": 2.5}, "size must be a whole number, not 2.5"),
        ({"size": None}, "size must be a whole number, not None"),
        ({"size": float("inf")}, "size must be a whole number, not inf"),
        ({"share": "half"}, "share must be a number, not 'half'"),
        ({"strict": "perhaps"}, "strict must be true or false, not 'perhaps'"),
        ({"mode": "c"}, "mode must be one of a, b, not 'c'"),
        ({"modus": "a"}, "toy has no parameter 'modus'; it has size, share, strict, mode"),
    ],
)
def test_a_parameter_that_cannot_be_taken_is_refused_with_what_it_could_be(
    given: dict[str, object], sentence: str
) -> None:
    with pytest.raises(BadInput) as refusal:
        toy(1.0).read_parameters(given)
    assert str(refusal.value) == sentence


@pytest.mark.parametrize(
    ("typed", "meant"), [("sptdd", "sptd"), ("loud", "loudness"), ("timbre_consist", "timbre_consist")]
)
def test_an_unknown_metric_is_refused_with_the_closest_name(typed: str, meant: str) -> None:
    with pytest.raises(BadInput, match=f"no metric '{typed}'; did you mean '{meant}.*podeval metrics list"):
        catalogue.get(typed)


def test_a_name_like_no_other_gets_no_guess() -> None:
    with pytest.raises(BadInput, match="no metric 'xyzzy'; `podeval metrics list`"):
        catalogue.get("xyzzy")


def test_the_hub_s_name_of_a_metric_is_understood() -> None:
    assert catalogue.get("podeval/sptd") is catalogue.get("sptd")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_value_that_is_no_number_never_leaves_as_a_score(value: float) -> None:
    result = toy(value)({"text": "words"})
    assert result.cause == "ours"
    assert "toy computed" in result.reason


def test_a_value_without_meaning_may_be_none() -> None:
    assert toy(None)({"text": "words"}) == Score(values={"toy": None})


def test_what_cannot_be_scored_is_the_system_s_and_a_missing_model_ours() -> None:
    assert toy(CannotScore("too short"))({"text": "words"}) == Unscored("too short", "system")
    assert toy(NoWords("no words"))({"text": "words"}) == Unscored("no words", "ours")
    missing = toy(ModelMissing("no weights; run `podeval models install`"))({"text": "words"})
    assert missing == Unscored("no weights; run `podeval models install`", "ours")


def test_an_error_of_the_code_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        toy(ZeroDivisionError())({"text": "words"})


def test_a_missing_input_is_named() -> None:
    with pytest.raises(BadInput, match="wer also needs the words that should be heard"):
        catalogue.get("wer")({"recording": object()})


def test_inputs_a_metric_does_not_know_are_ignored() -> None:
    assert toy(1.0)({"text": "words", "recording": object()}) == Score(values={"toy": 1.0})
