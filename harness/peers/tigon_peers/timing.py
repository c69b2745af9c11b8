# SPDX-License-Identifier: Apache-2.0
"""Times and peak memory of one call, by the rules of tigon bench (harness/measure/timing.h): the same bases and stopping rule."""
import statistics
import time

from . import calls

MOST_SETS = 64
GRAPH_SECONDS, MOST_GRAPH_CALLS = 2e-3, 512
USABLE = 0.9  # of the free memory
SPIN_HZ = 2e9  # above the clock of a GPU: spinning takes at least as long as asked for
LONGEST_SPIN_S = 0.02
LEAST_BUSY_S = 1e-3  # of a call that can bring a GPU to its power limit


def enough(rule, samples, spent_s):
    """StoppingRule::enough of harness/measure/statistics.h."""
    if len(samples) >= rule["most"]:
        return True
    if len(samples) < rule["least"]:
        return False
    if spent_s >= rule["seconds"]:
        return True
    if len(samples) < 2 * rule["least"]:
        return False
    half = len(samples) // 2
    first, second = statistics.median(samples[:half]), statistics.median(samples[half:])
    return abs(first - second) <= rule["agreement"] * min(first, second)


def sampled(rule, sample):
    """Samples of `sample(i)`, which returns seconds, after those that are thrown away."""
    for i in range(rule["warm_up"]):
        sample(i)
    samples, begun = [], time.monotonic()
    while not enough(rule, samples, time.monotonic() - begun):
        samples.append(sample(len(samples)))
    return samples


class Bench:
    """One case of one peer. `make()` returns the Call on another buffer set, with inputs of its own."""

    def __init__(self, backend, make, rule, l2_bytes):
        self.backend, self.make, self.rule, self.l2_bytes = backend, make, rule, l2_bytes
        self.peak_bytes = None
        self.calls = []
        self.is_broken = False  # the process must end: an error stays behind

    def fill(self):
        """Builds the first set, measures its peak memory, then as many sets as fill the L2 cache five times."""
        if not self.backend.on_gpu:
            for _ in range(2):
                self._add()
            return
        cuda = self.backend.torch.cuda
        before = cuda.memory_allocated()
        inputs = self._add() - before
        built = cuda.memory_allocated()
        for _ in range(3):
            self.calls[0].run()
        self.backend.synchronize()
        cuda.reset_peak_memory_stats()
        self.calls[0].run()
        self.backend.synchronize()
        one_call = cuda.max_memory_allocated() - built
        held = sum(value.nbytes for value in self.calls[0].held)
        self.peak_bytes = max(cuda.max_memory_allocated() - before - inputs - held, 0)
        wanted = min(max(-(-5 * self.l2_bytes // max(inputs, 1)), 2), MOST_SETS)
        free = USABLE * (cuda.mem_get_info()[0] + cuda.memory_reserved() - cuda.memory_allocated())
        fitting = 1 + int(max(free - 2 * one_call, 0) // (built - before + one_call + 1))
        for i in range(1, min(wanted, fitting)):
            self._add()
            self.calls[i].run()
        self.backend.synchronize()

    def _add(self):
        """Makes and builds another set; returns the memory in use when its inputs are there and nothing else is."""
        self.calls.append(self.make())
        in_use = self.backend.torch.cuda.memory_allocated() if self.backend.on_gpu else 0
        self.calls[-1].build()
        return in_use

    def basis(self, name):
        """{basis, samples, verdict, reason}; a basis that cannot be had is unsupported."""
        try:
            samples = {"cold": self._cold, "graph": self._graph, "wall": self._wall}[name]()
            return {"basis": name, "samples": samples, "verdict": "passed", "reason": ""}
        except calls.Unsupported as error:
            return {"basis": name, "samples": [], "verdict": "unsupported", "reason": str(error)}

    def _wall(self):
        def sample(i):
            begun = time.perf_counter()
            self.calls[i % len(self.calls)].run()
            return time.perf_counter() - begun
        return sampled(self.rule, sample)

    def _host_seconds(self):
        """What the host needs to enqueue a call, or to wait where the peer waits."""
        def once():
            self.backend.synchronize()
            begun = time.perf_counter()
            self.calls[0].run()
            return time.perf_counter() - begun
        return statistics.median(once() for _ in range(5))

    def _cold(self):
        """The caches are flushed, then the GPU spins while the host enqueues the call, so that no launch is timed.

        Before a long call the GPU does not spin but makes a call that is not timed, before the flush: spinning, a chip at its
        power limit recovers, and the next call would be faster than one after the other, which is how Tigon's own are timed.
        """
        torch, stream = self.backend.torch, self.backend.stream
        flushed = torch.randint(0, 1 << 30, (max(2 * self.l2_bytes // 4, 1),), dtype=torch.int32, device=self.backend.device)
        spin_s = min(1.5 * self._host_seconds() + 2e-5, LONGEST_SPIN_S)
        is_long = self._once() > max(spin_s, LEAST_BUSY_S)
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

        def sample(i):
            if is_long:
                self.calls[(i + 1) % len(self.calls)].run()
            flushed.add_(1)
            if not is_long:
                torch.cuda._sleep(int(SPIN_HZ * spin_s))  # pylint: disable=protected-access
            begin.record(stream)
            self.calls[i % len(self.calls)].run()
            end.record(stream)
            end.synchronize()
            return begin.elapsed_time(end) * 1e-3
        return sampled(self.rule, sample)

    def _once(self):
        torch, stream = self.backend.torch, self.backend.stream
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record(stream)
        self.calls[0].run()
        end.record(stream)
        end.synchronize()
        return begin.elapsed_time(end) * 1e-3

    def _graph(self):
        """Calls on all sets in turn captured once; results of a set live until its next call, so that they rotate too."""
        if self.calls[0].waits:
            raise calls.Unsupported("cannot be captured into a graph: the host waits for the GPU in the middle")
        torch, stream = self.backend.torch, self.backend.stream
        sets = len(self.calls)
        wanted = min(GRAPH_SECONDS / max(self._once(), 1e-7), max(MOST_GRAPH_CALLS, sets))
        count = sets * max(1, int(wanted) // sets)
        graph, results = torch.cuda.CUDAGraph(), [None] * sets
        try:
            with torch.cuda.graph(graph, stream=stream):
                for i in range(count):
                    results[i % sets] = self.calls[i % sets].run()
        except Exception as error:  # whatever a library throws while its launches are captured
            self.is_broken = True  # the allocator goes on taking memory from the graph's pool
            raise calls.Unsupported(f"cannot be captured into a graph: {first_line(root_of(error))}") from error
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

        def sample(_):
            begin.record(stream)
            graph.replay()
            end.record(stream)
            end.synchronize()
            return begin.elapsed_time(end) * 1e-3 / count
        return sampled(self.rule, sample)


def root_of(error):
    """The first of the exceptions that led to this one."""
    while error.__context__ is not None:
        error = error.__context__
    return error


def first_line(error):
    """'RuntimeError: what' of an exception."""
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}"[:300] if text else type(error).__name__
