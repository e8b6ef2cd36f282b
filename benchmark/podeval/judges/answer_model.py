"""Base of all answers from a judge: extra keys are ignored, and values are never adjusted to fit."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field


class JudgeAnswer(BaseModel):
    """Base class of the answers that prompts ask for."""

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)


def _half_step(score: float) -> float:
    if score * 2 != round(score * 2):
        raise ValueError(f"scores go in steps of 0.5, so {score} is none")
    return score


HalfStep = Annotated[
    float,
    Field(ge=1, le=5, json_schema_extra={"enum": [step / 2 for step in range(2, 11)]}),
    AfterValidator(_half_step),
]
"""1 to 5 in steps of one half, which the schema lists, so that an endpoint that keeps to it can give no other."""


def _grade(score: float) -> float:
    if score not in (0, 0.5, 1):
        raise ValueError(f"an item is met (1), met in part (0.5) or not met (0), never {score}")
    return score


Grade = Annotated[float, AfterValidator(_grade), Field(json_schema_extra={"enum": [0, 0.5, 1]})]
"""0 for not met, 0.5 for met in part, 1 for met."""
