"""What is kept of a launch as it was asked for."""

from __future__ import annotations

from specconsole.core.launching.spec import LaunchSpec
from specconsole.core.views.history_facts import masked_spec


def test_a_key_written_into_a_command_is_starred_wherever_the_command_stands() -> None:
    words = ("sh", "-c", 'exec serve --api-key planted-key-12345 "$@"')
    spec = LaunchSpec(
        "20261129-000000-aaaaaa", profile="p", engine="vllm", argv=(*words, "sh", "--port", "8000"), command=words,
        log_command=("ssh", "h", "tail --api_key=planted-key-12345"),
    )  # fmt: skip
    kept = masked_spec(spec)
    assert "planted" not in repr(kept)
    assert kept["command"] == ["sh", "-c", f'exec serve --api-key {"*" * 17} "$@"']
