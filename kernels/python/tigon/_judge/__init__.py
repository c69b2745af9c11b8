# SPDX-License-Identifier: Apache-2.0
"""tigon.judge: candidates in files of their own against references, by people or machines that are not trusted.

problem.py    the reference's file: what it computes, of which inputs
flashinfer.py, workload.py, trace.py    the same in FlashInfer-Bench's format
opinfo.py     the same in BackendBench's
submission.py what a candidate hands in
failures.py   why it is not judged right
inputs.py     inputs that a candidate cannot know
worker.py     the candidate's process, which has nothing of the judge
process.py    that process from outside
verdict.py    the calls, and what came of them
reward.py     that as a number

entry.py      a line of a batch
batch.py      many of them, some at a time
server.py     a judge's process of a batch
results.py    the file of verdicts that a batch goes on with
junit.py      verdicts as CI services read them
page.py       verdicts as a page of HTML, defences.py: with what ran against cheats
files.py      how such files are written
"""
