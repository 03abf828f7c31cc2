"""What scoring and choosing experience add to a training step, from the log of a finished study.

    python benchmarks/selection.py [study]

Peer: the study's `on_policy` runs, trained side by side. Their seconds a generated token, times the
tokens that an arm generated, is what as many tokens would have cost without replay. The paper's
comparison of whole steps, at 7 B, is +19 % (Table 8).
"""

import argparse
from pathlib import Path

from analysis.catalog import open_catalog

QUESTION = """
with by_arm as (
    select
        arm,
        count(distinct run) as runs,
        sum(select_seconds) as selecting,
        sum(steps.seconds) as seconds,
        sum(sampled_tokens) as tokens,
        count(*) filter (where replay_on) as steps_on
    from steps
    join runs using (run)
    where study = $study
    group by arm
),
peer as (select seconds / tokens as seconds_a_token from by_arm where arm = 'on_policy')
select
    arm,
    runs,
    100 * selecting / (seconds_a_token * tokens) as selection,
    100 * (seconds / (seconds_a_token * tokens) - 1) as whole_step
from by_arm, peer
where steps_on > 0
order by arm
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", nargs="?", default="tiny")
    study = parser.parse_args().study
    catalog = open_catalog(Path("results/workbench.duckdb"))
    rows = catalog.execute(QUESTION, {"study": study}).fetchall()
    if not rows:
        raise SystemExit(f"{study}: no finished runs of on_policy and of an arm with replay.")
    print("Against on_policy with as many generated tokens, in % of its step:")
    print(f"{'arm':<26} {'runs':>4}  {'selection':>9}  {'whole step':>10}")
    for arm, runs, selection, whole in rows:
        print(f"{arm:<26} {runs:>4}  {selection:>+9.1f}  {whole:>+10.1f}")


if __name__ == "__main__":
    main()
