# SPDX-License-Identifier: Apache-2.0
"""Problems in the judge's formats, and right candidates for them."""
from typing import NamedTuple


class Problem(NamedTuple):
    """A reference's file, and the body of right functions of the same arguments."""
    reference: str
    right: tuple[str, ...]


PROBLEMS = {
    "rms_norm": Problem("""
def reference(x, w): return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w
def get_inputs(rows=24, columns=48): return [torch.randn(rows, columns), torch.rand(columns) + 0.5]
""", ("def right(x, w): return F.rms_norm(x, w.shape, w, 1e-6)",
      "def right(x, w): return w * x / (x.flip(-1).square().sum(-1, keepdim=True) / x.shape[-1] + 1e-6).sqrt()")),
    "softmax": Problem("""
def reference(x): return F.softmax(x, -1)
def get_inputs(rows=16, columns=80): return [torch.randn(rows, columns) * 3]
""", ("def right(x):\n    e = (x - x.detach().amax(-1, keepdim=True)).exp()\n    return e / e.sum(-1, keepdim=True)",
      "def right(x): return (x - x.logsumexp(-1, keepdim=True)).exp()")),
    "swiglu": Problem("""
def reference(a, b): return F.silu(a) * b
def get_inputs(rows=16, columns=40): return [torch.randn(rows, columns), torch.randn(rows, columns)]
""", ("def right(a, b): return a * torch.sigmoid(a) * b", "def right(a, b): return b * torch.sigmoid(a) * a")),
    "cross_entropy": Problem("""
def reference(x, target): return F.cross_entropy(x, target, reduction='none')
def get_inputs(): return [torch.randn(20, 50), torch.randint(0, 50, (20,))]
""", ("def right(x, target): return x.logsumexp(-1) - x.gather(-1, target[:, None])[:, 0]",)),
    "attention": Problem("""
def reference(q, k, v): return torch.softmax(q @ k.transpose(-1, -2) / 4, -1) @ v
def get_inputs(): return [torch.randn(2, 10, 16) for _ in range(3)]
""", ("def right(q, k, v): return F.scaled_dot_product_attention(q, k, v, scale=0.25)",)),
    "linear": Problem("""
class Model(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.linear, self.norm = nn.Linear(inner, outer), nn.LayerNorm(outer)
    def forward(self, x): return F.gelu(self.norm(self.linear(x)))
def get_inputs(): return [torch.randn(12, 32)]
def get_init_inputs(): return [32, 24]
""", ("def right(self, x): return F.gelu(self.norm(x @ self.linear.weight.T + self.linear.bias))",)),
    "matrix product": Problem("""
def reference(a, b): return a @ b
def get_inputs(rows=24, inner=40, columns=16): return [torch.randn(rows, inner), torch.randn(inner, columns)]
""", ("def right(a, b): return torch.einsum('ik,kj->ij', a, b)", "def right(a, b): return (a[:, None, :] * b.T[None]).sum(-1)")),
    "batched product": Problem("""
def reference(a, b): return torch.bmm(a, b)
def get_inputs(): return [torch.randn(3, 8, 12), torch.randn(3, 12, 10)]
""", ("def right(a, b): return torch.stack([x @ y for x, y in zip(a, b)])",)),
    "layer_norm": Problem("""
def reference(x, w, b): return F.layer_norm(x, w.shape, w, b)
def get_inputs(rows=20, columns=56): return [torch.randn(rows, columns), torch.rand(columns) + 0.5, torch.randn(columns)]
""", ("def right(x, w, b):\n    d = x - x.mean(-1, keepdim=True)\n    return d * torch.rsqrt(d.square().mean(-1, keepdim=True) + 1e-5) * w + b",)),
    "group_norm": Problem("""
def reference(x): return F.group_norm(x, 4)
def get_inputs(): return [torch.randn(6, 8, 14)]
""", ("def right(x):\n    g = x.reshape(x.shape[0], 4, -1)\n    d = g - g.mean(-1, keepdim=True)\n"
      "    return (d * torch.rsqrt(d.square().mean(-1, keepdim=True) + 1e-5)).reshape(x.shape)",)),
    "rope": Problem("""
def reference(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat([-b, a], -1) * sin
def get_inputs():
    angles = torch.rand(12, 16).mul(6).repeat(1, 2)
    return [torch.randn(4, 12, 32), angles.cos(), angles.sin()]
""", ("def right(x, cos, sin):\n    h = x.shape[-1] // 2\n    a, b = x[..., :h], x[..., h:]\n"
      "    return torch.cat([a * cos[..., :h] - b * sin[..., :h], b * cos[..., h:] + a * sin[..., h:]], -1)",)),
    "log_softmax": Problem("""
def reference(x): return F.log_softmax(x, -1)
def get_inputs(rows=18, columns=70): return [torch.randn(rows, columns) * 2]
""", ("def right(x): return x - x.logsumexp(-1, keepdim=True)",)),
    "prefix sum": Problem("""
def reference(x): return x.cumsum(-1)
def get_inputs(rows=14, columns=60): return [torch.randn(rows, columns)]
""", ("def right(x): return x @ torch.ones(x.shape[-1], x.shape[-1], dtype=x.dtype, device=x.device).triu()",)),
    "row means": Problem("""
def reference(x): return x.mean((-1, -2))
def get_inputs(): return [torch.randn(16, 9, 11)]
""", ("def right(x): return x.sum(-1).sum(-1) / (x.shape[-1] * x.shape[-2])",)),
    "convolution": Problem("""
class Model(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.conv = nn.Conv1d(inner, outer, 3, padding=1)
    def forward(self, x): return self.conv(x).relu()
def get_inputs(): return [torch.randn(4, 6, 20)]
def get_init_inputs(): return [6, 8]
""", ("def right(self, x):\n    w, p = self.conv.weight, F.pad(x, (1, 1))\n"
      "    return (sum(torch.einsum('oi,bit->bot', w[..., j], p[..., j:j + x.shape[-1]]) for j in range(3)) + self.conv.bias[:, None]).relu()",)),
    "max_pool": Problem("""
def reference(x): return F.max_pool1d(x, 4)
def get_inputs(): return [torch.randn(6, 5, 32)]
""", ("def right(x): return x.unflatten(-1, (-1, 4)).max(-1).values",)),
    "embedding": Problem("""
def reference(weight, tokens): return F.embedding(tokens, weight)
def get_inputs(): return [torch.randn(40, 24), torch.randint(0, 40, (10, 6))]
""", ("def right(weight, tokens): return weight[tokens]",)),
    "mlp": Problem("""
class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.up, self.down = nn.Linear(size, 2 * size), nn.Linear(2 * size, size)
    def forward(self, x): return x + self.down(F.relu(self.up(x)))
def get_inputs(): return [torch.randn(14, 20)]
def get_init_inputs(): return [20]
""", ("def right(self, x):\n    h = x @ self.up.weight.T + self.up.bias\n    return self.down(torch.where(h > 0, h, 0)) + x",)),
    "residual norm": Problem("""
def reference(x, r, w):
    s = x + r
    return s * torch.rsqrt(s.pow(2).mean(-1, keepdim=True) + 1e-6) * w
def get_inputs(rows=16, columns=64): return [torch.randn(rows, columns), torch.randn(rows, columns), torch.rand(columns) + 0.5]
""", ("def right(x, r, w): return F.rms_norm(r + x, w.shape, w, 1e-6)",)),
    "causal attention": Problem("""
def reference(q, k, v):
    s = (q @ k.transpose(-1, -2)) / q.shape[-1] ** 0.5
    return torch.softmax(s.masked_fill(torch.ones(s.shape[-2:], dtype=torch.bool, device=s.device).triu(1), float('-inf')), -1) @ v
def get_inputs(): return [torch.randn(2, 9, 16) for _ in range(3)]
""", ("def right(q, k, v): return F.scaled_dot_product_attention(q, k, v, is_causal=True)",)),
}
