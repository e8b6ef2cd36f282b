"""What programs and language models ask a site: systems, numbers, comparisons, metrics, benchmarks, documentation."""

from podeval.questions.board import Questions
from podeval.questions.documentation import Documentation, Passage

__all__ = ["Documentation", "Passage", "Questions"]
