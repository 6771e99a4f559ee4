"""Regressions: procedures of several releases under one spend."""

from discreet.models import forecast as forecast  # tells dp.preview how to forecast them
