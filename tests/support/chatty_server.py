"""The real llama.cpp server, and beside it in its log what SGLang would write: chatty_server.py LINES.json [flags].

The lines are written one after the other, again and again, as long as the server lives.
"""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path


def main() -> int:
    lines = json.loads(Path(sys.argv[1]).read_text())
    server = subprocess.Popen([sys.executable, "-m", "specconsole.demo.llama_server", *sys.argv[2:]])
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda got, _: server.send_signal(got))
    while server.poll() is None:
        for line in lines:
            sys.stdout.write(line + "\n")
        sys.stdout.flush()
        time.sleep(0.05)
    return server.returncode


if __name__ == "__main__":
    sys.exit(main())
