"""The neural networks a measurement needs: one interface per job, one file per implementation, one registry."""
