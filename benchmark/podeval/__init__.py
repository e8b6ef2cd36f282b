"""podeval: the benchmark for long-form spoken audio made by machines.

Importing it is light: no torch, no gradio, no network. What is heavy is imported where it is used.
"""

__version__ = "0.1.0"
