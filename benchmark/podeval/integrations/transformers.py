"""Score generated samples at each checkpoint of a training run with Transformers.

For example:

    from podeval.integrations.transformers import ScoreCallback

    def speak(model):
        return [(model.generate_speech(text), 24_000) for text in TEXTS]

    trainer = Trainer(model, arguments, callbacks=[ScoreCallback(speak, texts=TEXTS, metrics=["wer", "dnsmos"])])
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

import podeval
from podeval.errors import BadInput, PodevalError
from podeval.integrations.trackio import flatten_scores

Log = Callable[[dict[str, float], int], None]


class ScoreCallback(TrainerCallback):  # type: ignore[misc]
    """Generates samples with the current model, scores them, and writes the means to the training log.

    If the model fails to generate speech or the samples cannot be read, a line is logged (`podeval/failed`) and the
    training continues.

    Args:
        generate: function that takes the model and returns recordings in any form that `podeval.score` accepts.
        texts: the words that the recordings should contain, one text for each recording; None if no metric compares
            words.
        metrics: names of metrics; all by default.
        profile: the profile of the models that score.
        when: the time of scoring: each checkpoint (`save`) or each evaluation (`evaluate`).
        log: function that takes the values and the step, such as `lambda values, step: trackio.log(values, step=step)`;
            the trainer's `log_history` always contains the values.
        prefix: prefix of each name.
    """

    def __init__(
        self,
        generate: Callable[[Any], Sequence[Any]],
        *,
        texts: Sequence[Any] | None = None,
        metrics: Sequence[str] | None = None,
        profile: str = "embedded",
        when: Literal["save", "evaluate"] = "save",
        log: Log | None = None,
        prefix: str = "podeval",
    ) -> None:
        if when not in ("save", "evaluate"):
            raise BadInput(f"`when` must be save or evaluate, not {when!r}")
        self._generate, self._texts, self._metrics, self._profile = generate, texts, metrics, profile
        self._when, self._log, self._prefix = when, log, prefix
        self.last: podeval.ScoreTable | None = None
        """The scores of the last samples, for display or a report."""

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Score samples from the checkpoint."""
        if self._when == "save" and state.is_world_process_zero:
            self._score(state, kwargs.get("model"))

    def on_evaluate(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Score samples after an evaluation."""
        if self._when == "evaluate" and state.is_world_process_zero:
            self._score(state, kwargs.get("model"))

    def _score(self, state: TrainerState, model: Any) -> None:
        training = getattr(model, "training", False)
        try:
            if training:
                model.eval()
            samples = list(self._generate(model))
            self.last = podeval.score(samples, text=self._texts, metrics=self._metrics, profile=self._profile)
            values = flatten_scores(self.last, self._prefix)
        except (PodevalError, RuntimeError, ValueError) as error:
            print(f"podeval: the samples of step {state.global_step} could not be scored: {error}")
            values = {f"{self._prefix}/failed" if self._prefix else "failed": 1.0}
        finally:
            if training:
                model.train()
        state.log_history.append({**values, "step": state.global_step})
        if self._log is not None:
            self._log(values, state.global_step)
