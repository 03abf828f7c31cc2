"""What a study will need before anyone pays for it: memory, tokens, disk, time. Pure numbers."""
