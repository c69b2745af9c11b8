"""Source trees of commits, their builds, and facts of the kernels in them: for the gate, `try` and `reproduce`."""
