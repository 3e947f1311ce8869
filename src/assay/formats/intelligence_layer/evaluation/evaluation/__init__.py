"""The second step: outputs to results, one for each example."""
