"""dp.mwem: its workload, its questions, its forecast."""
