"""podeval: the benchmark for long-form spoken audio made by machines.

    import podeval

    scores = podeval.score("episode.wav", text="script.json")
    print(scores)

Importing podeval is cheap: the import loads neither torch nor gradio, and does not use the network. Heavy modules are
imported where they are used.
"""

from typing import TYPE_CHECKING, Any

from podeval.version import __version__

if TYPE_CHECKING:
    from podeval.measuring.engine import Scores, ScoreTable, measure, score
    from podeval.metrics.standing import list_metrics

__all__ = ["ScoreTable", "Scores", "__version__", "list_metrics", "measure", "score"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Import one of the public names above when it is first used."""
        if name not in __all__:
            raise AttributeError(f"module 'podeval' has no attribute {name!r}")
        from importlib import import_module

        home = "metrics.standing" if name == "list_metrics" else "measuring.engine"
        return getattr(import_module(f"podeval.{home}"), name)


def __dir__() -> list[str]:
    """List the public names above, including those that have not been imported yet."""
    return sorted({*globals(), *__all__})
