"""Program `tabletop_node`: see ``tabletop_robot``."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

EXIT_MISUSE = 2


def simulator_problem() -> str:
    """Why MuJoCo cannot be loaded, with what to do; empty when it can. It looks at MUJOCO_GL on import."""
    try:
        import mujoco  # noqa: F401
    except ModuleNotFoundError as error:
        return f"[sim.mujoco] {error}. Try: pip install 'mujoco>=3.17,<4'"
    except (ImportError, AttributeError, RuntimeError, OSError) as error:
        wanted, cause = os.environ.get("MUJOCO_GL", ""), f"{type(error).__name__}: {error}"
        return (
            f"[sim.gl] MUJOCO_GL is '{wanted}', which does not work here ({cause}). Try: unset MUJOCO_GL, or "
            "apt install libegl1 libegl-mesa0 libgl1-mesa-dri for egl, libosmesa6 for osmesa"
        )
    return ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tabletop until a signal ends it. Late imports: see ``oxygen_node``."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if problem := simulator_problem():
        print(problem, file=sys.stderr)
        return EXIT_MISUSE
    from oxygen_ros.ros.consumer_node import run_consumer
    from oxygen_ros.ros.tabletop_robot import TabletopNode

    return run_consumer(lambda options: TabletopNode(arguments=options), arguments)


if __name__ == "__main__":
    sys.exit(main())
