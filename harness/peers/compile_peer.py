# SPDX-License-Identifier: Apache-2.0
# The eager ops of torch_peer.py through torch.compile with its default options, compiled again for each shape.
import torch
import torch._functorch.config
import torch._inductor.config
import torch_peer

PACKAGE = "torch"
PREPARES = True  # its code is kept on disk; what a kernel's launch is tuned by is not, but timed where nobody else has the GPU
torch._inductor.config.autotune_local_cache = False  # pylint: disable=protected-access
# A backward that is timed with retain_graph may not give its saved tensors away.
torch._functorch.config.donated_buffer = False  # pylint: disable=protected-access


def compiled(function):
    made = torch.compile(function, dynamic=False)
    if hasattr(function, "prepare"):
        made.prepare = function.prepare
    return made


rms_norm = compiled(torch_peer.rms_norm)
add_rms_norm = compiled(torch_peer.add_rms_norm)
layer_norm = compiled(torch_peer.layer_norm)
rope = compiled(torch_peer.rope)
swiglu = compiled(torch_peer.swiglu)
geglu = compiled(torch_peer.geglu)
softmax = compiled(torch_peer.softmax)
log_prob = compiled(torch_peer.log_prob)
cross_entropy = compiled(torch_peer.cross_entropy)
linear_cross_entropy = compiled(torch_peer.linear_cross_entropy)
linear_log_prob = compiled(torch_peer.linear_log_prob)
linear_policy = compiled(torch_peer.linear_policy)
divergence = compiled(torch_peer.divergence)
linear_divergence = compiled(torch_peer.linear_divergence)
rms_norm_saved = torch_peer.rms_norm_saved
add_rms_norm_saved = torch_peer.add_rms_norm_saved
layer_norm_saved = torch_peer.layer_norm_saved
log_prob_saved = torch_peer.log_prob_saved
linear_divergence_saved = torch_peer.linear_divergence_saved
linear_log_prob_saved = torch_peer.linear_log_prob_saved
divergence_saved = torch_peer.divergence_saved
cross_entropy_saved = torch_peer.cross_entropy_saved
