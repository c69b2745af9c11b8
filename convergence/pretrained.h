// SPDX-License-Identifier: Apache-2.0
// Models in the layout of Hugging Face: a folder with config.json and safetensors, in one file or
// in several with model.safetensors.index.json.
#pragma once
#include <filesystem>
#include <vector>

#include "convergence/model_config.h"

namespace tigon::convergence {

// The model of the folder's config.json, on the run of `run`: Llama, Mistral and Qwen 3. Throws
// ConvergeError(2) that names what the model would need: scaled rotary angles, biases (Qwen 2),
// norms behind the branches (Gemma 2 and 3), windows that are shorter than a sequence.
ModelConfig pretrained_config(const std::filesystem::path& folder, ModelConfig run);

// Its weights in the order of ParameterLayout; none when the folder has config.json alone. F32, F16
// and BF16 are read. Throws ConvergeError(2) when a tensor is missing, left over or of another
// shape.
std::vector<float> pretrained_weights(const std::filesystem::path& folder,
                                      const ModelConfig& config);

// Writes config.json and model.safetensors in F32, which transformers loads. Throws
// ConvergeError(2) for a model that no layout describes, and ConvergeError(5).
void export_pretrained(const std::filesystem::path& folder, const ModelConfig& config,
                       const std::vector<float>& weights);

// Empty when export_pretrained() can write it; else what no layout has.
std::string problem_with_export(const ModelConfig& config);

}  // namespace tigon::convergence
