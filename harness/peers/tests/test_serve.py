# SPDX-License-Identifier: Apache-2.0
"""Tests of a peer's process: what it makes ready, and its memory. Run: python3 harness/peers/tests/test_serve.py"""
import importlib.util
import pathlib
import sys
import types
import unittest
import unittest.mock

PEERS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PEERS), str(PEERS.parent / "worker")]

HAS_TORCH = importlib.util.find_spec("torch") is not None


@unittest.skipUnless(HAS_TORCH, "SKIPPED: this Python has no torch")
class PrepareTest(unittest.TestCase):
    """What a peer compiles before it is asked for anything."""

    def called(self, prepares, has_room=lambda tensors: True):
        """Sums of x in the calls of a peer whose function fails every other time."""
        import torch
        from tigon_peers import backends, serve
        peer, sums = serve.Peer("torch"), []

        def softmax(x):
            sums.append(float(x.sum()))
            if len(sums) % 2 == 0:
                raise RuntimeError("no softmax today")
            return x

        peer.module = types.SimpleNamespace(softmax_forward=softmax, PREPARES=prepares)
        peer.backend = backends.Torch(torch)
        peer.backend.has_room_for = has_room
        tensor = {"at": 0, "dtype": 2, "sizes": [4, 8], "strides": [8, 1]}
        op = {"name": "softmax", "pass": "forward", "autograd": {"outputs": ["y"], "upstream": {}, "of": {}}, "options": [],
              "tensors": [{"name": name, "role": role, "is_required": True, "is_on_request": False} for name, role in (("x", "in"), ("y", "out"))]}
        request = {"do": "warm", "op": op, "call": {"tensors": [tensor, tensor], "options": []}}
        answer = peer.answer({"do": "prepare", "bytes": 0, "requests": [request] * 3})
        self.assertEqual(answer["verdict"], "passed")
        return sums

    def test_every_call_on_zeros_and_failures_are_left_for_later(self):
        self.assertEqual(self.called(True), [0.0] * 6)

    def test_nothing_without_a_compiler_or_room(self):
        self.assertEqual(self.called(False), [])
        self.assertEqual(self.called(True, lambda tensors: False), [])


@unittest.skipUnless(HAS_TORCH, "SKIPPED: this Python has no torch")
class LockedPagesTest(unittest.TestCase):
    """What is asked of the CUDA runtime where memory is mapped and grows."""

    class Cudart:
        cudaError = types.SimpleNamespace(success=0)

        def __init__(self, answer):
            self.answer, self.asked = answer, []

        def cudaHostRegister(self, pointer, size, flags):
            self.asked.append(("lock", pointer, size))
            return self.answer

        def cudaHostUnregister(self, pointer):
            self.asked.append(("unlock", pointer))

    def asked(self, answer):
        """(what was asked for two memories, their addresses, whether a launch cleared the error each time)."""
        import torch
        from tigon_peers import backends
        backend, launches, addresses = backends.Torch(torch), [], []
        backend.on_gpu = True
        cudart = self.Cudart(answer)
        with unittest.mock.patch("torch.cuda.cudart", return_value=cudart), \
                unittest.mock.patch("torch.arange", side_effect=lambda *_, **__: launches.append(1) or self.fail_launch()):
            for size in (8, 24):
                backend.map(bytearray(size))
                addresses.append(backend.memory.data_ptr())
        return cudart.asked, addresses, len(launches)

    @staticmethod
    def fail_launch():
        raise RuntimeError("CUDA error: of the call before")

    def test_those_before_are_given_back(self):
        asked, (first, second), launches = self.asked(0)
        self.assertEqual(asked, [("lock", first, 8), ("unlock", first), ("lock", second, 24)])
        self.assertEqual(launches, 0)

    def test_a_refusal_is_no_error_of_a_later_call(self):
        asked, (first, second), launches = self.asked(2)
        self.assertEqual(asked, [("lock", first, 8), ("lock", second, 24)])
        self.assertEqual(launches, 2)


if __name__ == "__main__":
    unittest.main()
