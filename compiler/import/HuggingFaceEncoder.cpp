// BERT and DistilBERT as graph ops. In: a Builder. Out: main(input_ids, attention_mask, token_type_ids) -> last_hidden_state, pooler_output.
// Names are the modules' own (BertModel, DistilBertModel); post-norm blocks: x = norm(x + attention(x)); x = norm(x + ffn(x)).
#include "compiler/import/HuggingFaceBuilder.h"

using namespace mlir;

namespace tare::huggingface {
namespace {
/// A finite stand-in for minus infinity: f32 absorbs any score beside it, and a row of nothing else becomes uniform, never NaN.
constexpr double kMasked = -1e30;

/// [batch, sequence] of 0/1 -> [batch, 1, 1, sequence] of 0 or kMasked.
Value maskBias(Builder &b, Value mask) {
  Value live = b.reshape(b.cast(mask, b.i1), {b.batch, Dim(1), Dim(1), b.sequence});
  return b.select(live, b.scalar(0), b.scalar(kMasked));
}

Value embeddings(Builder &b, Value ids, Value types) {
  const Config &c = b.config;
  Builder::Scope scope(b, "embeddings");
  Value x = b.wide(b.gather(b.weight("word_embeddings.weight", {c.vocabulary, c.hidden}), ids));
  if (types) x = b.add(x, b.wide(b.gather(b.weight("token_type_embeddings.weight", {c.typeVocabulary, c.hidden}), types)));
  // Positions are 0..S-1 for every row of the batch: the first S rows of the table.
  Value table = b.weight("position_embeddings.weight", {c.positions, c.hidden});
  x = b.add(x, b.wide(b.slice(table, 0, Dim(0), b.sequence)));
  b.require(b.sequence, Dim(c.positions), "the sequence is longer than the table of position embeddings (" + std::to_string(c.positions) + ")");
  return b.layerNorm("LayerNorm", x);
}

Value bertLayer(Builder &b, Value x, Value bias) {
  const Config &c = b.config;
  {
    Builder::Scope scope(b, "attention");
    Value context;
    {
      Builder::Scope self(b, "self");
      Value q = b.splitHeads(b.linear("query", x, c.hidden, true), c.heads), k = b.splitHeads(b.linear("key", x, c.hidden, true), c.heads);
      context = b.attention(q, k, b.splitHeads(b.linear("value", x, c.hidden, true), c.heads), bias);
    }
    Builder::Scope output(b, "output");
    x = b.layerNorm("LayerNorm", b.add(b.linear("dense", context, c.hidden, true), x));
  }
  Value inner;
  {
    Builder::Scope scope(b, "intermediate");
    inner = b.activate(b.linear("dense", x, c.intermediate, true));
  }
  Builder::Scope scope(b, "output");
  return b.layerNorm("LayerNorm", b.add(b.linear("dense", inner, c.hidden, true), x));
}

Value distilledLayer(Builder &b, Value x, Value bias) {
  const Config &c = b.config;
  Value attended;
  {
    Builder::Scope scope(b, "attention");
    Value q = b.splitHeads(b.linear("q_lin", x, c.hidden, true), c.heads), k = b.splitHeads(b.linear("k_lin", x, c.hidden, true), c.heads);
    Value context = b.attention(q, k, b.splitHeads(b.linear("v_lin", x, c.hidden, true), c.heads), bias);
    attended = b.linear("out_lin", context, c.hidden, true);
  }
  x = b.layerNorm("sa_layer_norm", b.add(attended, x));
  Value fed;
  {
    Builder::Scope scope(b, "ffn");
    fed = b.linear("lin2", b.activate(b.linear("lin1", x, c.intermediate, true)), c.hidden, true);
  }
  return b.layerNorm("output_layer_norm", b.add(fed, x));
}
} // namespace

void buildBert(Builder &b) {
  const Config &c = b.config;
  Value ids = b.input("input_ids", b.i64, {b.batch, b.sequence}, "");
  Value mask = b.input("attention_mask", b.i64, {b.batch, b.sequence}, "ones");
  Value types = b.input("token_type_ids", b.i64, {b.batch, b.sequence}, "zeros");
  Value x = embeddings(b, ids, types), bias = maskBias(b, mask);
  for (int64_t i = 0; i < c.layers; ++i) {
    Builder::Scope scope(b, "encoder.layer." + llvm::Twine(i));
    x = bertLayer(b, x, bias);
  }
  b.output("last_hidden_state", x);
  if (!b.has("pooler.dense.weight")) return;
  Builder::Scope scope(b, "pooler");
  Value first = b.reshape(b.slice(x, 1, Dim(0), Dim(1)), {b.batch, Dim(c.hidden)});
  b.output("pooler_output", b.unary(graph::UnaryKind::Tanh, b.linear("dense", first, c.hidden, true)));
}

void buildDistilBert(Builder &b) {
  Value ids = b.input("input_ids", b.i64, {b.batch, b.sequence}, "");
  Value mask = b.input("attention_mask", b.i64, {b.batch, b.sequence}, "ones");
  Value x = embeddings(b, ids, Value()), bias = maskBias(b, mask);
  for (int64_t i = 0; i < b.config.layers; ++i) {
    Builder::Scope scope(b, "transformer.layer." + llvm::Twine(i));
    x = distilledLayer(b, x, bias);
  }
  b.output("last_hidden_state", x);
}
} // namespace tare::huggingface
