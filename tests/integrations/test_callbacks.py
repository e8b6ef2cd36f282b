"""Scores in the log of a training."""

from pathlib import Path
from typing import Any

import pytest

import podeval
from podeval.integrations.trackio import flatten_scores, log_scores

RATE = 16_000


@pytest.fixture(autouse=True)
def _own_cache(own_cache: Path) -> None:
    """Every test of this file."""


def test_values_and_means_have_names_as_trackers_take_them(speech_like: Any) -> None:
    one = podeval.score((speech_like, RATE), metrics="loudness")
    assert flatten_scores(one)["podeval/loudness.integrated"] == one["loudness"]
    many = podeval.score([(speech_like, RATE), (speech_like / 2, RATE)], metrics="loudness")
    flat = flatten_scores(many, prefix="")
    assert flat["loudness.integrated"] == many["loudness.integrated"].mean
    assert flat["unscored"] == 0.0


def test_scores_are_logged_to_trackio(speech_like: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    trackio = pytest.importorskip("trackio", reason="trackio is not installed")
    logged: list[tuple[dict[str, float], int | None]] = []
    monkeypatch.setattr(trackio, "log", lambda values, step=None: logged.append((values, step)))
    values = log_scores(podeval.score((speech_like, RATE), metrics="loudness"), step=7)
    assert logged == [(values, 7)]


@pytest.fixture(scope="module")
def transformers_callback() -> Any:
    pytest.importorskip("torch")
    return pytest.importorskip("podeval.integrations.transformers")


def test_samples_are_scored_at_each_checkpoint(transformers_callback: Any, speech_like: Any, tmp_path: Path) -> None:
    """By the Trainer itself, on a model of one weight."""
    import torch
    from transformers import Trainer, TrainingArguments

    class Louder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gain = torch.nn.Parameter(torch.tensor(0.5))

        def forward(self, x: Any, labels: Any) -> dict[str, Any]:
            return {"loss": ((self.gain * x - labels) ** 2).mean()}

    modes: list[bool] = []

    def speak(model: Any) -> list[Any]:
        modes.append(model.training)
        gain = float(model.gain.detach())
        return [(gain * speech_like, RATE), (0.5 * gain * speech_like, RATE)]

    logged: list[tuple[dict[str, float], int]] = []
    callback = transformers_callback.ScoreCallback(
        speak, metrics=["loudness"], log=lambda values, step: logged.append((values, step))
    )
    arguments = TrainingArguments(
        output_dir=str(tmp_path), max_steps=2, save_steps=1, report_to=[], disable_tqdm=True, use_cpu=True,
        per_device_train_batch_size=2, learning_rate=0.1, save_only_model=True,
    )  # fmt: skip
    data = [{"x": 1.0, "labels": 1.0}] * 4
    trainer = Trainer(Louder(), arguments, train_dataset=data, callbacks=[callback])
    trainer.train()
    history = [entry for entry in trainer.state.log_history if "podeval/loudness.integrated" in entry]
    assert [entry["step"] for entry in history] == [1, 2]
    assert [step for _, step in logged] == [1, 2]
    assert modes == [False, False]
    assert trainer.model.training
    assert len(callback.last) == 2


def test_a_model_that_fails_to_speak_does_not_end_the_training(
    transformers_callback: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    from transformers import TrainerState

    def speak(_: Any) -> list[Any]:
        raise RuntimeError("out of memory")

    state = TrainerState(global_step=3)
    transformers_callback.ScoreCallback(speak, metrics=["loudness"]).on_save(None, state, None, model=None)
    assert state.log_history == [{"podeval/failed": 1.0, "step": 3}]
    assert "step 3 could not be scored: out of memory" in capsys.readouterr().out
