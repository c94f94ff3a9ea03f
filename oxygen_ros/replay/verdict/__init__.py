"""Whether a run passes: rules on its measures, and a comparison with an earlier run."""
