# %% [markdown]
# # Read a board honestly
#
# A board shows means. Whether one system is better than another depends on the differences, their intervals, and how
# many comparisons are made at once. The scores below, of three systems on twelve items, are invented, so the truth is
# known: *alder* and *birch* are equally good, and *cedar* is better by 0.15.

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
# ## Every mean has an interval

# %%
for system, values in scores.items():
    interval = mean_ci(list(values.values()), items)
    print(f"{system}: {interval.mean:.2f} [{interval.low:.2f}, {interval.high:.2f}]")

# %% [markdown]
# The intervals overlap because items differ far more than systems do. This does not mean that the systems are equally
# good: all of them were measured on the same items, so their scores can be compared item by item.
#
# ## Differences are paired

# %%
for other in ("birch", "cedar"):
    difference = paired_difference(scores[other], scores["alder"])
    print(f"{other} − alder: {difference.mean:+.2f} [{difference.low:+.2f}, {difference.high:+.2f}]")

# %% [markdown]
# ## Ranks are ranges
#
# A board gives each system the best and the worst rank that the data allow, corrected for the number of pairs. Two
# systems that the data cannot distinguish share ranks; this is not a mistake in the board.

# %%
ranks = paired_bootstrap_ranks(scores, higher_is_better=True)
for system, (best, worst) in ranks.items():
    print(f"{system}: place {best} to {worst}" if best != worst else f"{system}: place {best}")

# %% [markdown]
# ## What else to look at
#
# - **Protocol**: numbers measured in different ways never share a table; the protocol's id distinguishes them.
# - **Unscored**: a system must not gain by failing on hard items. Look at `scored`, and at the reasons.
# - **Controls**: every board includes silence, a repeated sentence and shuffled voices; if rhythm is measured, it also
#   includes random gaps and an uneven pace. A metric that gives good scores to these controls does not answer its
#   question.
# - **Accuracy first**: beautiful speech with the wrong words is not a reading of the script. A system's speech is
#   ranked only if its word error rate is below the benchmark's ceiling.
#
# See also [what scores can and cannot tell](../reading-scores.md) and [how ranks are computed](../decisions/ranks.md).
