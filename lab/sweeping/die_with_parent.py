"""Starts a command that does not outlive its parent process, however the parent ends.

    python -m lab.sweeping.die_with_parent PARENT COMMAND ...

A run that outlived its sweep would keep its run directory locked when the sweep is started again. On Linux, the kernel
kills the command when the parent dies, even after exec (PR_SET_PDEATHSIG). On other systems, a run ends only if the
sweep is still able to end it.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(parent: int, command: list[str]) -> None:
    """Replaces this process by `command`, which dies with the process `parent`. Exits if `parent` has died already."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    # The parent may have died before the request was made.
    if os.getppid() == parent:
        os.execv(command[0], command)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
