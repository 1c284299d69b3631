"""Judges argument lists with an engine's own code, each in a child forked after the imports, which take far longer.

Standard library only: it runs under the engine's Python. `answer` reads `[{"args": [...], "env": {...}}, ...]` from
stdin and writes `[{"settings": {...} or null, "error": "...", "log": "..."}, ...]`; nothing is loaded, no port opened.
"""

import json
import os
import sys
import tempfile
import time
import traceback

LIMIT_S = 120.0


def answer(judge):
    """`judge` takes an argument list and returns the settings that the engine makes of it, or raises as it does."""
    # The engines print to stdout too: it is kept for the answer.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    cases = json.load(sys.stdin)
    # The first call brings what is imported late.
    judge(cases[0]["args"])
    json.dump([_apart(judge, case) for case in cases], out)
    out.flush()


def plain(table):
    return {key: value for key, value in table.items() if isinstance(value, (str, int, float, bool, type(None)))}


def _apart(judge, case):
    with tempfile.TemporaryFile("w+") as told, tempfile.TemporaryFile("w+", errors="replace") as log:
        child = os.fork()
        if child == 0:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
            try:
                json.dump(_judged(judge, case), told)
                told.flush()
                sys.stderr.flush()
            finally:
                os._exit(0)
        _reap(child)
        told.seek(0)
        log.seek(0)
        text = told.read()
        found = json.loads(text) if text else {"settings": None, "error": "it died without a word"}
        return {**found, "log": log.read()}


def _judged(judge, case):
    os.environ.update(case.get("env", {}))
    try:
        return {"settings": plain(judge(case["args"])), "error": ""}
    except SystemExit as error:
        return {"settings": None, "error": f"SystemExit: {error.code}"}
    except Exception as error:  # noqa: BLE001 - whatever the engine raises is its answer
        traceback.print_exc()
        return {"settings": None, "error": f"{type(error).__name__}: {error}"}


def _reap(child):
    end = time.monotonic() + LIMIT_S
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > end:
            os.kill(child, 9)
        time.sleep(0.02)
