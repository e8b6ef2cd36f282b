"""Listening tests: `Listening` takes listeners through them, `results` says what they gave."""

from podeval.listening.service import Listening, Shown
from podeval.listening.sessions import AnsweredPage, SessionProgress

__all__ = [
    "AnsweredPage",
    "Listening",
    "SessionProgress",
    "Shown",
    "box_plots",
    "designs",
    "moderation",
    "results",
    "session_results",
    "stimuli",
    "webmushra",
]
