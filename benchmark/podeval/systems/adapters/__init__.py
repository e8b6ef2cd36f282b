"""Submitted models are made to speak, write or answer here: one adapter a task, run apart from everything else.

`find_adapter` finds the adapter of a task; `python -m podeval.systems.adapters.generate JOB.json` runs it. What an
adapter may read and write is said by the job (`podeval.systems.adapters.adapter`), so that it can be closed in.
"""
