"""Small networks in whole numbers: gradients of sampled rows, and how often a network is right."""
