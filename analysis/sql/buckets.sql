-- purpose: How do the groups move between difficulties, and how sure is the policy in each?
-- grain: an arm (all its seeds), a window of 10 steps, a number of successes in the group
-- param study: the study
-- column arm: arm
-- column first_step: first step of the window: 1, 11, 21, ... [step]
-- column group_successes: k, right trajectories in the group, the replayed too
-- column groups: groups with k successes
-- column mean_entropy: mean over the groups' fresh trajectories [nat/token]
WITH one_group AS (
    SELECT
        run,
        step,
        "group",
        any_value(group_successes) AS group_successes,
        sum(mean_entropy) FILTER (WHERE NOT replayed) AS entropy,
        count(mean_entropy) FILTER (WHERE NOT replayed) AS fresh
    FROM trajectories
    GROUP BY run, step, "group"
)
SELECT
    runs.arm,
    (one_group.step - 1) // 10 * 10 + 1 AS first_step,
    one_group.group_successes,
    count(*) AS groups,
    sum(one_group.entropy) / sum(one_group.fresh) AS mean_entropy
FROM one_group
JOIN runs USING (run)
WHERE runs.study = $study
GROUP BY ALL
ORDER BY ALL
