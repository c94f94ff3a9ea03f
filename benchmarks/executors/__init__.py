"""The ways of running one workload that are compared. All take the same jobs and sample greedily."""
