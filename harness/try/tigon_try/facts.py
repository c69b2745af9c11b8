# SPDX-License-Identifier: Apache-2.0
"""Static facts of the file's kernels: what nvcc makes of them, per architecture."""
import json
import time

from tigon_trees import kernel_facts, sources

from . import compiler

ARCHITECTURES = ("sm_80", "sm_90a")


def stage(log, job, build, nvcc, of_op, passes, dtypes):
    """{(kernel, architecture): facts}; nothing where there is no nvcc."""
    begun = time.monotonic()
    if nvcc is None:
        log.add("static facts", "not run", "no nvcc here: registers, spills, shared memory and SASS size are unknown", begun)
        return {}
    unit = job.folder / "facts.cu"
    unit.write_text(compiler.generated(of_op, job.shown, job.text, passes, dtypes, False))
    flags = ("-std=c++20", "-O3", f"-I{job.shown.parent.resolve()}")
    facts = {}
    try:
        for arch in ARCHITECTURES:
            of_arch = kernel_facts.of_unit(sources.Unit(build.root, str(unit.resolve()), flags, ()), arch, nvcc)
            facts.update({(name, arch): one for name, one in of_arch.items()})
    except kernel_facts.CompileError as error:
        log.add("static facts", "FAILED", "nvcc refuses it", begun, [str(error)])
        from .stages import Stop
        raise Stop(2) from error
    (job.folder / "facts.json").write_text(json.dumps([{"kernel": name, "arch": arch, **one} for (name, arch), one in facts.items()],
                                                      indent=1) + "\n")
    spills = sum(one["spill_bytes"] > 0 for one in facts.values())
    text = f"{len(facts)} kernels for {', '.join(ARCHITECTURES)}" + (f"; {spills} spill registers" if spills else "; no spills")
    log.add("static facts", "ok", text, begun)
    return facts
