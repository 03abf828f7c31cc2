-- purpose: How many groups of one run have k of K right answers?
-- grain: a pair of k and K
-- param run: run id
-- column group_successes: k, right trajectories in the group
-- column group_size: K, graded trajectories in the group
-- column groups: groups with k of K
WITH one_group AS (
    SELECT DISTINCT step, "group", group_successes, group_size
    FROM trajectories
    WHERE run = $run
)
SELECT group_successes, group_size, count(*) AS groups
FROM one_group
GROUP BY ALL
ORDER BY group_size, group_successes
