"""Pictures of synthetic data and of answers from released tables."""
