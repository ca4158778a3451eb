"""The figures of a GPU: `python -m tests.gpu_figures --out FILE`. Needs what grades need, no tool of tests."""
