"""Questions in SQL to begin with, by what they ask."""

EXAMPLES = {
    "Which runs are there?": """\
SELECT arm, seed, steps, round(seconds) AS seconds
FROM runs
ORDER BY arm, seed""",
    "Which right answers have a flawed chain?": """\
SELECT arm, step, question, mean_entropy, response, trajectory
FROM trajectories JOIN runs USING (run)
WHERE correct AND NOT chain_valid
ORDER BY mean_entropy""",
    "How does entropy go with difficulty?": """\
SELECT arm, group_successes AS k, correct, count(*) AS rollouts,
    round(avg(mean_entropy), 3) AS mean_entropy
FROM trajectories JOIN runs USING (run)
WHERE NOT replayed
GROUP BY ALL
ORDER BY ALL""",
    "What is replayed most?": """\
SELECT source, any_value(question) AS question, count(*) AS replays,
    round(avg(ratio_mean), 3) AS mean_ratio
FROM trajectories
WHERE replayed
GROUP BY source
ORDER BY replays DESC""",
    "How does the reward grow?": """\
SELECT arm, seed, step, reward
FROM steps JOIN runs USING (run)
ORDER BY arm, seed, step""",
}
FIRST = next(iter(EXAMPLES.values()))
