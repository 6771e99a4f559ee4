"""Frozen descriptions of what is done to a statistic; sampler and accountant read the same object.

Additive noise is named here; all others in their own modules, so that a device that sends reports
loads little. `discreet.specs.registry` has the table of all.
"""
