# %% [markdown]
# # Score your audio
#
# One line scores a recording with every metric whose inputs are available. `audio/dialogue.mp3` is 21 s of two
# synthetic voices; replace it with the path of your own file.

# %%
import podeval

scores = podeval.score("audio/dialogue.mp3", metrics="dnsmos,loudness")
print(scores)

# %% [markdown]
# The output starts with a verdict of a sentence or two (`scores.verdict`), followed by each defect with its time and
# the values in groups. A row has a value, its unit, an arrow (↑ higher is better, ↓ lower, ↔ best in a range), a label
# that compares the value with podcasts of people and good systems (*good*, *usual* or *poor*), and the usual range.
# This call names two metrics to save time; without `metrics`, podeval computes every metric it can and shows about ten
# values.
#
# ## With the script
#
# A script contains the words and their speakers. With it, podeval also measures word errors and the distance between
# the voices.

# %%
scores = podeval.score("audio/dialogue.mp3", text="audio/dialogue.json", metrics="wer,dnsmos,sptd,loudness")
print(f"{scores['wer']:.1%} of the words are wrong, the voices are {scores['sptd']:.2f} apart")

# %% [markdown]
# A second call costs almost nothing, because results are stored. A metric without a score has a reason, and is never 0:

# %%
print(scores.unscored or "everything was scored")

# %% [markdown]
# ## Over time
#
# Metrics computed over a sliding window show where something happens. The green band is the range that people and good
# systems reach.
#
# ![DNSMOS over time](pictures/dnsmos.svg)

# %%
scores.plot("dnsmos.ovrl").save("pictures/dnsmos.svg")

# %% [markdown]
# ## As a table or a file
#
# `to_pandas()` gives one row per value. `report` writes a single HTML file with a player, the transcript, the timelines
# and the protocols, which you can send to anyone.

# %%
print(scores.to_pandas()[["metric", "key", "value", "word"]].head())
scores.report("report.html")

# %% [markdown]
# ## Many files
#
# For a folder or a list, the result has one row per file, and the mean with its 95 % interval.

# %%
table = podeval.score(["audio/dialogue.mp3", "audio/reader.mp3"], metrics="dnsmos,loudness")
print(table)

# %% [markdown]
# On the command line, run `podeval score audio/dialogue.mp3 --text audio/dialogue.json --out report.html`.
