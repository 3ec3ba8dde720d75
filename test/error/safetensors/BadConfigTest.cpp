// config.json and tensors that do not agree, or say what Tare does not have (bad-inputs B46): field, value and tensor are named.
#include "compiler/import/Import.h"
#include "test/support/SafetensorsBytes.h"
#include "test/support/TempDir.h"
#include "mlir/IR/MLIRContext.h"
#include <gtest/gtest.h>

using namespace tare;
using namespace tare::test;

namespace {
class BadConfig : public ::testing::Test {
protected:
  TempDir dir;
  std::string config = readFile(TARE_TEST_DATA "/bert-tiny/config.json");

  std::string message() {
    mlir::MLIRContext context;
    CompileOptions options;
    options.model = dir.path();
    return messageOf(importHuggingFace(context, options));
  }
  /// bert-tiny with one piece of config.json replaced.
  void refused(const std::string &from, const std::string &to, const std::string &word) {
    std::string text = config;
    size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    dir.write("config.json", text);
    if (!std::filesystem::exists(dir.path("model.safetensors"))) std::filesystem::copy_file(TARE_TEST_DATA "/bert-tiny/model.safetensors", dir.path("model.safetensors"));
    std::string got = message();
    EXPECT_NE(got.find(word), std::string::npos) << "expected '" << word << "', got '" << got << "'";
  }
};
} // namespace

TEST_F(BadConfig, Absent) { EXPECT_NE(message().find("config.json is missing"), std::string::npos); }

TEST_F(BadConfig, Fields) {
  refused("\"hidden_size\": 96", "\"hidden_size\": 97", "97 is not divisible by the number of attention heads 4");
  refused("\"hidden_size\": 96", "\"hidden_size\": 0", "\"hidden_size\" is 0, expected an integer from 1");
  refused("\"hidden_size\": 96", "\"hidden_size\": -1", "\"hidden_size\" is -1");
  refused("\"hidden_size\": 96", "\"hidden_size\": 1e40", "\"hidden_size\" is 1e+40");
  refused("\"hidden_size\": 96", "\"hidden_size\": \"96\"", "\"hidden_size\" is \"96\"");
  refused("\"hidden_size\": 96", "\"hidden\": 96", "\"hidden_size\" is missing");
  refused("\"num_attention_heads\": 4", "\"num_attention_heads\": 0", "\"num_attention_heads\" is 0");
  refused("\"layer_norm_eps\": 1e-12", "\"layer_norm_eps\": -1", "\"layer_norm_eps\" is -1");
  refused("\"hidden_act\": \"gelu\"", "\"hidden_act\": \"mish\"", "\"hidden_act\" is \"mish\", expected one of gelu");
  refused("\"model_type\": \"bert\"", "\"model_type\": \"bort\"", "unknown architecture: config.json: \"model_type\" is \"bort\"");
  refused("\"vocab_size\": 260", "\"vocab_size\": 260, \"vocab_size\": 1", "duplicate key \"vocab_size\"");
  refused("{", "[", "malformed JSON in config.json");
}

TEST_F(BadConfig, TensorsThatDoNotMatch) {
  refused("\"num_hidden_layers\": 3", "\"num_hidden_layers\": 2", "has 2 layers, but there is a tensor 'encoder.layer.2.");
  refused("\"num_hidden_layers\": 3", "\"num_hidden_layers\": 4", "16 tensors that config.json asks for are missing: encoder.layer.3.attention.output.LayerNorm.bias");
  refused("\"intermediate_size\": 256", "\"intermediate_size\": 255", "encoder.layer.0.intermediate.dense.weight is F32 [256, 96], config.json asks for floating point [255, 96]");
}

TEST_F(BadConfig, IntegerWeights) {
  dir.write("config.json", R"({"model_type":"distilbert","dim":2,"n_layers":1,"n_heads":1,"hidden_dim":2,"max_position_embeddings":2,"vocab_size":2})");
  dir.write("model.safetensors", safetensors("{" + entry("embeddings.word_embeddings.weight", "I8", "[2,2]", 0, 4) + "}", "1234"));
  EXPECT_NE(message().find("are missing"), std::string::npos);
}
