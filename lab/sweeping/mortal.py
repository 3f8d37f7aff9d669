"""Start a command that does not outlive the process that asks for it, however that one ends.

    python -m lab.sweeping.mortal PARENT COMMAND ...

A run that went on without its sweep would hold its run directory against the next start. The kernel keeps the promise
over exec (Linux, PR_SET_PDEATHSIG); on another system a run is ended only by a sweep that can still say so.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(parent: int, command: list[str]) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    # It may have died before the promise was made.
    if os.getppid() == parent:
        os.execv(command[0], command)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
