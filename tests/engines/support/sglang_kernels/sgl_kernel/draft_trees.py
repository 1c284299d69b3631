"""Trees of drafted tokens: node 0 is the last real token. `next_token` is a node's first child, `next_sibling` the next
child of its parent, -1 none. Tree masks are the "query only" kind: N x N, a row for the ancestors of each node."""

import torch


def link(parents):
    """(first children, next siblings) of a tree given as the parent of each node; children keep their order."""
    child, sibling = [-1] * len(parents), [-1] * len(parents)
    for node in reversed(range(1, len(parents))):
        parent = parents[node]
        if parent >= 0:
            sibling[node], child[parent] = child[parent], node
    return child, sibling


def _store(request, parents, index, next_token, next_sibling):
    child, sibling = link(parents)
    size = len(parents)
    index.view(-1, size)[request] = torch.arange(request * size, (request + 1) * size)
    next_token.view(-1, size)[request] = torch.tensor(child)
    next_sibling.view(-1, size)[request] = torch.tensor(sibling)


def build_tree_kernel_efficient_cpu(
    parent_list, selected, seq_lens, tree_mask, positions, index, next_token, next_sibling, topk, depth, size, mode
):
    """`selected[r]`: the drafted candidates that were kept, each numbered within its step by `topk`; `parent_list`
    names the candidate that a group of `topk` grew from."""
    if int(mode) != 1:
        raise NotImplementedError("only query-only masks are built on the CPU")
    masks = tree_mask.view(-1, size, size)
    for request, length in enumerate(seq_lens.tolist()):
        kept = selected[request].tolist()
        node_of = {candidate: node for node, candidate in enumerate(kept, start=1)}
        grew_from = parent_list[request].tolist()
        parents = [-1] + [0 if c < topk else node_of[grew_from[c // topk]] for c in kept]
        mask = torch.zeros(size, size, dtype=torch.bool)
        for node, parent in enumerate(parents):
            # Parents come before their children.
            if parent >= 0:
                mask[node] = mask[parent]
            mask[node, node] = True
        masks[request] = mask
        positions[request * size : (request + 1) * size] = length + mask.sum(1) - 1
        _store(request, parents, index, next_token, next_sibling)


def reconstruct_indices_from_tree_mask(tree_mask, seq_lens, positions, index, next_token, next_sibling, batch, size):
    """The same links from a mask alone (n-gram drafts)."""
    masks = tree_mask.view(batch, size, size)
    for request, length in enumerate(seq_lens.tolist()):
        rows = masks[request].tolist()
        above = [[other for other in range(node) if rows[node][other]] for node in range(size)]
        positions.view(batch, size)[request] = torch.tensor([length + len(nodes) for nodes in above])
        _store(request, [nodes[-1] if nodes else -1 for nodes in above], index, next_token, next_sibling)


def verify_tree_greedy_cpu(
    predicts, accept_index, accept_token_num, candidates, retrive_index, retrive_next_token, retrive_next_sibling,
    target_predict,
):  # fmt: skip
    """Walks down as long as some child is the token that the target itself would have taken."""
    target = target_predict.flatten().tolist()
    for request in range(len(candidates)):
        places, child, sibling, tokens = (
            table[request].tolist() for table in (retrive_index, retrive_next_token, retrive_next_sibling, candidates)
        )
        node, accepted = 0, [places[0]]
        while len(accepted) < accept_index.shape[1]:
            wanted = target[places[node]]
            following = child[node]
            while following >= 0 and tokens[following] != wanted:
                following = sibling[following]
            if following < 0:
                break
            node = following
            accepted.append(places[node])
        for number, place in enumerate(accepted):
            accept_index[request, number] = place
            predicts[place] = target[place]
        accept_token_num[request] = len(accepted) - 1
