"""How a system comes to podeval: the submission document, read with bounds and checked in words."""

from podeval.systems.submission import Submission
from podeval.systems.submission_reading import BadDocument, load, load_all, parse, parse_form

__all__ = ["BadDocument", "Submission", "load", "load_all", "parse", "parse_form"]
