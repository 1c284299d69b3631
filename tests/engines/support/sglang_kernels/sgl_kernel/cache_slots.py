"""Bookkeeping of KV cache slots: `req_to_token[request, position]` is the slot that holds that position."""

import ctypes

import torch


def _requests(*columns):
    return zip(*(column.tolist() for column in columns), strict=True)


def assign_extend_cache_locs_cpu(requests, req_to_token, start, end, out, pool_len):
    """`out`: the slots of positions start..end of every request, one after the other."""
    parts = [req_to_token[r, a:b] for r, a, b in _requests(requests, start, end)]
    if parts:
        slots = torch.cat(parts)
        out[: slots.numel()] = slots.to(out.dtype)


def assign_draft_cache_locs_contiguous_cpu(requests, req_to_token, seq_lens, out, pool_len, topk, num_steps):
    """`out`: the topk * num_steps slots that follow each request's own."""
    width = topk * num_steps
    assign_extend_cache_locs_cpu(requests, req_to_token, seq_lens, seq_lens + width, out, pool_len)


def assign_req_to_token_pool_cpu(requests, req_to_token, start, end, slots, pool_len):
    """The way back: `slots` are written down for positions start..end of every request."""
    used = 0
    for request, a, b in _requests(requests, start, end):
        req_to_token[request, a:b] = slots[used : used + b - a].to(req_to_token.dtype)
        used += b - a


def build_draft_decode_metadata_cpu(req_to_token, requests, seq_lens, topk, num_steps, pool_len):
    """One row of slots for each branch of each request: the common prefix, then the branch's own draft slots."""
    rows = []
    for request, length in _requests(requests, seq_lens):
        own = req_to_token[request]
        for branch in range(topk):
            row = own.clone()
            begin = length + branch * num_steps
            row[length : length + num_steps] = own[begin : begin + num_steps]
            rows.append(row)
    return torch.stack(rows)


def fill_bonus_tokens_cpu(accepted, lengths, bonus, stride):
    """The last accepted token of each request."""
    at = torch.arange(lengths.numel()) * stride + lengths.long() - 1
    bonus[: lengths.numel()] = accepted.flatten()[at].to(bonus.dtype)


def fill_accept_out_cache_loc_cpu(accept_index, slots, out):
    """The slots of accepted tokens, the gaps (-1) left out."""
    chosen = accept_index.flatten()
    chosen = chosen[chosen >= 0].long()
    out[: chosen.numel()] = slots[chosen].to(out.dtype)


def copy_all_layer_kv_cache_cpu(buffers, row_bytes, to, source):
    """Moves rows of every layer's buffer (raw addresses). All are read before the first is written."""
    for address, size in _requests(buffers, row_bytes):
        rows = [ctypes.string_at(address + size * slot, size) for slot in source.tolist()]
        for slot, row in zip(to.tolist(), rows, strict=True):
            ctypes.memmove(address + size * slot, row, size)


def rotate_input_ids_cpu(tokens, start, lengths, new_tokens, select=None):
    """Each request's tokens move one to the left; the new one takes the free place (`select`, or the last)."""
    new = new_tokens.flatten()
    for number, (begin, length) in enumerate(_requests(start, lengths)):
        tokens[begin : begin + length - 1] = tokens[begin + 1 : begin + length].clone()
        place = begin + length - 1 if select is None else int(select[number])
        tokens[place] = new[number]
