"""What float32 rounds of a log-probability: nat a token, the greatest of some thousand."""

FLOAT32 = 5e-5
