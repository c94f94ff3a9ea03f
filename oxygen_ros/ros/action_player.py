"""Program `action_player`: see ``player_node``."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the player until a signal ends it.

    Until the node has taken over, Ctrl-C ends the process at once and without a traceback: hence the late
    import.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from oxygen_ros.ros.player_node import ActionPlayer
    from oxygen_ros.ros.process import run_node

    return run_node(lambda options: ActionPlayer(arguments=options), arguments)


if __name__ == "__main__":
    sys.exit(main())
