"""A download alone: `hf download`, `huggingface-cli download`, ModelScope, without a server around it.

The bars themselves (`Fetching 12 files`, one a file) are found by the pipeline; these are the lines between them.
"""

from __future__ import annotations

from specconsole.core.reading.events import Enter, Facts, Leave, Warn
from specconsole.core.reading.generic_table import Row, TableDialect, row

_ROWS: tuple[Row, ...] = (
    # `Downloading 'model-00001-of-00030.safetensors' to '/data/hub/.../blobs/4f3c.incomplete'` (huggingface_hub
    # file_download.py, 0.24 on)
    row("Downloading ", r"^Downloading (?:'|Model |\[|\S+\.safetensors)", Enter("download")),
    # `Download complete. Moving file to /data/hub/...` / `Download complete: 100%|...`
    row("Download complete", r"^Download complete", Enter("download", stay=True)),
    # `Downloading Model from https://www.modelscope.cn to directory: /root/.cache/modelscope/hub/models/acme/M`
    # as ModelScope says it
    row(
        "to directory:",
        r"^Downloading Model .*to directory: (\S+)",
        make=lambda m: (Enter("download"), Facts(model=m[1])),
    ),
    # `/data/hub/models--acme--M-7B/snapshots/0123456789abcdef` (hf download prints the folder when it is done)
    row("/snapshots/", r"^(?:✓ Downloaded.*|/?\S*)models--\S+/snapshots/\w+$", Leave("download")),
    # `⚠️  Warning: 'huggingface-cli download' is deprecated. Use 'hf download' instead.` (1.0)
    row("is deprecated. Use 'hf", r"deprecated\. Use 'hf", make=lambda m: (Warn("deprecated-flag", m.string.strip()),)),
)

DIALECT = TableDialect(
    engine="hub",
    rows=_ROWS,
    sure=(),
    hints=("Fetching ", "hf download", "huggingface-cli", "models--", "modelscope"),
)
