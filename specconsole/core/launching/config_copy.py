"""A changed copy of a model's folder: a new `config.json`, links to everything else, so that no weight is copied.

For a draft whose positions end before the context that is asked for: the engines go by `max_position_embeddings`.
"""

from __future__ import annotations

import json
import math
from typing import Any

from specconsole.core.launching.draft_facts import longest_context, text_config
from specconsole.errors import BadInputError

# $1: `begin FROM TO`, then `end NEW TO`, or `undo NEW`. Between them config.json is written into NEW, which stands
# beside TO until it is whole.
COPY = r"""
{
say() { printf 'error=%s\n' "$1"; exit 1; }
step=$1; from=$2; to=$3
case $to in '~/'*) to=$HOME/${to#'~/'} ;; esac
case $step in
begin)
  case $from in '~/'*) from=$HOME/${from#'~/'} ;; esac
  from=$(cd "$from" 2>/dev/null && pwd -P) || say no-folder
  if [ -e "$to" ] || [ -L "$to" ]; then say exists; fi
  new=$to.specconsole-new.$$
  mkdir "$new" 2>/dev/null || say folder
  new=$(cd "$new" && pwd -P)
  for one in "$from"/* "$from"/.[!.]*; do
    [ -e "$one" ] || continue
    [ "${one##*/}" = config.json ] && continue
    ln -s "$one" "$new/${one##*/}" 2>/dev/null || { rm -rf "$new"; say link; }
  done
  printf 'made=%s\n' "$new" ;;
end)
  if [ -e "$to" ] || [ -L "$to" ]; then say exists; fi
  mv "$from" "$to" 2>/dev/null || say move
  printf 'made=%s\n' "$(cd "$to" && pwd -P)" ;;
undo)
  case $from in *.specconsole-new.*) rm -rf "$from" ;; esac ;;
esac
}
"""


def longer_config(config: dict[str, Any], context: int) -> dict[str, Any]:
    """The configuration with as many positions as a context needs. Raises BadInputError where it names none.

    A scaling factor stays: positions times factor is what the engines go by.
    """
    longest = longest_context(config)
    if longest is None:
        raise BadInputError("config.json names no number of positions", try_="a configuration with it")
    if longest >= context:
        raise BadInputError(f"config.json knows {longest} positions, enough for {context}")
    inner = text_config(config)
    key = next(k for k in ("max_position_embeddings", "max_sequence_length", "seq_length", "n_positions", "max_seq_len")
               if isinstance(inner.get(k), int) and inner[k] > 0)  # fmt: skip
    needed = math.ceil(context / (longest / inner[key]))
    changed: dict[str, Any] = json.loads(json.dumps(config))
    text_config(changed)[key] = needed  # type: ignore[index]  # just made, and a table
    return changed
