# SPDX-License-Identifier: Apache-2.0
"""Who of a process group raised an error."""
import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def errors_name_their_rank(function: Callable[P, T]) -> Callable[P, T]:
    """The function, whose errors begin with the rank that raised them where there is a process group: the other ranks only wait."""
    @functools.wraps(function)
    def named(*args: P.args, **kwargs: P.kwargs) -> T:
        import torch.distributed as dist

        try:
            return function(*args, **kwargs)
        except (RuntimeError, TypeError, ValueError) as error:
            if not dist.is_available() or not dist.is_initialized():
                raise
            raise type(error)(f"rank {dist.get_rank()}: {error}") from error
    return named
