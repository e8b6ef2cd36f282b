"""What systems make, in one vocabulary: built-ins answer asks as every maker does, and a spoken turn is one thing."""

import json
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from podeval.runs.run_folder import Output
from podeval.systems import registry
from podeval.systems.adapters.adapter import Generated
from podeval.systems.speech import Ask, OutputMaker, SpokenTurn
from podeval.text.script import Turn

TURN = SpokenTurn(speaker="A", start=0, end=1.5, text="Hello.")


def ask(name: str, *texts: str) -> Ask:
    return Ask(id=name, script=tuple(Turn(f"S{n % 2}", text) for n, text in enumerate(texts)))


def test_a_built_in_makes_of_asks_what_it_says_of_their_scripts() -> None:
    system = registry.get("silence")
    maker: OutputMaker = system
    asks = [ask("one", "Good morning to everybody."), ask("two", "Yes.", "No, not at all, as I have told you before.")]
    speeches = maker.make(asks, 3)
    assert len(speeches) == 2
    for request, speech in zip(asks, speeches, strict=True):
        alone = system.speak(request.spoken(), seed=3)
        np.testing.assert_array_equal(speech.samples, alone.samples)
        assert (speech.rate, speech.turns, speech.details) == (alone.rate, alone.turns, alone.details)
    assert speeches[0].samples.shape != speeches[1].samples.shape  # type: ignore[union-attr]


@pytest.mark.parametrize("system", registry.list_systems(), ids=lambda system: system.name)
def test_every_built_in_is_given_one_item_at_a_time(system: Any) -> None:
    assert system.at_once == 1
    assert system.make([], 0) == []


def test_a_spoken_turn_is_the_same_in_a_log_and_in_a_run() -> None:
    data = {"speaker": "A", "start": 0.0, "end": 1.5, "text": "Hello."}
    assert json.loads(TURN.model_dump_json()) == data
    for document in (Generated(item="a", seed=0, turns=(TURN,)), Output(item="a", turns=(TURN,))):
        text = document.model_dump_json()
        assert json.loads(text)["turns"] == [data]
        assert list(json.loads(text)["turns"][0]) == ["speaker", "start", "end", "text"]
        assert type(document).model_validate_json(text).turns == (TURN,)


def test_a_spoken_turn_has_no_other_fields_and_stays_as_it_is() -> None:
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        Generated.model_validate({"item": "a", "seed": 0, "turns": [{**TURN.model_dump(), "voice": "x"}]})
    with pytest.raises(ValidationError, match="frozen"):
        TURN.speaker = "B"  # type: ignore[misc]
