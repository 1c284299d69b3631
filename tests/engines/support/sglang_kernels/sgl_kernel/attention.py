"""The two attention operators of the `intel_amx` back end, registered as torch.ops.sgl_kernel.*."""

import torch


def attend(query, keys, values, scale, seen=None):
    """query [n, heads, d]; keys, values [m, kv heads, d]; seen [n, m] says what each query may look at."""
    group = query.shape[1] // keys.shape[1]
    keys = keys.repeat_interleave(group, 1).float()
    values = values.repeat_interleave(group, 1).float()
    scores = torch.einsum("nhd,mhd->hnm", query.float(), keys) * scale
    if seen is not None:
        scores = scores.masked_fill(~seen, float("-inf"))
    return torch.einsum("hnm,mhd->nhd", scores.softmax(-1), values)


def _decode(q, key_cache, value_cache, out, key, value, slots, scratch, req_to_token, requests, seq_lens, scale, *rest):
    if key is not None:
        key_cache[slots] = key.view(-1, *key_cache.shape[1:]).to(key_cache.dtype)
        value_cache[slots] = value.view(-1, *value_cache.shape[1:]).to(value_cache.dtype)
    for number, request in enumerate(requests.tolist()):
        row = req_to_token[request]
        length = int(seq_lens[number])
        # While a draft is being made seq_lens stands still: where the new token's slot lies says how far it is.
        if slots is not None and len(found := (row == slots[number]).nonzero()):
            length = int(found[0]) + 1
        here = row[:length].long()
        out[number] = attend(q[number : number + 1], key_cache[here], value_cache[here], scale)[0].to(out.dtype)


def _extend(
    q, key, value, out, key_cache, value_cache, req_to_token, requests, seq_lens, new_lens, starts, longest, scale,
    cap, cross, window, encoder_lens, sinks, tree_mask,
):  # fmt: skip
    used = 0
    new_keys = key.view(-1, *key_cache.shape[1:]).to(key_cache.dtype)
    columns = (requests.tolist(), seq_lens.tolist(), new_lens.tolist(), starts.tolist())
    for request, total, new, start in zip(*columns, strict=True):
        row = req_to_token[request]
        before = _prefix(row, total, new, key_cache, new_keys[start : start + new])
        here = row[: before + new].long()
        seen = torch.ones(new, before + new, dtype=torch.bool)
        if tree_mask is not None and tree_mask.numel():
            seen[:, before:] = tree_mask.flatten()[used : used + new * new].view(new, new)
            used += new * new
        else:
            seen[:, before:] = seen[:, before:].tril()
        part = slice(start, start + new)
        out[part] = attend(q[part], key_cache[here], value_cache[here], scale, seen).to(out.dtype)


def _prefix(row, total, new, key_cache, keys):
    """Positions before the new ones. `total` counts the new ones in a prefill and not when drafts are verified (0.5.17
    passes the batch's own lengths); the cache holds the new keys already, and tells which it is."""
    for before in (total - new, total):
        here = row[before : before + new].long()
        if before >= 0 and len(here) == new and torch.equal(key_cache[here], keys):
            return before
    return total - new


_library = torch.library.Library("sgl_kernel", "FRAGMENT")
_library.define(
    "decode_attention_cpu(Tensor q, Tensor(a!) key_cache, Tensor(b!) value_cache, Tensor(c!) out, Tensor? key, "
    "Tensor? value, Tensor? slots, Tensor scratch, Tensor req_to_token, Tensor requests, Tensor seq_lens, float scale, "
    "float cap, bool cross, int window, Tensor? encoder_lens, Tensor? sinks) -> ()"
)
_library.define(
    "extend_attention_cpu(Tensor q, Tensor? key, Tensor? value, Tensor(a!) out, Tensor key_cache, Tensor value_cache, "
    "Tensor req_to_token, Tensor requests, Tensor seq_lens, Tensor new_lens, Tensor starts, int longest, float scale, "
    "float cap, bool cross, int window, Tensor? encoder_lens, Tensor? sinks, Tensor? tree_mask) -> ()"
)
_library.impl("decode_attention_cpu", _decode, "CPU")
_library.impl("extend_attention_cpu", _extend, "CPU")
