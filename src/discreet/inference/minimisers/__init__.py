"""Results of perturbed minimisers."""
