# SPDX-License-Identifier: Apache-2.0
"""tigon_training over two ranks on a CPU: that they train what one process does, and what becomes of a rank that fails."""
import os
import pathlib
import signal
import types
import unittest
import unittest.mock

import torch
import torch.distributed
from test_training import HAS_TRANSFORMERS, run_program
from tigon_report import schema
from tigon_training import case, collectives, links, place, ranks, sharded, trained, turns, variants
from torch.autograd import DeviceType

HERE = pathlib.Path(__file__).resolve().parent
TWO = ("--ranks", "2", "--layout")


def turns_of(records):
    return [record for record in records if record["record"] == "training"]


@unittest.skipUnless(HAS_TRANSFORMERS and torch.distributed.is_available() and not torch.cuda.is_available(), "no transformers or gloo, or there is a GPU")
class TrainingTest(unittest.TestCase):
    def check_losses(self, model, layout, *more):
        """Records of eager and tigon, with a batch of 2 on each of two ranks; their losses are those of a batch of 4."""
        code, records, printed = run_program(f"{model},batch=2,length=16,checkpointing", *TWO, layout, "--variants", "eager,tigon", "--warmup", "1",
                                             "--steps", "3", *more)
        self.assertEqual(code, 0, printed)
        self.assertEqual([found for record in records if (found := schema.violation(record))], [])
        one = trained.Trained(case.parse(f"{model},batch=4,length=16"), "eager", 42)
        for record in turns_of(records):
            whole = one.turn(record["round"], 1, 3)["loss"]
            self.assertLess(abs(record["loss"][0] - whole[0]), 2e-4)  # before any of the weights is another
            self.assertLess(max(abs(a - b) for a, b in zip(record["loss"], whole)), 2e-3)
            self.assertEqual((record["ranks"], record["layout"], record["devices"], record["links"]), (2, layout, ["host"] * 2, ""))
            self.assertEqual((record["tokens_per_step"], record["parameters"], len(record["seconds_s"])), (64, one.count, 3))
        self.assertIn(f"{model}, B=2 on each of 2 ranks ({layout}), T=16, checkpointing: tigon, round 0: ran", printed)
        return turns_of(records)

    def test_two_ranks_train_what_one_process_does(self):
        found = self.check_losses("tiny", "fsdp2", "--rounds", "2")
        self.assertEqual([(r["variant"], r["round"]) for r in found], [("eager", 0), ("tigon", 0), ("tigon", 1), ("eager", 1)])
        self.assertIn("replaced: 1 loss, 2 rope, 2 mlp, 5 norm; left: 0", found[1]["what"])

    def test_tied_weights_stay_tied(self):
        self.check_losses("qwen3-tiny", "fsdp2", "--rounds", "1")

    @unittest.skipUnless(sharded.HAS_DEEPSPEED, "deepspeed is not installed")
    def test_zero3_trains_what_one_process_does(self):
        self.check_losses("tiny", "zero3", "--rounds", "2")

    def test_the_longest_sequence_and_what_does_not_run(self):
        code, records, printed = run_program("tiny,batch=1,length=8", *TWO, "fsdp2", "--longest", "16", "--variants", "eager,liger,float32", "--warmup", "0",
                                             "--steps", "1")
        self.assertEqual(code, 0, printed)
        self.assertEqual([(r["variant"], r["length"], r["verdict"], r["reason"]) for r in turns_of(records)], [
            ("eager", 8, "passed", ""), ("liger", 8, "unsupported", "Liger's kernels need a GPU"),
            ("float32", 8, "unsupported", "float32 takes weights that are whole"), ("eager", 16, "passed", "")])
        self.assertIn("longest T from tiny, B=1 on each of 2 ranks (fsdp2), T=8: Hugging Face 16, Liger none", printed)


@unittest.skipUnless(HAS_TRANSFORMERS and torch.distributed.is_available() and not torch.cuda.is_available(), "no transformers or gloo, or there is a GPU")
class FailureTest(unittest.TestCase):
    REQUEST = {"warmup": 0, "steps": 2}

    def turns_of(self, both, *cases):
        """(batch, round, verdict, reason) of each turn."""
        found = [(case.batch, number, answer["verdict"], answer["reason"])
                 for case, _, number, answer in turns.in_turns([both], [case.parse(text) for text in cases], 2, self.REQUEST)]
        both.close()
        return found

    def test_a_rank_that_fails_ends_the_others_and_the_next_case_is_trained(self):
        path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
        with unittest.mock.patch.object(turns, "WORKER", "faulty_worker"), unittest.mock.patch.dict(os.environ, PYTHONPATH=path):
            both = ranks.Ranks("eager", 1, 2, "fsdp2")
            first = [process._process for process in both._processes]
            found = self.turns_of(both, "tiny,batch=3,length=8", "tiny,batch=2,length=8")
        self.assertEqual(found, [(3, 0, "oom", "rank 1: CUDA out of memory"), (2, 0, "passed", ""), (2, 1, "passed", "")])
        self.assertEqual([process.returncode for process in first], [-signal.SIGKILL] * 2)

    def test_a_rank_that_ends_is_a_crash(self):
        both = ranks.Ranks("eager", 1, 2, "fsdp2")
        both.hello()
        both._processes[1].end()
        self.assertEqual(self.turns_of(both, "tiny,batch=1,length=8"), [(1, 0, "crashed", "rank 1: its process ended with code -9")])

    def test_a_rank_that_hangs_is_ended(self):
        both = ranks.Ranks("eager", 1, 2, "fsdp2")
        both.hello()
        for process in both._processes:
            process._limit_s = 1
        both._processes[1]._process.send_signal(signal.SIGSTOP)
        (_, _, verdict, reason), = self.turns_of(both, "tiny,batch=1,length=8")
        self.assertEqual(verdict, "timeout")
        self.assertRegex(reason, "^rank [01]: no answer within 1 s; its process was ended$")


class UnavailableTest(unittest.TestCase):
    def test_zero3_without_deepspeed_is_said(self):
        with unittest.mock.patch.object(sharded, "HAS_DEEPSPEED", False), self.assertRaisesRegex(variants.Unavailable, "pip install deepspeed"):
            sharded.Zero3(case.parse("tiny"), "eager", 1)

    def test_too_few_gpus_are_said(self):
        with unittest.mock.patch.object(torch.cuda, "device_count", return_value=1), self.assertRaisesRegex(variants.Unavailable, "there is 1$"):
            place.Place(1, 2, "fsdp2").join()


class AnswerTest(unittest.TestCase):
    def test_of_ranks_it_is_the_mean_loss_the_slowest_time_and_the_most_memory(self):
        of_rank = {"loss": [4.0, 2.0], "seconds_s": [1.0, 4.0], "peak_bytes": 7, "reserved_bytes": None, "what": "w", "collective_s": 0.5}
        other = {"loss": [5.0, 1.0], "seconds_s": [2.0, 3.0], "peak_bytes": 8, "reserved_bytes": None, "what": "w", "collective_s": 0.75}
        self.assertEqual(ranks.merged([of_rank, other]), {**of_rank, "loss": [4.5, 1.5], "seconds_s": [2.0, 4.0], "peak_bytes": 8})


class LinksTest(unittest.TestCase):
    TOPOLOGY = ("\t\x1b[4mGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\x1b[0m\nGPU0\t X \tNV18\tSYS\tPIX\t0-31\nGPU1\tNV18\t X \tNV18\tPIX\t0-31\n"
                "GPU2\tSYS\tNV18\t X \tSYS\t0-31\nNIC0\tPIX\tPIX\tSYS\t X \n\nLegend:\n\n  X    = Self\n")

    def test_what_nvidia_smi_prints(self):
        for gpus, found in (("01", "NVLink 18"), ("012", "NVLink 18, SYS"), ("20", "SYS"), ("1", ""), ("07", "")):
            self.assertEqual(links.of_topology(self.TOPOLOGY, list(gpus)), found, gpus)
        self.assertEqual(links.of_topology("no devices were found", ["0", "1"]), "")


class CollectivesTest(unittest.TestCase):
    def test_what_no_other_kernel_hides(self):
        def event(name, start, end, device=DeviceType.CUDA, is_user_annotation=False):
            return types.SimpleNamespace(name=name, device_type=device, is_user_annotation=is_user_annotation,
                                         time_range=types.SimpleNamespace(start=start * 1e6, end=end * 1e6))

        found = collectives.times([event("ncclDevKernel_AllGather_RING_LL", 0, 4), event("gemm", 1, 2), event("gemm", 1.5, 3), event("gemm", 6, 9),
                                   event("ncclDevKernel_ReduceScatter", 8, 11), event("nccl:_all_gather_base", 0, 20, is_user_annotation=True),
                                   event("aten::mm", 0, 20, DeviceType.CPU)])
        self.assertEqual(found, {"collective_s": 7.0, "exposed_s": 4.0})
        self.assertEqual(collectives.times([]), {"collective_s": 0.0, "exposed_s": 0.0})


if __name__ == "__main__":
    unittest.main()
