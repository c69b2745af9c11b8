// SPDX-License-Identifier: Apache-2.0
// Folders in the layout of Hugging Face: what is written is read back, what does not fit is named.
#include "convergence/pretrained.h"

#include <gtest/gtest.h>

#include <fstream>

#include "convergence/micro.h"
#include "convergence/safetensors.h"
#include "convergence/train.h"
#include "harness/tests/temporary_folder.h"

namespace tigon::convergence {
namespace {

namespace fs = std::filesystem;

class Pretrained : public testing::Test {
 protected:
  std::string refusal(const std::string& json) {
    std::ofstream(folder_ / "config.json") << json;
    try {
      pretrained_config(folder_, {});
    } catch (const ConvergeError& error) {
      EXPECT_EQ(error.exit_code, 2);
      return error.what();
    }
    return "taken";
  }

  TemporaryFolder temporary_;
  const fs::path folder_ = temporary_.path();
};

TEST_F(Pretrained, WhatIsWrittenIsReadBack) {
  for (const bool qk_norm : {false, true}) {
    ModelConfig c = micro_config(qk_norm);
    c.qk_norm = qk_norm;
    const std::vector<float> weights = initial_weights(c, 4);
    export_pretrained(folder_, c, weights);
    const ModelConfig again = pretrained_config(folder_, c);
    EXPECT_EQ(again.name, qk_norm ? "qwen3" : "llama");
    ModelConfig named = again;
    named.name = c.name;
    EXPECT_EQ(description(named), description(c));
    EXPECT_EQ(pretrained_weights(folder_, again), weights);
  }
}

TEST_F(Pretrained, AShapeAloneHasNoWeights) {
  const ModelConfig c = micro_config(true);
  export_pretrained(folder_, c, initial_weights(c, 4));
  fs::remove(folder_ / "model.safetensors");
  EXPECT_TRUE(pretrained_weights(folder_, pretrained_config(folder_, c)).empty());
}

TEST_F(Pretrained, HalfPrecisionIsRead) {
  const ModelConfig c = micro_config(true);
  const uint16_t f16[] = {0x3c00, 0xc000, 0x0001, 0x7bff},
                 bf16[] = {0x3f80, 0xc000, 0x0001, 0x7f7f};
  const float want_f16[] = {1, -2, 0x1p-24f, 65504}, want_bf16[] = {1, -2, 0x1p-133f, 0x1.fep127f};
  for (const bool half : {true, false}) {
    export_pretrained(folder_, c, initial_weights(c, 4));
    std::vector<TensorEntry> entries = SafetensorsReader(folder_ / "model.safetensors").entries();
    for (TensorEntry& e : entries) {
      e.type = half ? "F16" : "BF16";
      e.bytes /= 2;
    }
    SafetensorsWriter out(folder_ / "model.safetensors", entries, {});
    for (const TensorEntry& e : entries)
      for (int64_t i = 0; i < e.bytes / 8; ++i) out.write(half ? f16 : bf16, 8);
    out.commit();
    const std::vector<float> weights = pretrained_weights(folder_, c);
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(weights[i], half ? want_f16[i] : want_bf16[i]);
  }
}

TEST_F(Pretrained, WhatDoesNotFitIsNamed) {
  const ModelConfig c = micro_config(false), tied = micro_config(true);
  const auto problem = [&](const ModelConfig& config) -> std::string {
    try {
      pretrained_weights(folder_, config);
    } catch (const ConvergeError& error) {
      return error.what();
    }
    return "taken";
  };
  export_pretrained(folder_, c, initial_weights(c, 4));
  EXPECT_NE(problem(tied).find("lm_head.weight has no place"), std::string::npos);
  ModelConfig wider = c;
  wider.intermediate = 48;
  EXPECT_NE(problem(wider).find("is [40, 32], not [48, 32]"), std::string::npos) << problem(wider);
  export_pretrained(folder_, tied, initial_weights(tied, 4));
  EXPECT_NE(problem(c).find("1 tensors are missing, lm_head.weight first"), std::string::npos);
}

TEST_F(Pretrained, ModelsOfOtherKindsAreRefusedByName) {
  for (const auto& [json, text] : std::vector<std::pair<const char*, const char*>>{
           {R"({"model_type": "qwen2"})", "biases"},
           {R"({"model_type": "gemma2"})", "norms behind the branches"},
           {R"({"model_type": "gpt2"})", "'gpt2'"},
           {R"({"model_type": "llama", "attention_bias": true})", "no biases"},
           {R"({"model_type": "llama", "hidden_act": "gelu"})", "hidden_act is gelu"},
           {R"({"model_type": "llama", "rope_scaling": {"rope_type": "llama3"}})",
            "scaled (llama3)"},
           {R"({"model_type": "mistral", "sliding_window": 64})", "attention sees 64"},
           {R"({"model_type": "llama"})", "hidden_size"},
           {"[", "is not JSON"}})
    EXPECT_NE(refusal(json).find(text), std::string::npos) << refusal(json);
  ModelConfig gemma = *find_config("tiny-gemma2");
  EXPECT_NE(problem_with_export(gemma), "");
}

}  // namespace
}  // namespace tigon::convergence
