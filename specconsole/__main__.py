"""`python -m specconsole`, and the command `specconsole`: takes Ctrl-C over before anything large is loaded."""

from __future__ import annotations

import signal
import sys


def main() -> int:
    """The command; returns its exit status."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # While modules load there is nothing to clean up, and an exception in the middle of an import shows its
        # traceback: the process just ends, as any other that is interrupted. `cli.main` takes interrupts from there.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        try:
            from specconsole.cli.main import main as run
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    else:  # ignored, as under nohup: stays so
        from specconsole.cli.main import main as run
    return run()


if __name__ == "__main__":
    sys.exit(main())
