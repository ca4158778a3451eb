"""Source to artifact: one file a language, compilers and flags in `toolchains.yaml`."""
