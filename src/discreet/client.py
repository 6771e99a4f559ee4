"""What ships in an app: specifications and reports of local privacy.

The code is `discreet.trusted.extensions.local.client`, which says what it needs and promises.
"""

from discreet.trusted.extensions.local.client import *  # noqa: F403 (a door: all of its names)
from discreet.trusted.extensions.local.client import __all__ as __all__
