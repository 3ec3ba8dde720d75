// Reads config.json field by field. In: the file. Out: a checked Config. Every refusal names the field, its value and what was expected.
#include "compiler/import/HuggingFaceConfig.h"
#include "compiler/graph/Failure.h"
#include "compiler/import/StrictJson.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cmath>
#include <map>

using namespace llvm;
using Json = nlohmann::json;

namespace tare::huggingface {
namespace {
/// Typed access with a memory: the first wrong field is kept, later ones are not read.
struct Fields {
  const Json &json;
  std::string file, problem;

  void refuseField(const std::string &name, const std::string &expected) {
    if (!problem.empty()) return;
    const Json *value = json.contains(name) ? &json[name] : nullptr;
    std::string shown = value ? value->dump(-1, ' ', false, Json::error_handler_t::replace) : "missing";
    problem = "config.json: \"" + name + "\" is " + (shown.size() > 60 ? shown.substr(0, 57) + "..." : shown) + ", expected " + expected;
  }
  bool has(const std::string &name) const { return json.contains(name) && !json[name].is_null(); }
  int64_t size(const std::string &name, std::optional<int64_t> missing = {}) {
    if (!has(name) && missing) return *missing;
    if (has(name) && json[name].is_number_unsigned() && json[name].get<uint64_t>() > 0 && json[name].get<uint64_t>() < (uint64_t(1) << 31)) return int64_t(json[name].get<uint64_t>());
    refuseField(name, "an integer from 1 to 2147483647");
    return 1;
  }
  double positive(const std::string &name, double missing) {
    if (!has(name)) return missing;
    if (json[name].is_number() && json[name].get<double>() > 0 && std::isfinite(json[name].get<double>())) return json[name].get<double>();
    refuseField(name, "a number above 0");
    return 1;
  }
  bool flag(const std::string &name, bool missing) {
    if (!has(name)) return missing;
    if (json[name].is_boolean()) return json[name].get<bool>();
    refuseField(name, "true or false");
    return missing;
  }
  std::string word(const std::string &name, const std::string &missing) {
    if (!has(name)) return missing;
    if (json[name].is_string()) return json[name].get<std::string>();
    refuseField(name, "a string");
    return missing;
  }
};

std::string activation(Fields &fields, const char *name, const char *missing) {
  static const std::map<std::string, std::string> known = {{"gelu", "gelu"},           {"gelu_python", "gelu"},   {"gelu_new", "gelu_tanh"}, {"gelu_pytorch_tanh", "gelu_tanh"},
                                                           {"gelu_fast", "gelu_tanh"}, {"relu", "relu"},          {"silu", "silu"},          {"swish", "silu"}};
  auto it = known.find(fields.word(name, missing));
  if (it != known.end()) return it->second;
  fields.refuseField(name, "one of gelu, gelu_new, gelu_pytorch_tanh, relu, silu");
  return "gelu";
}

Rope rope(Fields &top) {
  // Transformers 5 keeps everything in rope_parameters, earlier releases rope_theta and rope_scaling.
  Rope out;
  out.theta = top.positive("rope_theta", 10000);
  for (const char *name : {"rope_parameters", "rope_scaling"}) {
    if (!top.has(name)) continue;
    if (!top.json[name].is_object()) {
      top.refuseField(name, "an object");
      return out;
    }
    Fields fields{top.json[name], top.file, ""};
    std::string type = fields.word("rope_type", fields.word("type", "default"));
    out.theta = fields.positive("rope_theta", out.theta);
    out.factor = fields.positive("factor", 1);
    out.lowFreqFactor = fields.positive("low_freq_factor", 1);
    out.highFreqFactor = fields.positive("high_freq_factor", 4);
    out.originalPositions = fields.positive("original_max_position_embeddings", 8192);
    if (type == "linear") out.kind = Rope::Kind::Linear;
    else if (type == "llama3") out.kind = Rope::Kind::Llama3;
    else if (type != "default") fields.refuseField(fields.has("rope_type") ? "rope_type" : "type", "one of default, linear, llama3");
    if (out.kind == Rope::Kind::Llama3 && out.highFreqFactor <= out.lowFreqFactor) fields.refuseField("high_freq_factor", "more than low_freq_factor");
    if (top.problem.empty()) top.problem = fields.problem;
  }
  return out;
}

void encoder(Fields &f, Config &c) {
  c.hidden = f.size("hidden_size");
  c.layers = f.size("num_hidden_layers");
  c.heads = c.kvHeads = f.size("num_attention_heads");
  c.intermediate = f.size("intermediate_size");
  c.positions = f.size("max_position_embeddings");
  c.typeVocabulary = f.size("type_vocab_size", 2);
  c.epsilon = f.positive("layer_norm_eps", 1e-12);
  c.activation = activation(f, "hidden_act", "gelu");
  if (f.word("position_embedding_type", "absolute") != "absolute") f.refuseField("position_embedding_type", "\"absolute\"");
  if (f.flag("is_decoder", false)) f.refuseField("is_decoder", "false");
}

void distilled(Fields &f, Config &c) {
  c.hidden = f.size("dim");
  c.layers = f.size("n_layers");
  c.heads = c.kvHeads = f.size("n_heads");
  c.intermediate = f.size("hidden_dim");
  c.positions = f.size("max_position_embeddings");
  c.activation = activation(f, "activation", "gelu");
}

void decoder(Fields &f, Config &c) {
  c.hidden = f.size("hidden_size");
  c.layers = f.size("num_hidden_layers");
  c.heads = f.size("num_attention_heads");
  c.kvHeads = f.size("num_key_value_heads", c.heads);
  c.intermediate = f.size("intermediate_size");
  c.headDim = f.size("head_dim", std::max<int64_t>(1, c.hidden / c.heads));
  c.epsilon = f.positive("rms_norm_eps", 1e-6);
  c.activation = activation(f, "hidden_act", "silu");
  c.qkvBias = c.outputBias = f.flag("attention_bias", false);
  c.mlpBias = f.flag("mlp_bias", false);
  c.tiedHead = f.flag("tie_word_embeddings", false);
  c.rope = rope(f);
  if (f.has("quantization_config")) f.refuseField("quantization_config", "an unquantised checkpoint");
  if (c.heads % c.kvHeads) f.refuseField("num_key_value_heads", "a divisor of num_attention_heads (" + std::to_string(c.heads) + ")");
  if (c.headDim > 65536) f.refuseField("head_dim", "at most 65536");
  if (c.headDim % 2) f.refuseField("head_dim", "an even number (rotary embedding)");
}
} // namespace

Expected<Config> readConfig(StringRef folder) {
  Config config;
  config.file = (folder + "/config.json").str();
  if (!sys::fs::exists(config.file))
    return refuse("config.json is missing in this folder").inFile(folder.str()).withHint("a Hugging Face folder holds config.json and .safetensors files");
  if (!sys::fs::is_regular_file(config.file)) return refuse("not a regular file").inFile(config.file);
  auto buffer = MemoryBuffer::getFile(config.file, false, false);
  if (!buffer) return fail(ExitCode::Io, "cannot read: " + buffer.getError().message()).inFile(config.file);
  if ((*buffer)->getBufferSize() > 16'000'000) return refuse("config.json is larger than 16 MB").inFile(config.file);
  auto json = parseStrictJson((*buffer)->getBuffer(), config.file, "config.json");
  if (!json) return json.takeError();
  if (!json->is_object()) return refuse("config.json is not an object").inFile(config.file);
  Fields fields{*json, config.file, ""};
  config.modelType = fields.word("model_type", "");
  config.vocabulary = fields.size("vocab_size");
  if (config.modelType == "bert") {
    config.family = Family::Bert;
    encoder(fields, config);
  } else if (config.modelType == "distilbert") {
    config.family = Family::DistilBert;
    distilled(fields, config);
  } else if (config.modelType == "llama") {
    config.family = Family::Llama;
    decoder(fields, config);
  } else {
    fields.problem.clear();
    fields.refuseField("model_type", "one of bert, distilbert, llama");
    return refuse("unknown architecture: " + fields.problem).inFile(config.file).withHint("export the model to ONNX and compile that");
  }
  if (fields.problem.empty() && config.family != Family::Llama) {
    config.headDim = config.hidden / config.heads;
    if (config.hidden % config.heads)
      fields.problem = "config.json: the hidden size " + std::to_string(config.hidden) + " is not divisible by the number of attention heads " + std::to_string(config.heads);
  }
  if (fields.problem.empty() && config.layers > 10000) fields.problem = "config.json: " + std::to_string(config.layers) + " layers, the limit is 10000";
  if (!fields.problem.empty()) return refuse(fields.problem).inFile(config.file);
  return config;
}
} // namespace tare::huggingface
