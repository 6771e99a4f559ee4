"""Post-processing: from noisy integers to estimates, standard errors and intervals.

Nothing here can reach data or noise.
"""
