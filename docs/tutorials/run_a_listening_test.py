# %% [markdown]
# # Run a listening test
#
# A design describes a test: its systems, items and questions. podeval assigns pages to listeners, stores each answer
# before acknowledging it, screens the listeners, and reports means with intervals. On this page, the two systems are
# one recording with and without hiss, and the listeners are simulated; real listeners open an invitation link and take
# the test in a browser (`podeval serve`).

# %%
from pathlib import Path

import numpy as np
import soundfile

from podeval.listening.designs import read_design
from podeval.listening.results import summarise
from podeval.listening.service import Listening
from podeval.store.database import Database

samples, rate = soundfile.read("audio/reader.mp3")
folder = Path("listening").resolve()
folder.mkdir(exist_ok=True)
for number, part in enumerate(np.array_split(samples, 3)):
    hiss = 0.03 * np.random.default_rng(number).standard_normal(len(part))
    soundfile.write(folder / f"clean_{number}.wav", part, rate)
    soundfile.write(folder / f"noisy_{number}.wav", part + hiss, rate)

# %% [markdown]
# ## The design
#
# You can also write the design in a YAML file; `podeval listening check design.yaml` shows what a listener will hear
# and how long the test takes.

# %%
design = read_design(
    {
        "kind": "mos",
        "id": "clarity",
        "title": "How clear is it?",
        "systems": ["clean", "noisy"],
        "scales": ["OVL"],
        "listeners": 8,
        "items": [
            {
                "id": f"sentence_{number}",
                "stimuli": {
                    system: {"audio": str(folder / f"{system}_{number}.wav"), "seconds": 2.4}
                    for system in ("clean", "noisy")
                },
            }
            for number in range(3)
        ],
    }
)

# %% [markdown]
# ## Listeners
#
# Pages show letters, never the names of systems. These simulated listeners differ in how they perceive noise, and none
# of them knows which system is playing.

# %%
chance = np.random.default_rng(0)


def hear(listening: Listening, session: str, number: int) -> float:
    """Return a listener's rating for a page: 5 for silence between the words, less for noise."""
    (letter,) = listening.show(session, number).stimuli
    sound, _ = soundfile.read(listening.audio(session, number, letter))
    floor = np.sort(np.abs(sound))[: len(sound) // 5].mean()
    return float(np.clip(round(4.4 - 300 * floor + chance.normal(0, 0.6)), 1, 5))


Path("listening/test.db").unlink(missing_ok=True)
with Database("listening/test.db") as database:
    listening = Listening(database)
    listening.create(design)
    for listener in range(8):
        begun = listening.start("clarity", f"listener {listener}")
        for number in range(begun.pages):
            listening.save(begun.session, number, {"OVL": hear(listening, begun.session, number)}, seconds=12)
        listening.finish(begun.session)
    results = summarise(database, "clarity")

# %% [markdown]
# ## Results
#
# The results contain means with 95 % intervals, clustered by listener, and list any excluded listeners with the
# reasons.

# %%
for row in results.rows:
    print(row)
for remark in results.remarks:
    print(remark)

# %% [markdown]
# [Listening tests](../listening-tests.md) describes the kinds of test, the screening of listeners, and webMUSHRA.
