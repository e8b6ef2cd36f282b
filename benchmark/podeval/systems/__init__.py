"""Speech systems: their interface, the built-in baselines, and the control systems that expose faulty metrics."""

__all__ = [
    "adapters",
    "python_file",
    "registry",
    "servers",
    "speech",
    "submission",
    "submission_reading",
]
