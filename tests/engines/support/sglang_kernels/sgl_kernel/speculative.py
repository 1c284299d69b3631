"""What SGLang imports from `sgl_kernel.speculative`."""

from .draft_trees import reconstruct_indices_from_tree_mask  # noqa: F401
