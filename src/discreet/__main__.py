"""``python -m discreet`` is the `discreet` command."""

from discreet.cli import main

main()
