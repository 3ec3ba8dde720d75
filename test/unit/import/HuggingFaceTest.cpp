// Imported Hugging Face folders, evaluated by the reference, against float64 results of an independent implementation (cases.npz): within 5e-4 at
// unmasked positions, finite everywhere. Decoders also token by token with the cache, and with left padding.
#include "compiler/import/Import.h"
#include "compiler/import/Npz.h"
#include "compiler/import/Safetensors.h"
#include "compiler/reference/Evaluator.h"
#include "test/support/SafetensorsBytes.h"
#include "test/support/TempDir.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace tare;
using reference::Tensor;

namespace {
class HuggingFace : public ::testing::Test {
protected:
  mlir::MLIRContext context;
  ImportedModel model;
  mlir::func::FuncOp main;

  void import(const std::string &folder) {
    importPath(std::string(TARE_TEST_DATA) + "/" + folder);
    EXPECT_TRUE(model.warnings.empty()) << model.warnings[0];
  }
  void importPath(const std::string &path) {
    CompileOptions options;
    options.model = path;
    auto imported = importHuggingFace(context, options);
    ASSERT_TRUE(bool(imported)) << llvm::toString(imported.takeError());
    model = std::move(*imported);
    ASSERT_TRUE(mlir::succeeded(mlir::verify(*model.module)));
    main = model.module->lookupSymbol<mlir::func::FuncOp>("main");
  }

  std::string argName(unsigned i) { return main.getArgAttrOfType<mlir::StringAttr>(i, graph::kNameAttr).str(); }

  Tensor ints(std::vector<int64_t> shape, std::vector<int64_t> values) { return {mlir::IntegerType::get(&context, 64), shape, {}, values}; }
  Tensor fromArray(const Array &a) {
    Tensor t = ints(a.shape, {});
    t.ints.resize(a.bytes.size() / 8);
    std::memcpy(t.ints.data(), a.bytes.data(), a.bytes.size());
    return t;
  }

  /// Runs main; inputs that are not given take their defaults. Returns the outputs by name.
  std::map<std::string, Tensor> run(std::map<std::string, Tensor> given) {
    int64_t batch = given.at("input_ids").shape[0], sequence = given.at("input_ids").shape[1];
    auto past = given.find("past_key_values.0.key");
    int64_t before = past == given.end() ? 0 : past->second.shape[2];
    std::vector<Tensor> inputs;
    for (unsigned i = 0; i < main.getNumArguments(); ++i) {
      if (auto it = given.find(argName(i)); it != given.end()) {
        inputs.push_back(it->second);
        continue;
      }
      auto type = llvm::cast<mlir::RankedTensorType>(main.getArgument(i).getType());
      std::vector<int64_t> shape;
      for (const Dim &d : graph::dimsOf(type))
        shape.push_back(*d.evaluate([&](llvm::StringRef s) { return std::optional<int64_t>(s == "batch" ? batch : s == "sequence" ? sequence : before); }));
      Tensor t = Tensor::zeros(type.getElementType(), shape);
      if (main.getArgAttrOfType<mlir::StringAttr>(i, graph::kDefaultAttr) == "ones") t.ints.assign(t.ints.size(), 1);
      inputs.push_back(t);
    }
    std::map<std::string, Tensor> outputs;
    auto values = reference::evaluate(main.getBody().front(), inputs);
    if (!values) {
      ADD_FAILURE() << llvm::toString(values.takeError());
      return outputs;
    }
    mlir::Operation *end = main.getBody().front().getTerminator();
    for (unsigned i = 0; i < end->getNumOperands(); ++i)
      outputs[main.getResultAttrOfType<mlir::StringAttr>(i, graph::kNameAttr).str()] = values->lookup(end->getOperand(i));
    return outputs;
  }

  /// All cases a..d of a folder; `masked` rows are compared for being finite only.
  void cases(const std::string &folder, const std::string &output) {
    auto arrays = readNpz(std::string(TARE_TEST_DATA) + "/" + folder + "/cases.npz");
    ASSERT_TRUE(bool(arrays)) << llvm::toString(arrays.takeError());
    for (std::string name : {"a", "b", "c", "d"}) {
      std::map<std::string, Tensor> given{{"input_ids", fromArray(arrays->at(name + ".input_ids"))}};
      std::vector<int64_t> mask(given["input_ids"].ints.size(), 1);
      if (arrays->count(name + ".attention_mask")) given["attention_mask"] = fromArray(arrays->at(name + ".attention_mask")), mask = given["attention_mask"].ints;
      Tensor got = run(given)[output];
      const Array &want = arrays->at(name + "." + output);
      ASSERT_EQ(got.shape, want.shape);
      size_t width = got.floats.size() / mask.size();
      double worst = 0;
      for (size_t i = 0; i < got.floats.size(); ++i) {
        float expected;
        std::memcpy(&expected, want.bytes.data() + 4 * i, 4);
        ASSERT_TRUE(std::isfinite(got.floats[i]));
        if (mask[i / width]) worst = std::max(worst, std::fabs(got.floats[i] - expected));
      }
      EXPECT_LT(worst, 5e-4) << folder << " case " << name;
    }
  }
};
} // namespace

TEST_F(HuggingFace, BertTiny) {
  import("bert-tiny");
  EXPECT_EQ(argName(0), "input_ids");
  EXPECT_EQ(argName(1), "attention_mask");
  EXPECT_EQ(argName(2), "token_type_ids");
  EXPECT_EQ(main.getNumResults(), 2u); // the pooler's weights are there
  EXPECT_EQ(model.sha256.size(), 64u);
  EXPECT_EQ(model.format, "huggingface");
  EXPECT_EQ(model.name, "bert-tiny");
  EXPECT_EQ(model.parameters, 1288312u / 4 - 5752u / 4); // the file's data
  cases("bert-tiny", "last_hidden_state");
}

TEST_F(HuggingFace, DistilBertTiny) {
  import("distilbert-tiny");
  EXPECT_EQ(main.getNumArguments(), 2u);
  cases("distilbert-tiny", "last_hidden_state");
}

TEST_F(HuggingFace, LlamaProTiny) {
  import("llama-pro-tiny");
  EXPECT_EQ(main.getNumArguments(), 2u + 16u);
  EXPECT_EQ(main.getNumResults(), 1u + 16u);
  EXPECT_EQ(model.files.size(), 6u);
  EXPECT_EQ(model.parameters, 1510016u);
  cases("llama-pro-tiny", "logits");
}

TEST_F(HuggingFace, LlamaTokenByTokenEqualsTheWholePass) {
  import("llama-pro-tiny");
  std::vector<int64_t> ids = {256, 12, 7, 99, 100, 3};
  std::map<std::string, Tensor> whole = run({{"input_ids", ints({1, 6}, ids)}}), state;
  for (size_t t = 0; t < ids.size(); ++t) {
    std::map<std::string, Tensor> given = state;
    given["input_ids"] = ints({1, 1}, {ids[t]});
    auto step = run(given);
    state.clear();
    for (auto &[name, value] : step)
      if (llvm::StringRef(name).starts_with("present.")) state["past_key_values." + name.substr(8)] = value;
    for (int64_t v = 0; v < 260; ++v) ASSERT_NEAR(step["logits"].floats[v], whole["logits"].floats[t * 260 + v], 1e-9) << "token " << t;
  }
}

TEST_F(HuggingFace, LlamaLeftPaddingShiftsPositions) {
  import("llama-pro-tiny");
  auto alone = run({{"input_ids", ints({1, 3}, {5, 6, 7})}})["logits"];
  auto padded = run({{"input_ids", ints({1, 5}, {0, 0, 5, 6, 7})}, {"attention_mask", ints({1, 5}, {0, 0, 1, 1, 1})}})["logits"];
  for (size_t i = 0; i < alone.floats.size(); ++i) ASSERT_NEAR(alone.floats[i], padded.floats[2 * 260 + i], 1e-9);
  for (double v : padded.floats) ASSERT_TRUE(std::isfinite(v));
}

namespace {
/// A copy of a folder's tensors under other names ("" drops one) in one file.
void rewrite(const std::string &folder, const test::TempDir &to, const std::function<std::string(const std::string &)> &rename) {
  auto read = readCheckpoint(std::string(TARE_TEST_DATA) + "/" + folder);
  ASSERT_TRUE(bool(read));
  std::map<std::string, test::TensorText> tensors;
  for (auto &[name, view] : read->tensors) {
    std::string shape;
    for (int64_t d : view.shape) shape += (shape.empty() ? "" : ",") + std::to_string(d);
    if (std::string other = rename(name); !other.empty()) tensors[other] = {view.stored, "[" + shape + "]", view.bytes.str()};
  }
  to.write("model.safetensors", test::safetensorsOf(tensors));
  to.write("config.json", test::readFile(std::string(TARE_TEST_DATA) + "/" + folder + "/config.json"));
}
} // namespace

TEST_F(HuggingFace, BertWithoutPooler) {
  test::TempDir dir;
  // And with the older names of the norms' tensors.
  rewrite("bert-tiny", dir, [](const std::string &n) -> std::string {
    if (n.rfind("pooler", 0) == 0) return "";
    size_t at = n.find("LayerNorm.");
    return at == std::string::npos ? n : n.substr(0, at + 10) + (n.ends_with("weight") ? "gamma" : "beta");
  });
  importPath(dir.path());
  EXPECT_EQ(main.getNumResults(), 1u);
  cases("bert-tiny", "last_hidden_state");
}

TEST_F(HuggingFace, TaskClassPrefixAndUnusedTensorsAreNamed) {
  test::TempDir dir;
  rewrite("bert-tiny", dir, [](const std::string &n) { return n.rfind("pooler", 0) == 0 ? "cls." + n : "bert." + n; });
  importPath(dir.path());
  ASSERT_EQ(model.warnings.size(), 1u);
  EXPECT_EQ(model.warnings[0], "not used: cls.pooler.dense.bias, cls.pooler.dense.weight");
  cases("bert-tiny", "last_hidden_state");
  bool scoped = false;
  main.walk([&](mlir::Operation *op) {
    auto scope = op->getAttrOfType<mlir::StringAttr>(graph::kScopeAttr);
    scoped |= scope && scope.getValue() == "bert.encoder.layer.0.attention.self.query";
  });
  EXPECT_TRUE(scoped);
}

TEST_F(HuggingFace, LlamaWithItsOwnHead) {
  test::TempDir dir;
  auto read = readCheckpoint(TARE_TEST_DATA "/llama-pro-tiny");
  ASSERT_TRUE(bool(read));
  rewrite("llama-pro-tiny", dir, [](const std::string &n) { return n; });
  // Without tying and without a head the error names the tensor; with the table as the head the numbers are those of the tied model.
  std::string config = test::readFile(dir.path("config.json"));
  size_t at = config.find("\"tie_word_embeddings\": true");
  ASSERT_NE(at, std::string::npos);
  dir.write("config.json", config.replace(at, 27, "\"tie_word_embeddings\": false"));
  CompileOptions options;
  options.model = dir.path();
  EXPECT_NE(test::messageOf(importHuggingFace(context, options)).find("1 tensors that config.json asks for are missing: lm_head.weight"), std::string::npos);
  std::filesystem::rename(dir.path("model.safetensors"), dir.path("a.safetensors"));
  const TensorView &table = read->tensors.at("model.embed_tokens.weight");
  dir.write("b.safetensors", test::safetensorsOf({{"lm_head.weight", {"BF16", "[260,128]", table.bytes.str()}}}));
  importPath(dir.path());
  cases("llama-pro-tiny", "logits");
}

TEST_F(HuggingFace, EveryOpHasAUniqueNameAndAScope) {
  import("bert-tiny");
  std::set<std::string> names;
  bool query = false;
  main.walk([&](mlir::Operation *op) {
    if (op == main || op->hasTrait<mlir::OpTrait::IsTerminator>()) return;
    std::string name = graph::nodeName(op->getLoc());
    EXPECT_FALSE(name.empty());
    EXPECT_TRUE(names.insert(name).second) << name;
    query |= name == "/encoder/layer.2/attention/self/query/matmul" || name == "/encoder/layer.2/attention/self/query/MatMul";
  });
  EXPECT_TRUE(query);
}
