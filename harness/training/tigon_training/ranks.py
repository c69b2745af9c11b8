# SPDX-License-Identifier: Apache-2.0
"""The processes of a variant that is trained over several ranks, which answer as one."""
import concurrent.futures
import statistics
import tempfile

from .place import Place
from .turns import LIMIT_S, Process

KEEP_MEMORY = {"zero3"}  # layouts whose processes must end to give it back: DeepSpeed's engines stay
GRACE_S = 2  # for the rank that ended to be seen behind those that lost it


class Ranks:
    """A process of each rank.

    Where one fails, the others wait for it in a collective. So they are ended, and all start anew when they are asked again.
    """

    def __init__(self, variant, seed, ranks, layout, limit_s=LIMIT_S):
        self.variant, self._seed, self._ranks, self._layout, self._limit_s = variant, seed, ranks, layout, limit_s
        self._start()

    def _start(self):
        self._folder = tempfile.TemporaryDirectory(prefix="tigon-training-")
        self._processes = [Process(self.variant, self._seed, self._limit_s, Place(rank, self._ranks, self._layout, f"{self._folder.name}/meeting"))
                           for rank in range(self._ranks)]

    def hello(self):
        """What the first runs on, when all are ready. ValueError: one ended before."""
        return [process.hello() for process in self._processes][0]

    def devices(self):
        """The name of each one's device."""
        return [name for process in self._processes for name in process.devices()]

    def turn(self, request):
        """The answer of all, or of the one that failed."""
        if not self._processes:
            self._start()
        with concurrent.futures.ThreadPoolExecutor(self._ranks) as pool:
            asked = {pool.submit(process.turn, request): rank for rank, process in enumerate(self._processes)}
            if failed := _failed(asked):
                self._end()
                return failed
        if self._layout in KEEP_MEMORY:
            self.close()
        return merged([done.result() for done in asked])

    def _end(self):
        for process in self._processes:
            process.end()
        self.close()

    def close(self):
        """Ends them, together: a rank leaves when all do."""
        with concurrent.futures.ThreadPoolExecutor(self._ranks) as pool:
            list(pool.map(Process.close, self._processes))
        self._processes = []
        self._folder.cleanup()


def _failed(asked):
    """The answer of a rank that failed, with its name, or None. A rank that ended comes before those that lost it."""
    if all(done.result()["verdict"] == "passed" for done in concurrent.futures.as_completed(asked)):
        return None
    done = concurrent.futures.wait(asked, GRACE_S).done
    answers = {asked[one]: one.result() for one in done if one.result()["verdict"] != "passed"}
    rank = min(answers, key=lambda rank: (answers[rank]["verdict"] not in ("timeout", "crashed"), rank))
    answer = answers[rank]
    return answer if answer["verdict"] == "unsupported" else {**answer, "reason": f"rank {rank}: {answer['reason']}"}


def merged(answers):
    """The mean of losses, times of the slowest rank, memory of the one that takes most."""
    most = {key: max((answer[key] for answer in answers if answer[key] is not None), default=None) for key in ("peak_bytes", "reserved_bytes")}
    return {**answers[0], **most, "loss": [statistics.fmean(of_step) for of_step in zip(*(answer["loss"] for answer in answers))],
            "seconds_s": [max(of_step) for of_step in zip(*(answer["seconds_s"] for answer in answers))]}
