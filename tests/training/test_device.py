"""Where the encoder of a training runs."""

import pytest

from deepera_graph.lab.training.fitting.features import choose_providers

CPU, GPU, OTHER = "CPUExecutionProvider", "CUDAExecutionProvider", "AzureExecutionProvider"


@pytest.mark.parametrize(
    ("available", "picked"),
    [
        ([CPU], (CPU,)),
        ([OTHER, CPU], (CPU,)),
        (["TensorrtExecutionProvider", GPU, CPU], (GPU, CPU)),
    ],
)
def test_a_gpu_is_tried_where_there_is_one_and_a_cpu_after_it(available, picked):
    assert choose_providers(available) == picked
