# %% [markdown]
# # Read a board honestly
#
# A board shows means. Whether one system is better than another is a question about differences, intervals and how many
# comparisons are made at once. Here are three systems on twelve items, made up so that we know the truth: *alder* and
# *birch* are alike, *cedar* is better by 0.15.

# %%
import numpy as np

from podeval.stats.intervals import mean_ci, paired_bootstrap_ranks, paired_difference

chance = np.random.default_rng(3)
items = [f"item {number}" for number in range(12)]
difficulty = chance.normal(3.2, 0.3, len(items))
truth = {"alder": 0.0, "birch": 0.0, "cedar": 0.15}
scores = {
    system: dict(zip(items, difficulty + shift + chance.normal(0, 0.08, len(items)), strict=True))
    for system, shift in truth.items()
}

# %% [markdown]
# ## The mean has an interval

# %%
for system, values in scores.items():
    interval = mean_ci(list(values.values()), items)
    print(f"{system}: {interval.mean:.2f} [{interval.low:.2f}, {interval.high:.2f}]")

# %% [markdown]
# The intervals overlap, as items differ far more than systems. That does not say that the systems are alike: all of
# them had the same items.
#
# ## Differences are paired

# %%
for other in ("birch", "cedar"):
    difference = paired_difference(scores[other], scores["alder"])
    print(f"{other} − alder: {difference.mean:+.2f} [{difference.low:+.2f}, {difference.high:+.2f}]")

# %% [markdown]
# ## Ranks are ranges
#
# A board gives each system the best and the worst place that the data allows, corrected for the number of pairs. Two
# that cannot be told apart share their places; that is no fault of the board.

# %%
ranks = paired_bootstrap_ranks(scores, higher_is_better=True)
for system, (best, worst) in ranks.items():
    print(f"{system}: place {best} to {worst}" if best != worst else f"{system}: place {best}")

# %% [markdown]
# ## What to look for besides
#
# - **Protocol**: numbers that came about differently are never in one table; the protocol's id says so.
# - **Unscored**: a system that fails on hard items must not gain by it. Look at `scored`, and at the reasons.
# - **Controls**: silence, one sentence repeated and shuffled voices stand on every board, and where rhythm is measured
#   gaps drawn by chance and an uneven pace. A metric that ranks them high is not for that question.
# - **Accuracy first**: beautiful speech of other words is no reading. Ranks of speech need a word error rate under
#   the ceiling.
#
# More: [what scores can and cannot tell](../reading-scores.md), [how places come about](../decisions/ranks.md).
