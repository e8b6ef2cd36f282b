import os
import random
from collections.abc import Mapping
from typing import Any

import pytest

from podeval.metrics import catalogue
from podeval.metrics.catalogue import make_protocol
from podeval.metrics.score import Protocol
from podeval.models import registry
from podeval.models.profiles import MEASURING

GENERATION = {"track": "voice", "strategy": "whole", "capture": "file"}
ALL_INPUTS = ("recording", "script", "reference_text")

PROGRAM = """
from podeval.metrics import catalogue
from podeval.metrics.catalogue import make_protocol
from podeval.models import registry
for name in catalogue.NAMES:
    metric = catalogue.get(name)
    models = registry.describe_identities(metric.needs, "embedded")
    print(make_protocol(metric, {}, ("recording", "script"), models, dataset="d@1", generation={"b": 1, "a": 2}).id)
"""


def sptd_protocol(**changes: Any) -> Protocol:
    metric = catalogue.get("sptd")
    given: dict[str, Any] = {
        "parameters": {},
        "given_inputs": ("recording",),
        "models": registry.describe_identities(metric.needs, "embedded"),
        "dataset": "podeval/real_pod@1",
        "generation": GENERATION,
    }
    return make_protocol(metric, **(given | changes))


def shuffled(data: Any) -> Any:
    """The same data with every mapping in another order."""
    if not isinstance(data, Mapping):
        return data
    keys = sorted(data, reverse=True)
    random.Random(1).shuffle(keys)
    return {key: shuffled(data[key]) for key in keys}


def test_the_id_names_metric_and_version() -> None:
    assert sptd_protocol().id.startswith(f"sptd@{catalogue.get('sptd').version}-")
    assert len(sptd_protocol().id) == len("sptd@1.0-") + 12


def test_the_id_is_the_same_in_every_process(run_python: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """In this process, and in another that puts the members of sets in another order."""
    another = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    elsewhere = run_python(PROGRAM, PYTHONHASHSEED=another)
    exec(PROGRAM, {})
    assert capsys.readouterr().out == elsewhere
    assert len(set(elsewhere.split())) == len(catalogue.NAMES)


def test_the_id_does_not_depend_on_the_order_of_anything() -> None:
    base = sptd_protocol(given_inputs=ALL_INPUTS)
    models = registry.describe_identities(catalogue.get("sptd").needs, "embedded")
    again = sptd_protocol(
        given_inputs=ALL_INPUTS[::-1], models=shuffled(models), generation=dict(reversed(GENERATION.items()))
    )
    assert again.id == base.id


def test_parameters_left_out_count_with_their_default() -> None:
    assert sptd_protocol(parameters={"variant": "paper"}).id == sptd_protocol().id


def with_another_hash(models: dict[str, Any]) -> dict[str, Any]:
    changed = dict(models)
    encoder = dict(changed["speaker_encoder"])
    encoder["sha256"] = dict.fromkeys(encoder["sha256"], "0" * 16)
    changed["speaker_encoder"] = encoder
    return changed


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"parameters": {"variant": "podeval"}}, id="parameter"),
        pytest.param({"given_inputs": ("recording", "script")}, id="optional input"),
        pytest.param(
            {"models": with_another_hash(registry.describe_identities(catalogue.get("sptd").needs, "embedded"))},
            id="weights",
        ),
        pytest.param({"models": registry.describe_identities(catalogue.get("sptd").needs, "reference")}, id="models"),
        pytest.param({"dataset": "podeval/real_pod@2"}, id="dataset"),
        pytest.param({"dataset": None}, id="no dataset"),
        pytest.param({"generation": GENERATION | {"strategy": "chunked"}}, id="generation"),
        pytest.param({"generation": {}}, id="nothing generated"),
    ],
)
def test_whatever_can_change_a_value_changes_the_id(changes: dict[str, Any]) -> None:
    assert sptd_protocol(**changes).id != sptd_protocol().id


def test_a_new_version_of_a_metric_changes_the_id() -> None:
    import dataclasses

    newer = dataclasses.replace(catalogue.get("sptd"), version="9.9")
    models = registry.describe_identities(newer.needs, "embedded")
    assert make_protocol(newer, {}, ("recording",), models).id != sptd_protocol(dataset=None, generation=None).id


def test_inputs_a_metric_has_no_use_for_leave_the_id_alone() -> None:
    assert sptd_protocol(given_inputs=("recording", "reference_text")).id == sptd_protocol().id


def test_the_same_weights_in_two_profiles_are_one_protocol() -> None:
    """Of a recording as it is: where every stem is scored, the profiles' separators differ."""
    metric = catalogue.get("dnsmos")

    def ids(source: str) -> set[str]:
        chosen = {"source": source}
        models = [registry.describe_identities(metric.jobs(chosen), profile) for profile in MEASURING]
        return {make_protocol(metric, chosen, ("recording",), found).id for found in models}

    assert len(ids("mix")) == 1
    assert len(ids("stem")) == len(MEASURING)


def test_the_protocol_as_data_holds_everything_the_id_is_made_of() -> None:
    protocol = sptd_protocol(given_inputs=("recording", "script"))
    data = protocol.to_json()
    assert data.pop("id") == protocol.id
    assert Protocol(**data | {"inputs": tuple(data["inputs"])}).id == protocol.id
