// graph.fidelity_check in float64: dense for every token, or near anchors and carried elsewhere, with W or with the integers that stand for it.
#include "compiler/reference/FidelityCheck.h"
#include "compiler/reference/Gemm.h"
#include "compiler/reference/Ops.h"
#include <cmath>

namespace tare::reference {

std::vector<bool> evaluatedTokens(llvm::ArrayRef<int64_t> anchors, int64_t tokens, int64_t window) {
  std::vector<bool> evaluated(tokens);
  if (tokens) evaluated[0] = true;
  for (int64_t anchor : anchors)
    for (int64_t t = std::max<int64_t>(anchor - window, 0); t < std::min(anchor, tokens); ++t) evaluated[t] = true;
  return evaluated;
}

std::vector<double> denseBits(const Tensor &h, const Tensor &w, const Tensor &p, const Tensor &tau) {
  int64_t heads = w.shape[0], rank = w.shape[1], width = w.shape[2], tokens = width ? h.elementCount() / width : 0;
  std::vector<double> wt(width * heads * rank), z(tokens * heads * rank), bits(tokens * heads);
  for (int64_t row = 0; row < heads * rank; ++row)
    for (int64_t d = 0; d < width; ++d) wt[d * heads * rank + row] = w.floats[row * width + d];
  gemmAccumulate(tokens, heads * rank, width, h.floats.data(), width, 1, wt.data(), heads * rank, z.data(), heads * rank);
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t k = 0; k < heads; ++k) {
      double sum = 0;
      for (int64_t r = 0; r < rank; ++r) {
        double d = z[(t * heads + k) * rank + r] - p.floats[k * rank + r];
        sum += d * d;
      }
      bits[t * heads + k] = std::sqrt(sum) < tau.floats[k] ? 1 : 0;
    }
  return bits;
}

void carryBits(llvm::MutableArrayRef<double> bits, const std::vector<bool> &evaluated, int64_t heads) {
  for (size_t t = 1; t < evaluated.size(); ++t)
    if (!evaluated[t]) std::copy_n(bits.begin() + (t - 1) * heads, heads, bits.begin() + t * heads);
}

/// q * scale of its group, in the place of W.
static Tensor dequantized(const Tensor &w, const Tensor &q, const Tensor &scale, int64_t group) {
  Tensor result = w;
  int64_t width = w.shape[2], groups = scale.shape[2];
  for (int64_t i = 0; i < w.elementCount(); ++i) result.floats[i] = static_cast<double>(q.ints[i]) * scale.floats[i / width * groups + i % width / group];
  return result;
}

static std::vector<double> bitsOf(const Call &call) {
  auto op = llvm::cast<graph::FidelityCheckOp>(call.op);
  const Tensor &h = call.operand(0), &w = call.operand(1), &p = call.operand(2), &tau = call.operand(3);
  if (!op.getAnchors()) return denseBits(h, w, p, tau);
  const Tensor &anchors = call.operand(5);
  std::vector<double> bits = op.getQuantized() ? denseBits(h, dequantized(w, call.operand(6), call.operand(7), op.getGroup()), p, tau) : denseBits(h, w, p, tau);
  int64_t batch = h.shape[0], tokens = h.shape[1], heads = w.shape[0], count = anchors.shape[1];
  for (int64_t b = 0; b < batch; ++b) {
    auto evaluated = evaluatedTokens(llvm::ArrayRef(anchors.ints).slice(b * count, count), tokens, op.getWindow());
    carryBits(llvm::MutableArrayRef(bits).slice(b * tokens * heads, tokens * heads), evaluated, heads);
  }
  return bits;
}

llvm::Expected<Tensor> fidelityCheck(const Call &call) {
  Tensor y = call.result();
  const Tensor &e = call.operand(4);
  std::vector<double> bits = bitsOf(call);
  int64_t heads = e.shape[0], width = e.shape[1];
  gemmAccumulate(bits.size() / std::max<int64_t>(heads, 1), width, heads, bits.data(), heads, 1, e.floats.data(), width, y.floats.data(), width);
  return y;
}

// The bits are steps: nothing flows to h, W, p and tau; E gets the sum of the cotangents of the tokens whose bit is set.
Cotangents fidelityCheckVjp(const VjpCall &call) {
  Cotangents result(call.operands.size());
  if (!call.wanted[4]) return result;
  const Tensor &e = call.operand(4);
  std::vector<double> bits = bitsOf(call);
  int64_t heads = e.shape[0], width = e.shape[1];
  result[4] = Tensor::zeros(e.element, e.shape);
  gemmAccumulate(heads, width, bits.size() / std::max<int64_t>(heads, 1), bits.data(), 1, heads, call.cotangent.floats.data(), width,
                 result[4].floats.data(), width);
  return result;
}

} // namespace tare::reference
