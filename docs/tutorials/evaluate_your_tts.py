# %% [markdown]
# # Evaluate your TTS
#
# You can score anything that turns text into audio samples, without writing any files. Call your own model instead of
# `speak`; on this page, a recording stands in for a model, so that you can run the page anywhere.

# %%
import numpy as np
import soundfile

import podeval

samples, rate = soundfile.read("audio/reader.mp3")
TEXT = (
    "And Mister John Dashwood had then leisure to consider how much there might be prudently in his power "
    "to do for them."
)


def speak(text: str, noise: float) -> tuple[np.ndarray, int]:
    """Stand in for a model: return a clean recording, or one with hiss."""
    return samples + noise * np.random.default_rng(0).standard_normal(len(samples)), rate


# %% [markdown]
# ## One sample from each checkpoint

# %%
before = podeval.score(speak(TEXT, 0.02), text=TEXT, metrics="wer,dnsmos")
after = podeval.score(speak(TEXT, 0.0), text=TEXT, metrics="wer,dnsmos")
for name in ("wer", "dnsmos.ovrl"):
    print(f"{name}: {before[name]:.2f} before, {after[name]:.2f} after")

# %% [markdown]
# ## Many samples, compared pair by pair
#
# Two means may differ even if their intervals overlap. Both checkpoints spoke the same texts, so compare them text by
# text. If the interval of the mean difference includes 0, the data show no difference.

# %%
from podeval.stats.intervals import paired_difference

parts = np.array_split(samples, 4)


def hiss(level: float) -> list[tuple[np.ndarray, int]]:
    """Return the parts of the recording with noise added at a given level."""
    return [(part + level * np.random.default_rng(1).standard_normal(len(part)), rate) for part in parts]


loudness = [
    {str(number): one["loudness"] for number, one in enumerate(podeval.score(hiss(level), metrics="loudness"))}
    for level in (0.02, 0.0)
]
difference = paired_difference(*loudness)
print(f"the hiss adds {difference.mean:.2f} LU [{difference.low:.2f}, {difference.high:.2f}]")

# %% [markdown]
# ## At each checkpoint during training
#
# With Transformers, a callback generates and scores samples whenever a checkpoint is saved:
#
#     from podeval.integrations.transformers import ScoreCallback
#
#     Trainer(model, arguments, callbacks=[ScoreCallback(speak_samples, texts=TEXTS, metrics=["wer", "dnsmos"])])
#
# In your own training loop, `podeval.integrations.trackio.log_scores(podeval.score("samples/"), step=step)` logs the
# means.
#
# ## On a benchmark
#
# `podeval run` has a system speak a whole benchmark, measures the recordings, and ranks the system against other
# systems: see [running and resuming](../running.md).
