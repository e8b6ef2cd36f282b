"""Listening tests: `Listening` guides listeners through a test, and `results` summarises their answers."""

from podeval.listening.service import Listening
from podeval.listening.sessions import AnsweredPage, SessionProgress, Shown

__all__ = [
    "AnsweredPage",
    "Listening",
    "SessionProgress",
    "Shown",
    "designs",
    "listener_pages",
    "planning",
    "questionnaire",
    "results",
    "session_results",
    "stimuli",
    "webmushra",
]
