"""How much of a model's file is taken to look at its head."""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import Any

from specconsole.adapters.local import LocalTransport
from specconsole.demo.models import ModelFiles
from specconsole.ports import Completed
from specconsole.services.model_look import look_at_model


class Counting(LocalTransport):
    """Counts what its commands print, unpacked."""

    printed_bytes = 0

    async def run_sh(self, *args: Any, **options: Any) -> Completed:
        done = await super().run_sh(*args, **options)
        self.printed_bytes += len(zlib.decompressobj(wbits=31).decompress(done.stdout))
        return done


async def test_a_huge_gguf_file_is_known_by_its_first_mebibytes(llama_models: ModelFiles, tmp_path: Path) -> None:
    huge = tmp_path / "huge.gguf"
    huge.write_bytes(llama_models.target.read_bytes())
    os.truncate(huge, 40 << 30)
    transport = Counting()
    found, model = await look_at_model(transport, "target", str(huge))
    assert found.files["huge.gguf"].size_bytes == 40 << 30
    assert model.facts.architecture == "llama"
    assert transport.printed_bytes < 3 << 20
