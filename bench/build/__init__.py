"""Source to artifact: compilers and flags are in `toolchains.yaml`; Python is only parsed."""
