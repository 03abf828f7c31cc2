-- purpose: How many right answers were not reasoned: chain invalid, no steps, very short; and how often is a wrong chain right by chance?
-- grain: an arm of a study and a window of steps
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param window integer >= 1 = 10: steps a window
-- param short integer >= 0 = 5: a response of at most so many tokens is very short, end token included
-- column study: study
-- column arm: arm
-- column first_step: first step of the window [step]
-- column right: fresh trajectories graded right
-- column checked: of these, chain could be checked
-- column invalid_share: of those checked, chain not valid: wrong or missing steps [share]
-- column no_steps_share: of those where that is known, no steps shown; these are invalid too [share]
-- column short_share: of the right ones, very short [share]
-- column lucky_share: of the right ones, any of the three; unchecked ones count by length alone [share]
-- column wrong_chains: fresh graded ones that show steps, chain not valid
-- column wrong_chain_right_share: of these, answer right: how often chance mends a wrong chain [share]
-- column without_steps: fresh graded ones that show no steps
-- column without_steps_right_share: of these, answer right [share]
with kinds as (
    -- Millions of answers are of few kinds: count those first.
    select
        run,
        (step - 1) // $window * $window + 1 as first_step,
        correct,
        not chain_valid as invalid,
        shortcut,
        length <= $short as short,
        count(*) as n
    from trajectories
    where not replayed and correct is not null
    group by all
),
marked as (
    select
        runs.study,
        runs.arm,
        kinds.*,
        coalesce(invalid, false) or coalesce(shortcut, false) or short as lucky,
        invalid and not shortcut as wrong_chain
    from kinds
    join scope($study, $run) as runs using (run)
)
select
    study,
    arm,
    first_step,
    coalesce(sum(n) filter (where correct), 0)::bigint as "right",
    coalesce(sum(n) filter (where correct and invalid is not null), 0)::bigint as checked,
    sum(n * invalid::int) filter (where correct)
        / sum(n) filter (where correct and invalid is not null) as invalid_share,
    sum(n * shortcut::int) filter (where correct)
        / sum(n) filter (where correct and shortcut is not null) as no_steps_share,
    sum(n * short::int) filter (where correct)
        / sum(n) filter (where correct and short is not null) as short_share,
    sum(n * lucky::int) filter (where correct)
        / sum(n) filter (where correct and lucky is not null) as lucky_share,
    coalesce(sum(n) filter (where wrong_chain), 0)::bigint as wrong_chains,
    sum(n * correct::int) filter (where wrong_chain) / sum(n) filter (where wrong_chain)
        as wrong_chain_right_share,
    coalesce(sum(n) filter (where shortcut), 0)::bigint as without_steps,
    sum(n * correct::int) filter (where shortcut) / sum(n) filter (where shortcut)
        as without_steps_right_share
from marked
group by study, arm, first_step
order by study, arm, first_step
