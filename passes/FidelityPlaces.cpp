// Looking for the FFN-up matmul of a check among the terms of sums (FidelityPlaces.h).
#include "passes/FidelityPlaces.h"
#include "compiler/checks/QuantizedCheck.h"
#include "passes/Groups.h"
#include "passes/Rewrite.h"

using namespace mlir;
using namespace tare::graph;

namespace tare {

/// Bits of one token lie in one word (kernels/cpu/kernels.h).
static constexpr int64_t kMostHeads = 32;

/// matmul(h, ..) among the terms of a sum.
static MatmulOp termOf(Value value, Value h, const Dims &dims, int depth = 0) {
  if (!value.hasOneUse() || dimsOf(value) != dims || depth > 8) return {};
  if (auto matmul = value.getDefiningOp<MatmulOp>()) return matmul.getLhs() == h && groupKindOf(matmul) == GroupKind::Gemm ? matmul : MatmulOp();
  auto sum = binaryOf(value, BinaryKind::Add);
  if (!sum) return {};
  MatmulOp left = termOf(sum->first, h, dims, depth + 1);
  return left ? left : termOf(sum->second, h, dims, depth + 1);
}

std::optional<CheckPlace> placeOf(FidelityCheckOp check) {
  Dims dims = dimsOf(check.getResult());
  Value value = check.getResult();
  BinaryOp own;
  for (int i = 0; i < 8 && value.hasOneUse(); ++i) {
    auto sum = dyn_cast<BinaryOp>(*value.user_begin());
    if (!sum || sum.getKind() != BinaryKind::Add || dimsOf(sum.getResult()) != dims) return std::nullopt;
    if (!own) own = sum;
    if (MatmulOp matmul = termOf(sum.getLhs() == value ? sum.getRhs() : sum.getLhs(), check.getH(), dims)) return CheckPlace{own, matmul};
    value = sum.getResult();
  }
  return std::nullopt;
}

CheckTokens checkTokens(func::FuncOp main) {
  CheckTokens found{0, 0, "its input is not [batch, tokens, width]"};
  for (auto check : main.getBody().getOps<FidelityCheckOp>())
    if (Dims h = dimsOf(check.getH()); h.size() == 3 && !found.blocked.empty()) found = {h[0], h[1], ""};
  for (unsigned i = 0; i < main.getNumArguments(); ++i)
    if (auto name = main.getArgAttrOfType<StringAttr>(i, kNameAttr); name && name == "anchors" && found.blocked.empty()) found.blocked = "the model has an input 'anchors' of its own";
  return found;
}

std::string whyNotFusable(FidelityCheckOp check, const CheckTokens &tokens) {
  if (!tokens.blocked.empty()) return tokens.blocked;
  Dims h = dimsOf(check.getH());
  if (!checks::checkWeights(check)) return "its weights are not constants of the file";
  if (h.size() != 3) return "its input is not [batch, tokens, width]";
  if (h[0] != tokens.batch || h[1] != tokens.tokens) return "its tokens are not those of the first check";
  if (dimsOf(check.getW())[0].constant().value_or(0) > kMostHeads) return "it has more than 32 heads";
  if (!placeOf(check)) return "its input is not the input of the product that it is added to";
  return "";
}

} // namespace tare
