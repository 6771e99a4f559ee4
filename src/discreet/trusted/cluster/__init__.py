"""What is loaded only for data of a cluster: tasks map over batches, and integers are added."""
