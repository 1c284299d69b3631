"""Plain transformers: a script that loads a model by itself (`from_pretrained`), no server around it."""

from __future__ import annotations

from specconsole.core.reading.events import Enter
from specconsole.core.reading.generic_table import Row, TableDialect, row

_ROWS: tuple[Row, ...] = (
    # `Explicitly passing a `revision` is encouraged when loading a configuration with custom code ...`
    # (dynamic_module_utils.py, 4.2x)
    row("Explicitly passing a `revision`", r"^Explicitly passing a `revision`", Enter("starting", stay=True)),
    # `The model weights are not tied. Please use the `tie_weights` method before using the `infer_auto_device`
    # function.` (accelerate)
    row("The model weights are not tied", r"^The model weights are not tied", Enter("weights", "target", stay=True)),
    # `Some weights of LlamaForCausalLM were not initialized from the model checkpoint at acme/M and are newly
    # initialized: [...]`
    row(
        "were not initialized from the model checkpoint",
        r"^Some weights of \w+ were not initialized",
        Enter("weights", "target", stay=True),
    ),
)

DIALECT = TableDialect(
    engine="transformers",
    rows=_ROWS,
    sure=(),
    hints=("Loading checkpoint shards", "Explicitly passing a `revision`", "The model weights are not tied"),
)
