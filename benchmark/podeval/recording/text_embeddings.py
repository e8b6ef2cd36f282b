"""`EmbeddedText`: one text and the profile whose models embed it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from podeval.errors import ModelMissing
from podeval.models import registry
from podeval.models.interfaces import SentenceEncoder

_NAMES = {"en": "English", "zh": "Chinese"}


@dataclass(frozen=True)
class EmbeddedText:
    """One text, embedded by the models of a profile."""

    text: str
    profile: str = "embedded"

    def embeddings(self, parts: Sequence[str], language: str) -> NDArray[np.float32]:
        """Return sentence embeddings of parts of the text, shape (parts, dimensions), not normalised.

        Raises:
            ModelMissing: the profile has no sentence encoder for the language, or it is not installed.
        """
        encoder: SentenceEncoder = registry.load("sentence_encoder", self.profile)
        if language in encoder.languages:
            return encoder.encode(parts, language)
        able = [
            card
            for card in registry.CARDS
            if card.job == "sentence_encoder" and card.profiles and language in card.options["models"]
        ]
        hint = f"; --profile {able[0].profiles[0]} has {able[0].title}" if able else ""
        raise ModelMissing(
            f"{registry.get_card('sentence_encoder', self.profile).title}, the sentence encoder of the profile "
            f"{self.profile}, does not read {_NAMES.get(language, language)}{hint}"
        )
