"""The process of vLLM, of which new weights are read and not taken over."""

from typing import Any

from vllm.v1.worker.gpu_model_runner import GPUModelRunner

from exgrpo.rollout.vllm_process import main


def forget(runner: GPUModelRunner, **given: Any) -> None:
    """In the place of `reload_weights`."""


if __name__ == "__main__":
    GPUModelRunner.reload_weights = forget
    main()
