# SPDX-License-Identifier: Apache-2.0
"""Sizes of models as their configs have them; the weights are drawn at random."""

_LLAMA3 = {"vocab_size": 128256, "rms_norm_eps": 1e-5, "rope_parameters": {"rope_type": "default", "rope_theta": 500000.0}}
SHAPES = {
    "llama3-8b": ("LlamaConfig", {**_LLAMA3, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
                                  "num_key_value_heads": 8}),
    "llama3-1b": ("LlamaConfig", {**_LLAMA3, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32,
                                  "num_key_value_heads": 8, "head_dim": 64, "tie_word_embeddings": True}),
    "gemma2-2b": ("Gemma2Config", {}),  # these are its defaults
    "qwen3-0.6b": ("Qwen3Config", {"vocab_size": 151936, "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28, "num_attention_heads": 16,
                                   "num_key_value_heads": 8, "head_dim": 128, "tie_word_embeddings": True,
                                   "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0}}),
    "gemma2-tiny": ("Gemma2Config", {"vocab_size": 256, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
                                     "num_key_value_heads": 2, "head_dim": 16, "query_pre_attn_scalar": 16}),
    "qwen3-tiny": ("Qwen3Config", {"vocab_size": 256, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
                                   "num_key_value_heads": 2, "head_dim": 16, "tie_word_embeddings": True}),
    "tiny": ("LlamaConfig", {"vocab_size": 256, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
                             "num_key_value_heads": 2}),
}

EAGER_ATTENTION = {"gemma2-2b", "gemma2-tiny"}  # whose softcap torch's attention does not have


def attention_of(name):
    """What transformers is asked for."""
    return "eager" if name in EAGER_ATTENTION else "sdpa"


def config_of(name, length):
    """The config of a shape for sequences of some length."""
    import transformers

    kind, sizes = SHAPES[name]
    return getattr(transformers, kind)(**{"max_position_embeddings": max(length, 4096), "use_cache": False, **sizes})
