"""One whole on-policy step against TRL's GRPOTrainer: 32 questions x 8 rollouts of `tiny`.

    python benchmarks/trl_step.py [--threads 1] [--results results]

Both start from the same base model, take the same 600 questions, temperature 1, at most 64 new
tokens, two AdamW updates a step, Dr.GRPO's loss with clip, no KL, no reward scaling, float32, and
grade with the same function. Ours also writes every trajectory and its checkpoints; TRL writes
nothing. TRL's micro-batch is the fastest of a few, found first. Then both train in turn, round
after round.
"""

import statistics
import tempfile
import time
import warnings
from typing import Any

from datasets import Dataset, disable_progress_bars
from transformers import PrinterCallback, TrainerCallback
from trl import GRPOConfig, GRPOTrainer
from workload import StepTime, Workload, conditions, prepare, train_steps

from exgrpo.grading import grade
from exgrpo.policy import load_policy

ROUNDS = 3
STEPS, WARM_UP = 6, 2  # of each a round; warm-up steps are not counted
CHECKPOINT_EVERY = 3  # ours, with the log: falls into the counted steps once a round
MICRO_BATCHES = (128, 64, 32)  # sequences a forward; two updates of 128 sequences each way


class StepEnds(TrainerCallback):
    """The time at which each step of TRL ends: when the last of its updates is done."""

    def __init__(self, updates: int) -> None:
        self.updates = updates
        self.times: list[float] = []

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step % self.updates == 0:
            self.times.append(time.perf_counter())


def main() -> None:
    warnings.simplefilter("ignore")
    disable_progress_bars()
    workload = prepare(__doc__)
    micro_batch = fastest_micro_batch(workload)
    ours: list[StepTime] = []
    theirs: list[StepTime] = []
    for turn in range(ROUNDS):
        ours += train_steps(
            workload, STEPS, WARM_UP, seed=turn, training={"checkpoint_every": CHECKPOINT_EVERY}
        )
        theirs += trl_steps(workload, STEPS, micro_batch, seed=turn)
        print(f"round {turn + 1} of {ROUNDS}: {conditions()}")
    print(f"\n{'':6}{'s a step':>10}{'tokens a step':>15}{'tokens/s':>10}{'reward':>8}{'steps':>7}")
    for name, steps in (("ours", ours), ("TRL", theirs)):
        print(
            f"{name:6}{seconds(steps):10.3f}{tokens(steps):15.0f}{1 / a_token(steps):10.0f}"
            f"{statistics.mean(step.row['reward'] for step in steps):8.2f}{len(steps):7}"
        )
    print(f"\nTRL's step takes {seconds(theirs) / seconds(ours):.2f} times ours", end="")
    print(f", {a_token(theirs) / a_token(ours):.2f} times for the same number of tokens (medians)")


def seconds(steps: list[StepTime]) -> float:
    return statistics.median(step.seconds for step in steps)


def tokens(steps: list[StepTime]) -> float:
    return statistics.mean(step.tokens for step in steps)


def a_token(steps: list[StepTime]) -> float:
    return statistics.median(step.seconds / step.tokens for step in steps)


def fastest_micro_batch(workload: Workload) -> int:
    taken = {
        size: min(step.seconds for step in trl_steps(workload, 4, size, seed=ROUNDS))
        for size in MICRO_BATCHES
    }
    listed = ", ".join(f"{size}: {taken[size]:.2f} s" for size in MICRO_BATCHES)
    print(f"TRL, seconds a step by sequences a forward: {listed}")
    return min(taken, key=lambda size: taken[size])


def trl_steps(workload: Workload, steps: int, micro_batch: int, seed: int) -> list[StepTime]:
    """Train with TRL from the base model; its steps after the first `WARM_UP`."""
    settings = workload.settings
    sequences = settings.batch.questions * settings.rollout.group_size
    sampled: list[tuple[int, float]] = []

    def right(
        completions: list[str], completion_ids: list[list[int]], gold: list[str], **columns: Any
    ) -> list[float]:
        rewards = [
            float(grade(each, text).correct is True)
            for each, text in zip(gold, completions, strict=True)
        ]
        sampled.append((sum(map(len, completion_ids)), statistics.mean(rewards)))
        return rewards

    model, tokenizer = load_policy(workload.base)
    ends = StepEnds(settings.batch.updates)
    with tempfile.TemporaryDirectory() as folder:
        trainer = GRPOTrainer(
            model=model,
            processing_class=tokenizer,
            reward_funcs=right,
            train_dataset=Dataset.from_list(
                [{"prompt": each.text, "gold": each.gold} for each in workload.train]
            ),
            callbacks=[ends],
            args=GRPOConfig(
                output_dir=folder,
                seed=seed,
                use_cpu=True,
                bf16=False,
                gradient_checkpointing=False,
                max_steps=steps * settings.batch.updates,
                generation_batch_size=sequences,
                per_device_train_batch_size=micro_batch,
                gradient_accumulation_steps=sequences // settings.batch.updates // micro_batch,
                num_iterations=settings.batch.passes,
                num_generations=settings.rollout.group_size,
                max_completion_length=settings.rollout.max_new_tokens,
                temperature=settings.rollout.temperature,
                loss_type="dr_grpo",
                scale_rewards="none",
                beta=settings.objective.kl_reference,
                epsilon=settings.objective.clip_low,
                epsilon_high=settings.objective.clip_high,
                learning_rate=settings.optimiser.learning_rate,
                lr_scheduler_type="constant",
                weight_decay=settings.optimiser.weight_decay,
                max_grad_norm=settings.optimiser.grad_clip,
                save_strategy="no",
                logging_strategy="no",
                report_to="none",
                disable_tqdm=True,
            ),
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return [
        StepTime(end - before, count, {"reward": reward})
        for before, end, (count, reward) in zip(
            ends.times[WARM_UP - 1 :],
            ends.times[WARM_UP:],
            sampled[WARM_UP:],
            strict=False,
        )
    ]


if __name__ == "__main__":
    main()
