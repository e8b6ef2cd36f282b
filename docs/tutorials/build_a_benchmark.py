# %% [markdown]
# # Build your own benchmark
#
# A benchmark is data: its items, the task that a system must perform, and the metrics that answer each question. This
# page defines a benchmark of two items, checks it, and scores one system on it.

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
# A mistake in an item is reported immediately, with the name of the field:

# %%
try:
    Item.model_validate({"id": "no spaces!", "topic": "x", "language": "fr", "voices": 0})
except ValueError as error:
    print(error)

# %% [markdown]
# ## The benchmark's dimensions
#
# A dimension is a group of columns on the board. `main` is the column by which systems are ranked.

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
# ## Score a system
#
# `outputs` contains the recordings of one system, by item. The intervals here treat items as independent; a larger
# benchmark puts items that depend on each other into one cluster, such as all items on one topic.

# %%
import podeval

outputs = {"ocean": "audio/dialogue.mp3", "dashwood": "audio/reader.mp3"}
table = podeval.score([outputs[item.id] for item in items], text=[item.script for item in items], metrics=wanted)
print(table)
for dimension in dimensions:
    interval = table[dimension.main]
    print(f"{dimension.title}: {interval.mean:.2f} over {interval.n} items")

# %% [markdown]
# To get a board, ranks and resumable runs, as the built-in benchmarks have, put these definitions in a file in
# `podeval/benchmarks/` that ends with `BENCHMARK = Benchmark(...)`: CONTRIBUTING.md describes the four steps. To create
# more material, see [constructing datasets](../constructing-datasets.md).
