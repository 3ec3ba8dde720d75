// Llama as graph ops. In: a Builder. Out: main(input_ids, attention_mask, past_key_values.N.key/value) -> logits, present.N.key/value.
// Keys and values are [batch, kv heads, past + sequence, head dim], keys after rotation. Rotary angles are computed in f32 from integer positions,
// max(0, cumsum(mask) - 1), so that left padding shifts them as in the reference.
#include "compiler/import/HuggingFaceBuilder.h"
#include <cmath>
#include <numbers>

using namespace mlir;

namespace tare::huggingface {
namespace {
constexpr double kMasked = -1e30; // see HuggingFaceEncoder.cpp

/// One frequency per pair of a head, computed in double and rounded once. Llama 3's blend: transformers, modeling_rope_utils.
std::vector<float> frequencies(const Config &c) {
  std::vector<float> out;
  for (int64_t i = 0; i < c.headDim; i += 2) {
    double f = std::pow(c.rope.theta, -double(i) / double(c.headDim));
    if (c.rope.kind == Rope::Kind::Linear) f /= c.rope.factor;
    if (c.rope.kind == Rope::Kind::Llama3) {
      double turns = c.rope.originalPositions * f / (2 * std::numbers::pi);
      double smooth = (turns - c.rope.lowFreqFactor) / (c.rope.highFreqFactor - c.rope.lowFreqFactor);
      smooth = std::min(1.0, std::max(0.0, smooth));
      f = (1 - smooth) * f / c.rope.factor + smooth * f;
    }
    out.push_back(float(f));
  }
  return out;
}

/// Pairs are (i, i + d/2): [x1, x2] -> [x1 cos - x2 sin, x2 cos + x1 sin] with cos, sin [batch, 1, sequence, d/2].
Value rotate(Builder &b, Value x, Value cos, Value sin) {
  Dim half(b.config.headDim / 2);
  Value x1 = b.slice(x, 3, Dim(0), half), x2 = b.slice(x, 3, half, half);
  Value y1 = b.binary(graph::BinaryKind::Sub, b.mul(x1, cos), b.mul(x2, sin));
  return b.concat({y1, b.add(b.mul(x2, cos), b.mul(x1, sin))}, 3);
}

/// Every head of k and v serves heads / kvHeads heads of q.
Value repeat(Builder &b, Value x) {
  const Config &c = b.config;
  if (c.heads == c.kvHeads) return x;
  Dims d = graph::dimsOf(x);
  int64_t times = c.heads / c.kvHeads;
  Value wide = b.expand(b.reshape(x, {d[0], d[1], Dim(1), d[2], d[3]}), {d[0], d[1], Dim(times), d[2], d[3]});
  return b.reshape(wide, {d[0], Dim(c.heads), d[2], d[3]});
}

struct Shared {
  Value cos, sin, bias;
};

Shared shared(Builder &b, Value mask) {
  const Config &c = b.config;
  Dim total = b.past + b.sequence;
  Value live = b.cast(mask, b.i1);
  // cumsum - 1 is negative only before the first unmasked token of a row.
  Value positions = b.slice(b.cumsum(b.cast(live, b.i64), 1), 1, b.past, b.sequence);
  Value p = b.binary(graph::BinaryKind::Max, b.binary(graph::BinaryKind::Sub, b.cast(positions, b.f32), b.scalar(1)), b.scalar(0));
  Value angles = b.mul(b.reshape(p, {b.batch, Dim(1), b.sequence, Dim(1)}), b.reshape(b.floats(frequencies(c)), {Dim(1), Dim(1), Dim(1), Dim(c.headDim / 2)}));
  Value row = b.reshape(b.range(b.past, b.sequence), {Dim(1), Dim(1), b.sequence, Dim(1)}), column = b.reshape(b.range(Dim(0), total), {Dim(1), Dim(1), Dim(1), total});
  Value causal = b.binary(graph::BinaryKind::Le, column, row);
  Value seen = b.binary(graph::BinaryKind::And, causal, b.reshape(live, {b.batch, Dim(1), Dim(1), total}));
  return {b.unary(graph::UnaryKind::Cos, angles), b.unary(graph::UnaryKind::Sin, angles), b.select(seen, b.scalar(0), b.scalar(kMasked))};
}

struct State {
  Value key, value;
};

Value attend(Builder &b, Value x, const Shared &common, State &state) {
  const Config &c = b.config;
  Builder::Scope scope(b, "self_attn");
  Value q = b.splitHeads(b.linear("q_proj", x, c.heads * c.headDim, c.qkvBias), c.heads);
  Value k = b.splitHeads(b.linear("k_proj", x, c.kvHeads * c.headDim, c.qkvBias), c.kvHeads);
  Value v = b.splitHeads(b.linear("v_proj", x, c.kvHeads * c.headDim, c.qkvBias), c.kvHeads);
  q = rotate(b, q, common.cos, common.sin);
  state.key = b.concat({state.key, rotate(b, k, common.cos, common.sin)}, 2);
  state.value = b.concat({state.value, v}, 2);
  Value context = b.attention(q, repeat(b, state.key), repeat(b, state.value), common.bias);
  return b.linear("o_proj", context, c.hidden, c.outputBias);
}

Value feed(Builder &b, Value x) {
  const Config &c = b.config;
  Builder::Scope scope(b, "mlp");
  Value gate = b.activate(b.linear("gate_proj", x, c.intermediate, c.mlpBias));
  return b.linear("down_proj", b.mul(gate, b.linear("up_proj", x, c.intermediate, c.mlpBias)), c.hidden, c.mlpBias);
}
} // namespace

void buildLlama(Builder &b) {
  const Config &c = b.config;
  Value ids = b.input("input_ids", b.i64, {b.batch, b.sequence}, "");
  Value mask = b.input("attention_mask", b.i64, {b.batch, b.past + b.sequence}, "ones");
  std::vector<State> states(c.layers);
  for (int64_t i = 0; i < c.layers; ++i) {
    std::string name = "past_key_values." + std::to_string(i);
    Dims dims = {b.batch, Dim(c.kvHeads), b.past, Dim(c.headDim)};
    states[i].key = b.input(name + ".key", b.f32, dims, "empty");
    states[i].value = b.input(name + ".value", b.f32, dims, "empty");
  }
  Value x, table;
  {
    Builder::Scope scope(b, b.has("model.embed_tokens.weight") || !b.has("embed_tokens.weight") ? "model" : "");
    Shared common = shared(b, mask);
    table = b.weight("embed_tokens.weight", {c.vocabulary, c.hidden});
    x = b.wide(b.gather(table, ids));
    for (int64_t i = 0; i < c.layers; ++i) {
      Builder::Scope layer(b, "layers." + llvm::Twine(i));
      x = b.add(x, attend(b, b.rmsNorm("input_layernorm", x), common, states[i]));
      x = b.add(x, feed(b, b.rmsNorm("post_attention_layernorm", x)));
    }
    x = b.rmsNorm("norm", x);
  }
  // Tied: the head is the embedding table; a head that the checkpoint stores all the same wins, as it holds what was trained.
  if (c.tiedHead && !b.has("lm_head.weight")) {
    Builder::Scope scope(b, "lm_head");
    b.output("logits", b.matmul(x, b.wide(b.transpose(table, {1, 0}))));
  } else {
    b.output("logits", b.linear("lm_head", x, c.vocabulary, false));
  }
  for (int64_t i = 0; i < c.layers; ++i) {
    b.output("present." + std::to_string(i) + ".key", states[i].key);
    b.output("present." + std::to_string(i) + ".value", states[i].value);
  }
}
} // namespace tare::huggingface
