"""Questions whose answers are posteriors, and single draws of one."""
