"""``python -m discreet`` is the `discreet` command."""

from discreet.cli.commands import main

main()
