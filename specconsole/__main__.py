"""`python -m specconsole`, and the command `specconsole`: takes Ctrl-C over before anything large is loaded."""

# What `signal` is made of: loading that module (it loads enum) is itself long enough to be interrupted in.
import _signal as signals  # type: ignore[import-not-found]
import sys


def main() -> int:
    """The command; returns its exit status."""
    if signals.getsignal(signals.SIGINT) is not signals.default_int_handler:
        # Ignored, as under nohup: stays so.
        from specconsole.cli.main import main as run

        return run()
    # While modules load there is nothing to clean up, and an exception in the middle of an import shows its traceback:
    # until `cli.main` takes interrupts, the process just ends, as any other that is interrupted.
    signals.signal(signals.SIGINT, signals.SIG_DFL)
    from specconsole.cli.main import main as run

    signals.signal(signals.SIGINT, signals.default_int_handler)
    return run()


if __name__ == "__main__":
    sys.exit(main())
