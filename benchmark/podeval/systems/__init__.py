"""Systems that speak: their interface, the built-in baselines, and the control systems that guard the board."""

__all__ = [
    "adapters",
    "python_file",
    "registry",
    "servers",
    "speech",
    "submission",
    "submission_reading",
]
