"""The performance gates of Tigon: paired runs of two programs on a GPU, and static facts without one."""
