"""Adapters that make submitted models speak, write or answer: one per task, run separately from everything else.

`find_adapter` finds the adapter of a task; `python -m podeval.systems.adapters.generate JOB.json` runs it. The job
states everything that an adapter may read and write (`podeval.systems.adapters.adapter`), so that it can be isolated.
"""
