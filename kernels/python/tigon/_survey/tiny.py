# SPDX-License-Identifier: Apache-2.0
"""A small model of any causal language model family of transformers, without downloads: its default config with small sizes."""
import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

# Names of sizes in configs, by the size that they get.
_SIZES: dict[int, str] = {
    160: "vocab_size vocab_size_per_layer_input",
    128: "max_position_embeddings n_positions max_sequence_length n_ctx max_seq_len mamba_d_ssm",
    96: "intermediate_size ffn_dim d_ff ffn_hidden_size n_inner encoder_ffn_dim decoder_ffn_dim block_ff_dim mlp_hidden_size",
    64: "hidden_size d_model n_embd dim embed_dim model_dim embedding_size embedding_dim hidden_dim conv_dim block_dim lru_width "
        "attention_hidden_size attn_hidden_size",
    48: "moe_intermediate_size expert_ffn_hidden_size shared_expert_intermediate_size moe_shared_expert_intermediate_size "
        "shared_intermediate_size",
    32: "q_lora_rank kv_lora_rank qk_head_dim sliding_window mamba_d_head mamba_head_dim",
    16: "head_dim kv_channels global_head_dim qk_rope_head_dim qk_nope_head_dim v_head_dim linear_key_head_dim linear_value_head_dim "
        "hidden_size_per_layer_input index_head_dim o_lora_rank attention_window chunk_size mamba_chunk_size",
    8: "mamba_d_state state_size ssm_state_size time_step_rank rotary_dim index_topk time_mix_extra_dim",
    4: "num_attention_heads n_head n_heads num_heads encoder_attention_heads decoder_attention_heads mamba_n_heads mamba_num_heads "
       "num_experts num_local_experts n_routed_experts moe_num_experts linear_num_value_heads",
    2: "num_hidden_layers n_layer n_layers num_layers encoder_layers decoder_layers num_key_value_heads num_kv_heads "
       "num_global_key_value_heads num_experts_per_tok num_experts_per_token moe_k moe_topk top_k_experts expand mamba_expand "
       "linear_num_key_heads index_n_heads eos_token_id",
    1: "n_shared_experts first_k_dense_replace n_group topk_group num_expert_group mamba_n_groups n_groups moe_layer_freq "
       "num_conv_layers bos_token_id",
    0: "pad_token_id num_nextn_predict_layers",
}
SIZES = {name: size for size, names in _SIZES.items() for name in names.split()}
_LAYERS = ("layer_types", "block_types", "layers_block_type", "mlp_layer_types")
_DROPOUTS = ("dropout", "attention_dropout", "hidden_dropout", "resid_pdrop", "embd_pdrop", "attn_pdrop", "hidden_dropout_prob",
             "attention_probs_dropout_prob", "activation_dropout", "layerdrop")
# Sizes that some families tie to others: left out one group after another, until the model runs.
_HEADS = ("head_dim", "kv_channels", "rotary_dim", "qk_head_dim", "v_head_dim")
_COUNTS = ("num_key_value_heads", "num_kv_heads", "num_attention_heads", "n_head", "num_heads")
_LATENT = ("qk_rope_head_dim", "qk_nope_head_dim", "q_lora_rank", "kv_lora_rank")
_KEPT: tuple[tuple[str, ...], ...] = ((), ("head_dim",), _HEADS, (*_HEADS, *_LATENT), (*_HEADS, *_COUNTS),
                                      tuple(SIZES.keys() - set("vocab_size hidden_size intermediate_size num_hidden_layers".split())))
MOST_PARAMETERS = 60_000_000


def tiny_models(family: str) -> Iterator[nn.Module]:
    """Small models of a family in float32 and training; each leaves more sizes as the family has them. Some may not run.

    Errors: what transformers raises for each of these configs, if all of them fail.
    """
    error: Exception | None = None
    count = 0
    for kept in _KEPT:
        for settings in (_by_arguments, _by_attributes):
            try:
                model = _model(family, settings(_config_class(family), kept))
            except Exception as other:  # noqa: BLE001 - the next one may do
                error = error or other
                continue
            count += 1
            yield model
    if not count and error is not None:
        raise error


def _config_class(family: str) -> Any:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    return CONFIG_MAPPING[family]


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _small(config: Any, kept: tuple[str, ...]) -> dict[str, Any]:
    """Small values for what a config has."""
    small: dict[str, Any] = {n: s for n, s in SIZES.items() if n not in kept and _is_size(getattr(config, n, None))}
    # A family may have none of these; one that has some needs them to fit.
    small |= {n: SIZES[n] for n in ("head_dim", "num_key_value_heads", "pad_token_id", "bos_token_id", "eos_token_id")
              if n not in kept and n in vars(config)}
    for name in _LAYERS:
        layers = getattr(config, name, None)
        if isinstance(layers, (list, tuple)) and len(layers) > 2:
            kinds = list(dict.fromkeys(layers))
            small[name] = (kinds + list(layers))[:2]
    return small


def _by_arguments(config_class: Any, kept: tuple[str, ...], default: Any = None, depth: int = 0) -> Any:
    """A config made with small sizes, so that what its constructor derives from them fits."""
    default = config_class() if default is None else default
    small = _small(default, kept)
    for name in getattr(config_class, "sub_configs", {}):
        below = getattr(default, name, None)
        if below is not None and depth < 2:
            small[name] = _by_arguments(type(below), kept, below, depth + 1).to_dict()
    try:
        return config_class(**small)
    except (AttributeError, TypeError):
        return config_class(**{n: v for n, v in small.items() if n not in _LAYERS})


def _by_attributes(config_class: Any, kept: tuple[str, ...]) -> Any:
    """The default config with small sizes set afterwards."""
    config = config_class()
    below = [getattr(config, name, None) for name in getattr(config_class, "sub_configs", {})]
    for one in (config, *(b for b in below if b is not None)):
        for name, value in _small(one, kept).items():
            setattr(one, name, value)
    return config


def _model(family: str, config: Any) -> nn.Module:
    import transformers
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    name = MODEL_FOR_CAUSAL_LM_MAPPING_NAMES[family]
    model_class = getattr(transformers, name if isinstance(name, str) else name[0])
    text = config.get_text_config()
    if not isinstance(config, model_class.config_class or object):
        config = text
    if hasattr(config, "is_decoder"):
        config.is_decoder = True
    for dropout in _DROPOUTS:
        if isinstance(getattr(text, dropout, None), float):
            setattr(text, dropout, 0.0)
    with torch.device("meta"):
        count = sum(p.numel() for p in model_class(copy.deepcopy(config)).parameters())
    if count > MOST_PARAMETERS:
        raise RuntimeError(f"has {count / 1e6:.0f} million parameters even with small sizes")
    torch.manual_seed(0)
    model: nn.Module = model_class(config).float().train()
    _make_loud(model)
    return model


@torch.no_grad()
def _make_loud(model: nn.Module) -> None:
    """Weights of norms and biases that matter, and logits that a softcap bends."""
    for parameter in model.parameters():
        if parameter.is_floating_point() and parameter.dim() > 1:
            parameter.mul_(4)
        elif parameter.is_floating_point() and parameter.dim() == 1:
            parameter.add_(torch.randn_like(parameter) * 0.1)
