"""`python3 -m loadgen PLAN.json OUT.jsonl`. Exit status: 0 done, 2 the plan can't be used, 3 ended early."""

from __future__ import annotations

import sys

from .client import Client, install_signals
from .plan import PlanError, read_plan
from .records import RecordPipe


def main(argv: list[str]) -> int:
    if len(argv) != 2:
        print("usage: loadgen PLAN.json OUT.jsonl", file=sys.stderr)  # noqa: T201 - its only words
        return 2
    try:
        plan = read_plan(argv[0])
        records = RecordPipe(argv[1], plan.keep_text)
    except (PlanError, OSError) as error:
        print("loadgen: %s" % error, file=sys.stderr)  # noqa: T201
        return 2
    status = 2
    try:
        client = Client(plan, records)
        install_signals(client)
        status = client.run()
    except (PlanError, OSError) as error:
        print("loadgen: %s" % error, file=sys.stderr)  # noqa: T201
        status = 2
    return status if records.close() else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
