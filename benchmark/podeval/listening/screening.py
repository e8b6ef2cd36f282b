"""The headphone check: six sounds with three intervals each, which can be distinguished only over headphones.

`antiphase` (Woods, Siegel, Traer and McDermott 2017): there are three tones of 200 Hz, one of which is 6 dB softer and
    another in antiphase between the ears; the question is which tone is the softest. Over loudspeakers, the tone in
    antiphase cancels out in the air and seems to be the softest, so most listeners without headphones fall below
    chance. `huggins` (Milne et al. 2021): there are three noises, one of which contains a faint tone of 600 Hz that
    exists only as a phase difference between the ears and disappears over loudspeakers.

A listener with at least five of six correct answers passes; the probability of passing by guessing is 13/729, or 1.8 %.
The sounds and the correct answers follow from the seed of the session; every sound is a single file, and all files have
the same size, regardless of which interval is correct.

At the end, a listener receives a completion code and the address for returning to their panel.

    completion:
      code: C1A2B3C4            # of the study; without a code, every listener gets an individual one
      screened_out: C9Z8Y7X6    # for listeners whom the headphone check turns away
      panel: prolific           # or an address of another panel, on a host that the design names:
      # address: https://panel.example/end?token={code}
      # hosts: [panel.example]
      seconds: 10

The address is built only from the design, never from a request, so links cannot lead anywhere else.
"""

import io
import random
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from podeval.benchmarks.records import FactSheet
from podeval.errors import BadInput
from podeval.texts import write_sentence

PAGE = "headphones"
"""Id of the page with the check; no item may have this id."""

TRIALS, INTERVALS, NEEDED = 6, 3, 5
"""Number of sounds, number of intervals in each sound, and number of correct answers needed to pass."""

TRIAL_NAMES = tuple(f"trial_{number}" for number in range(1, TRIALS + 1))
"""Names of the trials, in order."""

SECONDS = 4.0
"""Length of every sound in seconds."""

_RATE = 24_000
_INTERVAL, _GAP, _RAMP = 1.0, 0.5, 0.1
_LEVEL = 0.05
_TONE, _SOFTER = 200.0, 10 ** (-6 / 20)
_PITCH, _BAND = 600.0, 0.06

Samples = NDArray[np.float64]

PANELS = {"prolific": "https://app.prolific.com/submissions/complete?cc={code}"}
"""Address at each panel to which listeners return."""

_ADDRESS = r"^https://[!-\[\]-~]+$"

Code = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
Host = Annotated[str, Field(pattern=r"^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$", max_length=253)]


class HeadphoneCheck(FactSheet):
    """A design's headphone check, and the consequence for listeners who fail it.

    `exclude`: these listeners continue, but their marks do not count. `flag`: their marks count, and the results name
    these listeners. `end`: the test ends for them immediately, with the code for screened-out listeners.
    """

    kind: Literal["antiphase", "huggins"] = "antiphase"
    failed: Literal["exclude", "flag", "end"] = "exclude"


def find_right_answers(seed: int) -> list[int]:
    """Return the number of the correct interval in each trial, from 1."""
    return [roles.index(0) + 1 for roles in _draw_roles(seed)]


def read_answer(answer: Mapping[str, Any]) -> list[int]:
    """Read a listener's answer to the check, `{"trial_1": 1 to 3, …}`.

    Raises:
        BadInput: a trial is missing or unknown, or its answer is not the number of an interval.
    """
    if not isinstance(answer, Mapping) or set(answer) != set(TRIAL_NAMES):
        raise BadInput(write_sentence("headphone-check-asks", names=", ".join(TRIAL_NAMES)))
    for name, value in answer.items():
        if isinstance(value, bool) or value not in range(1, INTERVALS + 1):
            raise BadInput(write_sentence("headphone-check-form", name=name, most=INTERVALS))
    return [int(answer[name]) for name in TRIAL_NAMES]


def count_right(answers: Mapping[str, float], seed: int) -> int:
    """Count the correct answers."""
    return sum(answers.get(name) == right for name, right in zip(TRIAL_NAMES, find_right_answers(seed), strict=True))


def synthesise(kind: str, seed: int, trial: int) -> bytes:
    """Synthesise the sound of a trial (numbered from 0) as a WAV file; all files have the same size and header."""
    import soundfile

    chance = np.random.default_rng([seed, trial])
    silence = np.zeros((round(_GAP * _RATE), 2))
    parts = []
    for role in _draw_roles(seed)[trial]:
        interval = _make_tone(role, chance) if kind == "antiphase" else _make_noise(role, chance)
        parts += [interval * _ramp()[:, None], silence]
    out = io.BytesIO()
    soundfile.write(out, np.concatenate(parts[:-1]), _RATE, "PCM_16", format="WAV")
    return out.getvalue()


def _draw_roles(seed: int) -> list[list[int]]:
    """Return, for each trial, the roles of its intervals in order; role 0 is the correct answer."""
    chance = random.Random(f"headphones:{seed}")  # noqa: S311 - reproducible by its recorded seed
    return [chance.sample(range(INTERVALS), INTERVALS) for _ in range(TRIALS)]


def _make_tone(role: int, chance: np.random.Generator) -> Samples:
    """Return a tone: softer in role 0, and in antiphase between the ears in role 1."""
    time = np.arange(round(_INTERVAL * _RATE)) / _RATE
    tone = _LEVEL * np.sqrt(2) * np.sin(2 * np.pi * (_TONE * time + chance.random()))
    return np.column_stack([tone, -tone if role == 1 else tone]) * (_SOFTER if role == 0 else 1.0)


def _make_noise(role: int, chance: np.random.Generator) -> Samples:
    """Return noise that is the same in both ears; in role 0, its phase in the right ear turns once around `_PITCH`."""
    count = round(_INTERVAL * _RATE)
    spectrum = np.fft.rfft(chance.normal(0, _LEVEL, count))
    frequencies = np.fft.rfftfreq(count, 1 / _RATE)
    turn = np.clip((frequencies / _PITCH - 1 + _BAND) / (2 * _BAND), 0, 1) if role == 0 else np.zeros(len(frequencies))
    both = [np.fft.irfft(spectrum, count), np.fft.irfft(spectrum * np.exp(2j * np.pi * turn), count)]
    return np.column_stack(both)


def _ramp() -> Samples:
    rising = (1 - np.cos(np.pi * np.arange(round(_RAMP * _RATE)) / round(_RAMP * _RATE))) / 2
    flat = np.ones(round(_INTERVAL * _RATE) - 2 * len(rising))
    return np.concatenate([rising, flat, rising[::-1]])


class Completion(FactSheet):
    """The end of a test: the codes, and the panel to which the listener returns after a few seconds."""

    code: Code | None = None
    screened_out: Code | None = None
    panel: Literal["prolific"] | None = None
    address: Annotated[str, Field(pattern=_ADDRESS, max_length=1000)] | None = None
    hosts: tuple[Host, ...] = Field(default=(), max_length=20)
    seconds: Annotated[int, Field(ge=5, le=120)] = 10

    @model_validator(mode="after")
    def _leads_where_it_says(self) -> Self:
        if self.panel and (self.address or self.hosts):
            raise ValueError(f"{self.panel} has its own address; give either a panel, or an address and its hosts")
        if self.panel and self.code is None:
            raise ValueError(f"{self.panel} identifies its listeners by the study's code; add this code as `code`")
        if self.address is None:
            return self
        address = self.address
        try:
            parts = urlsplit(address)
            host, port = parts.hostname, parts.port
        except ValueError:
            raise ValueError(f"{address} is not a valid web address") from None
        return self.refuse_if(
            (
                parts.netloc != host or port is not None or host not in self.hosts,
                f"{address} leads to {parts.netloc}, which is not among the hosts that the design names",
            ),
            (
                address.count("{code}") != 1 or address.count("{") != 1 or address.count("}") != 1,
                f"{address} must contain {{code}} once, and no other braces",
            ),
        )

    def code_for(self, own: str, screened_out: bool) -> str:
        """Return the code for a listener: the study's code, or an individual code if the study has none."""
        return (self.screened_out if screened_out else self.code) or own

    def address_for(self, code: str) -> str | None:
        """Return the address to which the listener returns with this code; None if the design does not name a panel."""
        template = PANELS[self.panel] if self.panel else self.address
        return template.replace("{code}", code) if template else None
