"""Single measurements beside the workloads: decode steps, memory, operators, deadlines, scaling."""
