"""Plain-torch stand-ins for the kernels that SGLang 0.5.17 calls on a CPU; no wheel on the index carries its CPU ones.

Everything outside this folder is SGLang's own code: arguments, log, endpoints, metrics, signals, speculation. Names
that are not here import and raise when they are called. For tiny models; slow. Signatures: sglang 0.5.17,
srt/layers/attention/intel_amx_backend.py, srt/speculative/{eagle_utils,eagle_worker_common,spec_utils,
ngram_worker}.py, kernels/ops/.
"""

import sys

from . import attention, speculative  # noqa: F401 - registers torch.ops.sgl_kernel
from .cache_slots import (  # noqa: F401
    assign_draft_cache_locs_contiguous_cpu,
    assign_extend_cache_locs_cpu,
    assign_req_to_token_pool_cpu,
    build_draft_decode_metadata_cpu,
    copy_all_layer_kv_cache_cpu,
    fill_accept_out_cache_loc_cpu,
    fill_bonus_tokens_cpu,
    rotate_input_ids_cpu,
)
from .draft_trees import build_tree_kernel_efficient_cpu, verify_tree_greedy_cpu  # noqa: F401
from .placeholders import PlaceholderModule, install

__version__ = "0.4.5"

install("sgl_kernel")
sys.modules[__name__].__class__ = PlaceholderModule
