"""One system on one benchmark: plan, generate, measure, aggregate; resumable at any point."""
