"""How good the estimates are, on every recorded start and on synthetic shapes, leave-one-out.

    python benchmarks/eta.py            prints the tables
    python benchmarks/eta.py --worst    also the worst single estimates

Error: how far `mid` was from the truth, as a share of the bar's (or the start's) whole duration. Coverage: how often
the truth lay between `low` and `high`. "silent": no estimate was given (and none by the bar itself is counted).
The few constants of core/reading/eta_spread.py were set on these recorded bars, so their row is no blind test; the
synthetic ones are drawn anew with --seed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from statistics import median

if not __package__:  # run as a program: python benchmarks/eta.py
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks._eta_shapes import Guess, RecordedBar, synthetic_bars
from benchmarks._eta_starts import bar_of, recorded_starts, start_guesses
from specconsole.core.reading.eta import BarTrack, bar_eta, track

MOMENTS = (0.10, 0.25, 0.50, 0.75)


def recorded_bars() -> list[RecordedBar]:
    """Every bar of the recorded starts that ran to its end."""
    bars = []
    for start in recorded_starts():
        for shape in start["bars"]:
            updates = tuple(bar_of(shape, update) for update in shape["updates"])
            if updates[-1][1].done == shape["total"]:
                bars.append(RecordedBar(f"{start['name']} {shape['desc']}", False, updates, updates[0][0]))
    return bars


def guesses_of(recorded: RecordedBar) -> list[Guess]:
    """The estimates at each moment, from what had arrived by then."""
    whole_s = recorded.end_s - recorded.start_s
    found = []
    for moment in MOMENTS:
        now_s = recorded.start_s + moment * whole_s
        state: BarTrack | None = None
        own_s: float | None = None
        for at, bar in recorded.updates:
            if at > now_s:
                break
            state = track(state, bar, arrival_s=at)
            own_s = None if bar.remaining_s is None else max(0.0, bar.remaining_s - (now_s - at))
        eta = bar_eta(state, now_s=now_s) if state else None
        truth_s = recorded.end_s - now_s
        found.append(
            Guess(
                recorded.name,
                moment,
                now_s >= recorded.turns_at_s,
                truth_s,
                whole_s,
                *((eta.low, eta.mid, eta.high) if eta else (None,) * 3),
                own_s,
            )
        )
    return found


def coverage(guesses: Iterable[Guess]) -> float:
    spoken = [g for g in guesses if g.mid_s is not None]
    return sum(g.covered for g in spoken) / len(spoken)


def median_error(guesses: Iterable[Guess]) -> float:
    return median(g.error_ratio for g in guesses if g.error_ratio is not None and g.own_error_ratio is not None)


def median_own_error(guesses: Iterable[Guess]) -> float:
    return median(g.own_error_ratio for g in guesses if g.error_ratio is not None and g.own_error_ratio is not None)


def table(title: str, guesses: list[Guess]) -> str:
    """One line a moment."""
    lines = [f"{title}", "  of the way  estimates  silent  median error  bar's own  range held  range/truth"]
    for moment in MOMENTS:
        rows = [g for g in guesses if g.moment == moment]
        spoken = [g for g in rows if g.mid_s is not None]
        if not spoken:
            continue
        both = [g for g in spoken if g.own_s is not None]
        widths = [(g.high_s - g.low_s) / g.truth_s for g in spoken if g.high_s is not None and g.low_s is not None]
        own = f"{median_own_error(both):9.1%}" if both else "        -"
        ours = f"{median(g.error_ratio or 0.0 for g in spoken):12.1%}"
        lines.append(
            f"  {moment:10.0%}  {len(spoken):9d}  {len(rows) - len(spoken):6d}  {ours}  {own}"
            f"  {coverage(spoken):10.1%}  {median(widths):11.2f}"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worst", action="store_true", help="print the estimates that missed by most")
    parser.add_argument("--each", type=int, default=60, help="synthetic bars of each shape")
    parser.add_argument("--seed", type=int, default=1, help="of the synthetic bars")
    args = parser.parse_args()
    real = [g for bar in recorded_bars() for g in guesses_of(bar)]
    print(table(f"recorded bars ({len(real) // len(MOMENTS)})", real))
    told = list(start_guesses(recorded_starts(), MOMENTS))
    for kind, title in (("phase", "phases over 1 s, bar and history"), ("ready", "to ready, bar and history")):
        print(table(f"recorded starts, {title}, leave-one-out", [g for k, g in told if k == kind]))
    made = [g for bar in synthetic_bars(args.each, args.seed) for g in guesses_of(bar)]
    for shape in sorted({g.name.rsplit("-", 1)[0] for g in made}):
        rows = [g for g in made if g.name.startswith(shape)]
        print(table(f"SYNTHETIC {shape}", [g for g in rows if g.foreseeable]))
        if before := [g for g in rows if not g.foreseeable]:
            print(table("  before the turn that nothing announced", before))
    fair = [g for g in made if g.foreseeable]
    print(f"range held: recorded {coverage(real):.1%}, synthetic {coverage(fair):.1%}")
    print(
        f"median error and the bar's own: recorded {median_error(real):.1%} and {median_own_error(real):.1%}, "
        f"synthetic {median_error(fair):.1%} and {median_own_error(fair):.1%}"
    )
    if args.worst:
        missed = sorted(
            (g for g in real + fair + [g for _, g in told] if g.mid_s is not None and not g.covered),
            key=lambda g: -(g.error_ratio or 0),
        )
        for g in missed[:40]:
            print(
                f"{g.name[:70]:70s} {g.moment:.0%} truth {g.truth_s:.1f} got {g.low_s:.1f} {g.mid_s:.1f} {g.high_s:.1f}"
            )


if __name__ == "__main__":
    main()
