"""Logs that are no plain UTF-8: UTF-16 from PowerShell, holes of NULs, lone CRs, and what the first bytes may be."""

from __future__ import annotations

import pytest

from specconsole.core.reading.reading import Reader, read_bytes

LOG = """[2026-06-01 10:00:00] server_args=ServerArgs(model_path='/m/Ü🙂', tp_size=1, port=30000)
[2026-06-01 10:00:02] Load weight begin. avail mem=78.58 GB
Loading safetensors checkpoint shards:  38% Completed | 3/8 [00:03<00:05,  1.00s/it]
Capturing batches (bs=1):  14%|█▍        | 3/22 [00:20<02:00,  1.1it/s] 🙂
[2026-06-01 10:00:44] The server is fired up and ready to roll!
"""
PLAIN = read_bytes(LOG.encode())
UTF16 = [b"\xff\xfe" + LOG.encode("utf-16-le"), b"\xfe\xff" + LOG.encode("utf-16-be")]


def _core(data: bytes, step: int) -> object:
    reader = Reader()
    for start in range(0, len(data), step):
        reader.feed(data[start : start + step])
        if start % (97 * step) == 0:
            reader = Reader.resume(reader.checkpoint())
    shape = reader.reading().to_json()
    assert shape.pop("bytes") == len(data)
    return shape


@pytest.mark.parametrize("data", UTF16)
@pytest.mark.parametrize("step", [1, 2, 7, 1 << 20])
def test_utf16_reads_as_the_same_text(data: bytes, step: int) -> None:
    want = PLAIN.to_json()
    want.pop("bytes")
    assert _core(data, step) == want


@pytest.mark.parametrize("hole", [1, 70_000, 3_000_000])
def test_a_hole_of_nuls_hides_nothing(hole: int) -> None:
    reading = read_bytes(b"\0" * hole + LOG.encode())
    assert (reading.phase, reading.server, reading.lines) == (PLAIN.phase, PLAIN.server, PLAIN.lines)


@pytest.mark.parametrize(
    "data", [b"\xff", b"\xfe", b"\xff\xfe", b"\xfe\xff\x00", b"\xef\xbb\xbf", b"\0", b"\xff\xfeX", b""]
)
def test_a_few_odd_bytes_are_a_log_of_no_known_server(data: bytes) -> None:
    reading = read_bytes(data)
    assert (reading.engine, reading.phase, reading.bytes) == ("unknown", "starting", len(data))
