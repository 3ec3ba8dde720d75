// Elementwise functions of two tensors with NumPy broadcasting, and their derivatives. Min and Max pass NaN on; integer division truncates and a
// zero divisor is an error; Mod takes the divisor's sign, Fmod the dividend's; Pow's exponent may have another element type than its base.
// Comparisons, logic and integers have derivative 0. Min and Max share a tie half and half (as PyTorch does).
#include "compiler/graph/Failure.h"
#include "compiler/reference/Math.h"
#include "compiler/reference/Walk.h"

using tare::graph::BinaryKind;

namespace tare::reference {
namespace {

double onFloats(BinaryKind kind, double a, double b) {
  switch (kind) {
  case BinaryKind::Add: return a + b;
  case BinaryKind::Sub: return a - b;
  case BinaryKind::Mul: return a * b;
  case BinaryKind::Div: return a / b;
  case BinaryKind::Pow: return b == 2 ? a * a : std::pow(a, b);
  case BinaryKind::Fmod: return std::fmod(a, b);
  case BinaryKind::Mod: {
    double r = std::fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
  }
  case BinaryKind::Min: return a != a || b != b ? a + b : a < b ? a : b;
  default: return a != a || b != b ? a + b : a > b ? a : b; // Max
  }
}

template <typename T> bool compare(BinaryKind kind, T a, T b) {
  switch (kind) {
  case BinaryKind::Eq: return a == b;
  case BinaryKind::Lt: return a < b;
  case BinaryKind::Le: return a <= b;
  case BinaryKind::Gt: return a > b;
  default: return a >= b;
  }
}

bool isComparison(BinaryKind kind) { return kind >= BinaryKind::Eq; }

uint64_t power(uint64_t base, uint64_t exponent) {
  uint64_t result = 1;
  for (; exponent; exponent >>= 1, base *= base)
    if (exponent & 1) result *= base;
  return result;
}

/// Wrapping arithmetic in the operands' type; nothing for a zero divisor.
std::optional<int64_t> onIntegers(BinaryKind kind, bool isUnsigned, int64_t a, int64_t b) {
  uint64_t ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  bool divides = kind == BinaryKind::Div || kind == BinaryKind::Mod || kind == BinaryKind::Fmod;
  if (divides && b == 0) return std::nullopt;
  switch (kind) {
  case BinaryKind::Add: return static_cast<int64_t>(ua + ub);
  case BinaryKind::Sub: return static_cast<int64_t>(ua - ub);
  case BinaryKind::Mul: return static_cast<int64_t>(ua * ub);
  case BinaryKind::Div: return isUnsigned ? static_cast<int64_t>(ua / ub) : b == -1 ? static_cast<int64_t>(0 - ua) : a / b;
  case BinaryKind::Pow:
    if (!isUnsigned && b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
    return static_cast<int64_t>(power(ua, ub));
  case BinaryKind::Fmod: return isUnsigned ? static_cast<int64_t>(ua % ub) : b == -1 ? 0 : a % b;
  case BinaryKind::Mod: {
    if (isUnsigned) return static_cast<int64_t>(ua % ub);
    int64_t r = b == -1 ? 0 : a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
  }
  case BinaryKind::Min: return isUnsigned ? (ua < ub ? a : b) : (a < b ? a : b);
  case BinaryKind::Max: return isUnsigned ? (ua > ub ? a : b) : (a > b ? a : b);
  case BinaryKind::And: return a & b;
  case BinaryKind::Or: return a | b;
  default: return a ^ b; // Xor
  }
}

double asDouble(const Tensor &t, int64_t i) { return t.isFloat() ? t.floats[i] : static_cast<double>(t.ints[i]); }
int64_t asInteger(const Tensor &t, int64_t i) { return t.isFloat() ? static_cast<int64_t>(t.floats[i]) : t.ints[i]; }

/// Derivatives of kind at (a, b) with result y.
double slopeLhs(BinaryKind kind, double a, double b) {
  switch (kind) {
  case BinaryKind::Mul: return b;
  case BinaryKind::Div: return 1 / b;
  case BinaryKind::Pow: return b == 0 ? 0 : b == 2 ? 2 * a : b * std::pow(a, b - 1);
  case BinaryKind::Min: return a < b ? 1 : a == b ? 0.5 : 0;
  case BinaryKind::Max: return a > b ? 1 : a == b ? 0.5 : 0;
  default: return 1; // Add, Sub, Mod, Fmod
  }
}
double slopeRhs(BinaryKind kind, double a, double b) {
  switch (kind) {
  case BinaryKind::Add: return 1;
  case BinaryKind::Sub: return -1;
  case BinaryKind::Mul: return a;
  case BinaryKind::Div: return -a / (b * b);
  case BinaryKind::Pow: return a == 0 && b >= 0 ? 0 : std::pow(a, b) * math::log(a);
  case BinaryKind::Mod: return -std::floor(a / b);
  case BinaryKind::Fmod: return -std::trunc(a / b);
  case BinaryKind::Min: return b < a ? 1 : a == b ? 0.5 : 0;
  default: return b > a ? 1 : a == b ? 0.5 : 0; // Max
  }
}

} // namespace

llvm::Expected<Tensor> binary(const Call &call) {
  BinaryKind kind = llvm::cast<graph::BinaryOp>(call.op).getKind();
  const Tensor &a = call.operand(0), &b = call.operand(1);
  Tensor y = call.result();
  std::array<Shape, 2> strides = {broadcastStrides(a.shape, y.shape), broadcastStrides(b.shape, y.shape)};
  int64_t i = 0;
  if (isComparison(kind)) {
    bool isUnsigned = a.element.isUnsignedInteger(64);
    walk<2>(y.shape, strides, [&](auto &at) {
      y.ints[i++] = a.isFloat() ? compare(kind, a.floats[at[0]], b.floats[at[1]])
                    : isUnsigned ? compare(kind, static_cast<uint64_t>(a.ints[at[0]]), static_cast<uint64_t>(b.ints[at[1]]))
                                 : compare(kind, a.ints[at[0]], b.ints[at[1]]);
    });
    return y;
  }
  if (y.isFloat()) {
    const bool both = a.isFloat() && b.isFloat();
    const double *x = a.floats.data(), *z = b.floats.data();
    auto fill = [&](auto fn) { walk<2>(y.shape, strides, [&](auto &at) { y.floats[i++] = fn(at); }); };
    if (both && kind == BinaryKind::Add)
      fill([&](auto &at) { return x[at[0]] + z[at[1]]; });
    else if (both && kind == BinaryKind::Mul)
      fill([&](auto &at) { return x[at[0]] * z[at[1]]; });
    else
      fill([&](auto &at) { return onFloats(kind, asDouble(a, at[0]), asDouble(b, at[1])); });
    return y;
  }
  auto type = llvm::cast<mlir::IntegerType>(y.element);
  bool zeroDivisor = false;
  walk<2>(y.shape, strides, [&](auto &at) {
    auto value = onIntegers(kind, type.isUnsigned(), asInteger(a, at[0]), asInteger(b, at[1]));
    zeroDivisor |= !value;
    y.ints[i++] = wrapTo(type, value.value_or(0));
  });
  if (zeroDivisor) return refuse("integer division by zero in " + graph::stringifyBinaryKind(kind).str());
  return y;
}

Cotangents binaryVjp(const VjpCall &call) {
  BinaryKind kind = llvm::cast<graph::BinaryOp>(call.op).getKind();
  Cotangents result(2);
  if (isComparison(kind)) return result;
  const Tensor &a = call.operand(0), &b = call.operand(1), &g = call.cotangent;
  std::array<Shape, 2> strides = {broadcastStrides(a.shape, g.shape), broadcastStrides(b.shape, g.shape)};
  for (int side = 0; side < 2; ++side) {
    const Tensor &operand = side ? b : a;
    if (!call.wanted[side] || !operand.isFloat()) continue;
    result[side] = Tensor::zeros(operand.element, operand.shape);
    int64_t i = 0;
    double *sum = result[side].floats.data();
    auto add = [&](auto slope) { walk<2>(g.shape, strides, [&](auto &at) { sum[at[side]] += g.floats[i++] * slope(at); }); };
    if (kind == BinaryKind::Add)
      add([](auto &) { return 1.0; });
    else if (kind == BinaryKind::Mul)
      add([&](auto &at) { return side ? a.floats[at[0]] : b.floats[at[1]]; });
    else if (side)
      add([&](auto &at) { return slopeRhs(kind, asDouble(a, at[0]), asDouble(b, at[1])); });
    else
      add([&](auto &at) { return slopeLhs(kind, asDouble(a, at[0]), asDouble(b, at[1])); });
  }
  return result;
}

} // namespace tare::reference
