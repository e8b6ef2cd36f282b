# %% [markdown]
# # Score your audio
#
# One line scores a recording with every metric whose inputs are available. `audio/dialogue.mp3` is a 21 s dialogue
# between two synthetic voices; replace this path with the path of your own file.

# %%
import podeval

scores = podeval.score("audio/dialogue.mp3", metrics="dnsmos,loudness")
print(scores)

# %% [markdown]
# The output starts with a verdict of one or two sentences (`scores.verdict`), followed by each defect with its time,
# and by the values in groups. A row contains a value, its unit, an arrow (↑ higher is better, ↓ lower, ↔ best in a
# range), a label (*good*, *usual* or *poor*) that compares the value with those of podcasts by people and by good
# systems, and the usual range. This call requests two metrics to save time; without `metrics`, podeval computes every
# metric it can and shows about ten values.
#
# ## With the script
#
# A script contains the words and their speakers. With a script, podeval also measures word errors and the distance
# between the voices.

# %%
scores = podeval.score("audio/dialogue.mp3", text="audio/dialogue.json", metrics="wer,dnsmos,sptd,loudness")
print(f"{scores['wer']:.1%} of the words are wrong, the voices are {scores['sptd']:.2f} apart")

# %% [markdown]
# A second call costs almost nothing, because results are stored. If a metric gives no score, the reason is stated; the
# score is never set to 0:

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
# `to_pandas()` gives one row per value. `report` writes a single HTML file that you can send to anyone; it contains a
# player, the transcript, the timelines and the protocols.

# %%
print(scores.to_pandas()[["metric", "key", "value", "word"]].head())
scores.report("report.html")

# %% [markdown]
# ## Many files
#
# For a folder or a list of files, the result contains one row per file, and the means with their 95 % intervals.

# %%
table = podeval.score(["audio/dialogue.mp3", "audio/reader.mp3"], metrics="dnsmos,loudness")
print(table)

# %% [markdown]
# On the command line, run `podeval score audio/dialogue.mp3 --text audio/dialogue.json --out report.html`.
