# %% [markdown]
# # Build a benchmark of your own
#
# A benchmark is data: items, what is asked of a system, which metrics answer which question, and what belongs together.
# Here a benchmark with two items is written down, checked and used on one system.

# %%
import json
from pathlib import Path

from podeval.benchmarks.benchmark import Item

items = [
    Item.model_validate(
        {
            "id": "ocean",
            "topic": "Why the ocean is salty",
            "category": "Science",
            "language": "en",
            "voices": 2,
            "script": json.loads(Path("audio/dialogue.json").read_text()),
        }
    ),
    Item.model_validate(
        {
            "id": "dashwood",
            "topic": "A novel, read aloud",
            "category": "Fiction",
            "language": "en",
            "voices": 1,
            "script": "And Mister John Dashwood had then leisure to consider how much there might be "
            "prudently in his power to do for them.",
        }
    ),
]
print([(item.id, item.voices, len(item.script.turns)) for item in items])

# %% [markdown]
# What is wrong with an item is said at once, with its place:

# %%
try:
    Item.model_validate({"id": "no spaces!", "topic": "x", "language": "fr", "voices": 0})
except ValueError as error:
    print(error)

# %% [markdown]
# ## Its questions
#
# A dimension is a column group of the board: what a reader ranks by. `main` is the column that is sorted by.

# %%
from podeval.benchmarks.benchmark import Dimension, MetricUse
from podeval.metrics import catalogue

dimensions = [
    Dimension(
        name="accuracy",
        title="Accuracy",
        description="Whether every word of the script is heard.",
        tracks=("voice",),
        metrics=(MetricUse(name="wer", keys=("wer", "cer")),),
        main="wer.wer",
        needs_accurate_speech=False,
    ),
    Dimension(
        name="quality",
        title="Quality",
        description="How clean the speech sounds to listeners.",
        tracks=("voice",),
        metrics=(MetricUse(name="dnsmos", keys=("ovrl",)),),
        main="dnsmos.ovrl",
        needs_accurate_speech=True,
    ),
]
wanted = [use.name for dimension in dimensions for use in dimension.metrics]
print([catalogue.get(name).title for name in wanted])

# %% [markdown]
# ## A system on it
#
# The recordings of a system, by item. Intervals are of items here; in a larger benchmark they are clustered by what
# depends on each other, such as all items of one topic.

# %%
import podeval

outputs = {"ocean": "audio/dialogue.mp3", "dashwood": "audio/reader.mp3"}
table = podeval.score([outputs[item.id] for item in items], text=[item.script for item in items], metrics=wanted)
print(table)
for dimension in dimensions:
    interval = table[dimension.main]
    print(f"{dimension.title}: {interval.mean:.2f} over {interval.n} items")

# %% [markdown]
# To stand beside the built-in ones, with a board, ranks and resumable runs, the record goes into a file of
# `podeval/benchmarks/` that ends in `BENCHMARK = Benchmark(...)`: CONTRIBUTING.md says how in four steps. More
# material: [constructing datasets](../constructing-datasets.md).
