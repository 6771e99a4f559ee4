"""Tables, synthetic data, holdouts, and functions on parts of the data.

Each file is loaded when a question first needs it.
"""
