"""What is loaded only for data that come in batches, or that are kept on disk."""
