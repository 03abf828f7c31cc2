"""Memory of one training process, in bytes: what is always held, and what each phase adds.

How each number comes about is said beside it; docs/plan.md has them together, and which are
measured. Where the code of the trainer changes what it holds, this file must follow.
"""

from dataclasses import dataclass

from exgrpo.hardware import Hardware
from exgrpo.plan.shape import ModelShape
from exgrpo.policy import HEAD_LOGITS
from exgrpo.settings import RunSettings

GB = 1e9  # as GPUs are sold; those of 2^30 bytes have 7 % more, which no plan should count on
# Not measured: the context of CUDA, workspaces of its libraries and of NCCL, in each process.
CUDA_CONTEXT = 1.0 * GB
FLOAT, HALF = 4, 2
# Copies of a chunk of logits in float32 at the worst moment, measured (benchmarks/plan.py):
# the product, its log-softmax, and what entropy and backward make of them.
LOGITS_COPIES, LOGITS_COPIES_ENTROPY = 4, 5
DRAWING = 33  # bytes a logit while a token is drawn: float32 twice, float64 three times, a bit
SLEEPING_ENGINE = 1.0 * GB  # of vLLM beside training: its own context; not measured
PAGED = 0.9  # of vLLM's share that its weights and cache may fill; the rest is for its forward


@dataclass(frozen=True)
class Lengths:
    """Tokens: the longest prompt and response, which decide memory, and their means."""

    prompt: int
    response: int
    mean_prompt: float
    mean_response: float

    @property
    def longest(self) -> int:
        return self.prompt + self.response


@dataclass(frozen=True)
class Item:
    """Something that is held, in words, and its bytes."""

    what: str
    bytes: float


@dataclass(frozen=True)
class Phase:
    """What a phase of a step holds besides what is always held."""

    name: str
    items: tuple[Item, ...]

    @property
    def bytes(self) -> float:
        return sum(item.bytes for item in self.items)


@dataclass(frozen=True)
class Memory:
    """Of one device: the GPU of a training process, or the memory of a process without one."""

    always: Phase
    phases: tuple[Phase, ...]

    @property
    def peak(self) -> float:
        return self.always.bytes + max((phase.bytes for phase in self.phases), default=0.0)


@dataclass(frozen=True)
class Case:
    """What decides the memory of a run."""

    shape: ModelShape
    settings: RunSettings
    hardware: Hardware
    lengths: Lengths

    @property
    def processes(self) -> int:
        return self.hardware.all_processes

    @property
    def shards(self) -> int:
        """Among how many processes weights, gradients and optimiser are spread."""
        return self.processes if self.hardware.sharded else 1

    @property
    def on_gpu(self) -> bool:
        return self.hardware.gpus > 0

    @property
    def mixed(self) -> bool:
        return self.settings.training.dtype == "bfloat16"

    @property
    def weight_bytes(self) -> int:
        """Bytes of a weight, and of its gradient."""
        return 8 if self.settings.training.dtype == "float64" else FLOAT

    @property
    def vllm(self) -> bool:
        return self.settings.rollout.engine == "vllm"

    @property
    def replays(self) -> bool:
        return self.settings.experience.replay == "trajectory"

    @property
    def group(self) -> int:
        """Trajectories of a group in the update, at most."""
        beside = self.replays and self.settings.join.place == "beside"
        return self.settings.rollout.group_size + beside * self.settings.join.count

    @property
    def prompts_sampled(self) -> int:
        """Questions of a step that one process samples, at most."""
        return -(-self.settings.batch.questions // self.processes)

    @property
    def rows_sampled(self) -> int:
        """Sequences that the torch engine of one process generates together, at most."""
        all_of_them = self.prompts_sampled * self.settings.rollout.group_size
        return min(self.settings.rollout.batch, all_of_them)

    @property
    def micro_batch_tokens(self) -> int:
        """Padded tokens of the largest forward: the budget, or one sequence that is longer."""
        batch = self.settings.batch
        sequences = -(-batch.questions * self.group // batch.updates)
        budget = self.hardware.token_budget(batch.micro_batch_tokens)
        return min(max(budget, self.lengths.longest), sequences * self.lengths.longest)


def training_memory(case: Case) -> Memory:
    """Of the device of a training process; a colocated vLLM included."""
    phases = (_rollout(case), _update(case), _optimiser_step(case))
    return Memory(Phase("always", _always(case)), phases)


def engine_memory(case: Case) -> Memory | None:
    """Of the GPU that vLLM has to itself; None where it has none."""
    if not case.vllm or case.hardware.engine != "own":
        return None
    return Memory(Phase("always", _engine_items(case)), ())


def _always(case: Case) -> tuple[Item, ...]:
    number, size = case.shape.parameters, case.weight_bytes
    share = f"1/{case.shards} of " if case.shards > 1 else ""
    items = [
        Item(f"{share}the weights, {8 * size} bits each", size * number / case.shards),
        Item(f"{share}the gradients", size * number / case.shards),
        Item(f"{share}AdamW's two moments", 2 * size * number / case.shards),
    ]
    if case.settings.objective.kl_reference:
        items.append(Item("the KL's reference model, whole", size * number))
    if not case.hardware.sharded and case.processes > 1:
        items.append(Item("buckets in which gradients are averaged", size * number))
    if case.hardware.sharded and not case.vllm:
        items.append(Item("a whole copy of the weights that samples", size * number))
    if case.on_gpu:
        items.append(Item("CUDA's context and libraries (assumed)", CUDA_CONTEXT))
    if case.on_gpu and case.vllm and case.hardware.engine == "colocated":
        items.append(Item("vLLM asleep (assumed)", SLEEPING_ENGINE))
    return tuple(items)


def _update(case: Case) -> Phase:
    shape, size, tokens = case.shape, case.weight_bytes, case.micro_batch_tokens
    items = []
    if case.replays:  # replayed and fresh rows go backward apart
        items.append(
            Item("gradients of replayed tokens, held apart", size * shape.parameters / case.shards)
        )
    if case.mixed:
        items.append(Item("weights in bfloat16 for the products", HALF * shape.matrices))
    if case.hardware.sharded:
        # Two layers gathered and one layer's gradient; embedding and head stay, with theirs.
        ends = shape.parameters - shape.num_hidden_layers * shape.layer_parameters
        items.append(Item("layers gathered whole", size * (3 * shape.layer_parameters + 2 * ends)))
    how = "inputs of layers" if case.hardware.activation_checkpointing else "activations"
    at_work = max(logits_bytes(case, tokens), tokens * working_bytes(case))
    items += [
        Item(f"{how} kept for backward, {tokens:,} tokens", tokens * kept_bytes(case)),
        Item("logits of a chunk, or a layer in backward, whichever is more", at_work),
    ]
    return Phase("update", tuple(items))


def kept_bytes(case: Case) -> float:
    """Bytes a padded token that forward keeps for backward, in all layers.

    With activation checkpointing only the input of each layer.
    """
    hidden = case.weight_bytes * case.shape.hidden_size
    ends = 4 * hidden  # embedding, the last norm, and the states that go to the head
    whole = not case.hardware.activation_checkpointing
    return ends + case.shape.num_hidden_layers * (layer_activation_bytes(case) if whole else hidden)


def working_bytes(case: Case) -> float:
    """Bytes a padded token that backward needs for the layer at work: gradients of gate, up, their
    product and the input; with activation checkpointing the layer's activations too.
    """
    shape, size = case.shape, case.weight_bytes
    gradients = (HALF if case.mixed else size) * 3 * shape.intermediate_size
    again = layer_activation_bytes(case) if case.hardware.activation_checkpointing else 0
    return gradients + 2 * size * shape.hidden_size + again


def layer_activation_bytes(case: Case) -> float:
    """Bytes a token that one layer keeps, attention by `sdpa` without its scores.

    Two norms keep their input, its normalised form and a scale; attention its input, query, key,
    value, result, and a logarithm a head; the MLP its input and four times its width. In bfloat16
    every product keeps a cast of its input for itself (query, key and value three, gate and up
    two), and the stream between the layers stays float32. Tests hold it equal to what autograd
    keeps.
    """
    shape = case.shape
    hidden, query = shape.hidden_size, shape.query_size
    key_value, inner, heads = (
        shape.key_value_size,
        shape.intermediate_size,
        shape.num_attention_heads,
    )
    if case.mixed:
        stream = FLOAT * 4 * hidden
        products = HALF * (5 * hidden + 2 * query + 2 * key_value + 4 * inner)
        return stream + products + FLOAT * (heads + 2)
    numbers = 6 * hidden + 2 * query + 2 * key_value + 4 * inner + heads + 2
    return case.weight_bytes * numbers


def logits_bytes(case: Case, tokens: int) -> float:
    """What is at work on a chunk of logits, and the gradient of the head that comes of it."""
    shape = case.shape
    chunks = -(-tokens * shape.vocab_size // HEAD_LOGITS)
    chunk = -(-tokens // chunks) * shape.vocab_size
    bonus = case.settings.objective.entropy_bonus > 0
    copies = LOGITS_COPIES_ENTROPY if bonus else LOGITS_COPIES
    at_work = chunk * (copies * case.weight_bytes + case.mixed * HALF)
    return at_work + case.weight_bytes * shape.embedding * min(chunks, 2)


def _optimiser_step(case: Case) -> Phase:
    """AdamW's temporary values: on a GPU for all weights at once, else for one after the other."""
    if case.on_gpu:
        number = case.shape.parameters / case.shards
        return Phase("optimiser step", (Item("AdamW's temporary values", FLOAT * number),))
    largest = max(case.shape.embedding, case.shape.intermediate_size * case.shape.hidden_size)
    temporary = 2 * case.weight_bytes * largest
    return Phase("optimiser step", (Item("AdamW's temporary values", temporary),))


def _rollout(case: Case) -> Phase:
    if not case.vllm:
        return Phase("rollout", _torch_rollout(case))
    if case.hardware.engine == "colocated" and case.hardware.gpu_memory:
        return Phase("rollout", _engine_items(case))
    return Phase("rollout", ())


def _torch_rollout(case: Case) -> tuple[Item, ...]:
    """The torch engine: stacked weights, caches of prompts and batch, one token's logits."""
    shape, size = case.shape, case.weight_bytes
    rows, prompts = case.rows_sampled, case.prompts_sampled
    # In bfloat16 all matrices are cast once; a key stays float32, a value does not.
    stacked = HALF * shape.matrices if case.mixed else size * shape.stacked_parameters
    number = (FLOAT + HALF) / 2 if case.mixed else size
    tokens = rows * case.lengths.longest + prompts * case.lengths.prompt
    return (
        Item("weights stacked for decoding", stacked),
        Item(
            f"key-value cache of {rows} sequences of {case.lengths.longest:,} tokens and of "
            f"{prompts} prompts",
            number * shape.cache_values * tokens,
        ),
        Item("logits while a token is drawn", DRAWING * rows * shape.vocab_size),
    )


def engine_weights(case: Case) -> float:
    """Bytes of vLLM's weights."""
    size = HALF if case.settings.rollout.engine_dtype == "bfloat16" else FLOAT
    return size * case.shape.parameters


def engine_share(case: Case) -> float:
    """Bytes of its GPU that vLLM may take when awake."""
    return case.hardware.engine_memory * (case.hardware.gpu_memory or 0) * GB


def cache_bytes(case: Case) -> float:
    """Bytes of vLLM's key-value cache for one sequence of the greatest length."""
    size = HALF if case.settings.rollout.engine_dtype == "bfloat16" else FLOAT
    return size * case.shape.cache_values * case.lengths.longest


def sequences_at_once(case: Case) -> int:
    """Sequences of the greatest length for which vLLM has room; more of them wait."""
    return int(max(0.0, PAGED * engine_share(case) - engine_weights(case)) // cache_bytes(case))


def _engine_items(case: Case) -> tuple[Item, ...]:
    share, weights = engine_share(case), engine_weights(case)
    room = sequences_at_once(case)
    return (
        Item(f"vLLM's weights, {case.settings.rollout.engine_dtype}", weights),
        Item(
            f"the rest of vLLM's share ({case.hardware.engine_memory:.0%} of the GPU): a key-value "
            f"cache for {room:,} sequences of {case.lengths.longest:,} tokens",
            max(0.0, share - weights),
        ),
    )
