"""`exgrpo import`: logs of other trainers, and model outputs, become runs of the lake."""
