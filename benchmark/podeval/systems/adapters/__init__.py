"""Adapters that make submitted models speak, write or answer: one per task, isolated from everything else.

`find_adapter` finds the adapter of a task; `python -m podeval.systems.adapters.generate JOB.json` runs a job with it.
The job lists everything that an adapter may read and write (`podeval.systems.adapters.adapter`), so it can run in
isolation.
"""
