# %% [markdown]
# # Score your audio
#
# One line scores a recording with every metric whose inputs are there. `audio/dialogue.mp3` is 21 s of two synthetic
# voices; put the path of your own file in its place.

# %%
import podeval

scores = podeval.score("audio/dialogue.mp3", metrics="dnsmos,loudness")
print(scores)

# %% [markdown]
# Each row has a value, its unit, an arrow (↑ higher is better, ↓ lower, ↔ best in a range), what recordings of people
# and good systems reach, and a word: *low*, *usual* or *high* beside those. Here two metrics are asked for, to be
# quick; without `metrics` all are scored that can be.
#
# ## With the words
#
# The script says what should be heard and who speaks: it gets word errors and the distance between the voices.

# %%
scores = podeval.score("audio/dialogue.mp3", text="audio/dialogue.json", metrics="wer,dnsmos,sptd,loudness")
print(f"{scores['wer']:.3f} of the words are wrong, the voices are {scores['sptd']:.2f} apart")

# %% [markdown]
# A second call is nearly free: results are kept. What could not be scored has a reason, and is never 0:

# %%
print(scores.unscored or "everything was scored")

# %% [markdown]
# ## Over time
#
# Metrics that look through a window show where something happens. In green lies what people and good systems reach.
#
# ![DNSMOS over time](pictures/dnsmos.svg)

# %%
scores.plot("dnsmos.ovrl").save("pictures/dnsmos.svg")

# %% [markdown]
# ## As a table, as a file
#
# `to_pandas()` has a row a value. `report` writes one HTML file with a player, the transcript, the timelines and the
# protocols, which can be sent to anybody.

# %%
print(scores.to_pandas()[["metric", "key", "value", "word"]].head())
scores.report("report.html")

# %% [markdown]
# ## Many files
#
# A folder or a list gives a row a file, and the mean with its 95 % interval.

# %%
table = podeval.score(["audio/dialogue.mp3", "audio/reader.mp3"], metrics="dnsmos,loudness")
print(table)

# %% [markdown]
# The same from the shell: `podeval score audio/dialogue.mp3 --text audio/dialogue.json --out report.html`.
