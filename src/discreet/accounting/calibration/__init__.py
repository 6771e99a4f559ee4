"""From a spend to noise: the least that keeps the promise."""
