// Elementwise functions of one tensor and their derivatives: one table row per kind. Floats follow ONNX: Round is half to even, comparisons with
// NaN are false, NaN passes through every function but IsNaN/IsInf. Integers know Neg, Abs, Sign, Relu, Not and Identity.
// At a kink the derivative is the one PyTorch takes (0 for Relu and Abs at 0); steps have derivative 0 and pass no cotangent.
#include "compiler/graph/Failure.h"
#include "compiler/reference/Math.h"
#include "compiler/reference/Ops.h"

using tare::graph::UnaryKind;

namespace tare::reference {
namespace {

constexpr double kInvSqrt2 = 0.70710678118654752440, kInvSqrt2Pi = 0.39894228040143267794, kSqrt2OverPi = 0.79788456080286535588;

double geluTanhInner(double x) { return kSqrt2OverPi * (x + 0.044715 * x * x * x); }
double relu(double x) { return x > 0 || x != x ? x : 0; }
double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }

struct Function {
  UnaryKind kind;
  double (*value)(double x);
  double (*slope)(double x, double y); ///< derivative at x, given y = value(x); null for steps
};

constexpr Function kFunctions[] = {
    {UnaryKind::Neg, [](double x) { return -x; }, [](double, double) { return -1.0; }},
    {UnaryKind::Abs, [](double x) { return std::fabs(x); }, [](double x, double) { return x > 0 ? 1.0 : x < 0 ? -1.0 : 0.0; }},
    {UnaryKind::Exp, [](double x) { return math::exp(x); }, [](double, double y) { return y; }},
    {UnaryKind::Log, [](double x) { return math::log(x); }, [](double x, double) { return 1 / x; }},
    {UnaryKind::Sqrt, [](double x) { return std::sqrt(x); }, [](double, double y) { return 0.5 / y; }},
    {UnaryKind::Rsqrt, [](double x) { return 1 / std::sqrt(x); }, [](double x, double y) { return -0.5 * y / x; }},
    {UnaryKind::Reciprocal, [](double x) { return 1 / x; }, [](double, double y) { return -y * y; }},
    {UnaryKind::Erf, [](double x) { return math::erf(x); }, [](double x, double) { return 1.1283791670955125739 * math::exp(-x * x); }},
    {UnaryKind::Tanh, [](double x) { return math::tanh(x); }, [](double, double y) { return 1 - y * y; }},
    {UnaryKind::Sigmoid, [](double x) { return math::sigmoid(x); }, [](double, double y) { return y * (1 - y); }},
    {UnaryKind::Relu, relu, [](double x, double) { return x > 0 ? 1.0 : 0.0; }},
    {UnaryKind::Sin, [](double x) { return math::sin(x); }, [](double x, double) { return math::cos(x); }},
    {UnaryKind::Cos, [](double x) { return math::cos(x); }, [](double x, double) { return -math::sin(x); }},
    {UnaryKind::Floor, [](double x) { return std::floor(x); }, nullptr},
    {UnaryKind::Ceil, [](double x) { return std::ceil(x); }, nullptr},
    {UnaryKind::Round, [](double x) { return std::nearbyint(x); }, nullptr},
    {UnaryKind::Sign, sign, nullptr},
    {UnaryKind::Softplus, [](double x) { return math::softplus(x); }, [](double x, double) { return math::sigmoid(x); }},
    {UnaryKind::GeluErf, [](double x) { return 0.5 * x * (1 + math::erf(x * kInvSqrt2)); },
     [](double x, double) { return 0.5 * (1 + math::erf(x * kInvSqrt2)) + x * kInvSqrt2Pi * math::exp(-0.5 * x * x); }},
    {UnaryKind::GeluTanh, [](double x) { return 0.5 * x * (1 + math::tanh(geluTanhInner(x))); },
     [](double x, double) {
       double t = math::tanh(geluTanhInner(x));
       return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kSqrt2OverPi * (1 + 3 * 0.044715 * x * x);
     }},
    {UnaryKind::Silu, [](double x) { return x * math::sigmoid(x); },
     [](double x, double) {
       double s = math::sigmoid(x);
       return s * (1 + x * (1 - s));
     }},
    {UnaryKind::Identity, [](double x) { return x; }, [](double, double) { return 1.0; }},
    {UnaryKind::Tan, [](double x) { return math::sin(x) / math::cos(x); }, [](double, double y) { return 1 + y * y; }},
    {UnaryKind::Asin, [](double x) { return std::asin(x); }, [](double x, double) { return 1 / std::sqrt(1 - x * x); }},
    {UnaryKind::Acos, [](double x) { return std::acos(x); }, [](double x, double) { return -1 / std::sqrt(1 - x * x); }},
    {UnaryKind::Atan, [](double x) { return std::atan(x); }, [](double x, double) { return 1 / (1 + x * x); }},
    {UnaryKind::Sinh, [](double x) { return std::sinh(x); }, [](double x, double) { return std::cosh(x); }},
    {UnaryKind::Cosh, [](double x) { return std::cosh(x); }, [](double x, double) { return std::sinh(x); }},
};

const Function *find(UnaryKind kind) {
  for (const Function &f : kFunctions)
    if (f.kind == kind) return &f;
  return nullptr;
}

std::optional<int64_t> onInteger(UnaryKind kind, mlir::IntegerType type, int64_t x) {
  switch (kind) {
  case UnaryKind::Neg: return wrapTo(type, static_cast<int64_t>(-static_cast<uint64_t>(x)));
  case UnaryKind::Abs: return type.isUnsigned() || x >= 0 ? x : wrapTo(type, static_cast<int64_t>(-static_cast<uint64_t>(x)));
  case UnaryKind::Sign: return type.isUnsigned() ? x != 0 : (x > 0) - (x < 0);
  case UnaryKind::Relu: return type.isUnsigned() || x > 0 ? x : 0;
  case UnaryKind::Not: return type.getWidth() == 1 ? !x : wrapTo(type, ~x);
  case UnaryKind::Identity: case UnaryKind::Floor: case UnaryKind::Ceil: case UnaryKind::Round: return x;
  default: return std::nullopt;
  }
}

} // namespace

llvm::Expected<Tensor> unary(const Call &call) {
  UnaryKind kind = llvm::cast<graph::UnaryOp>(call.op).getKind();
  const Tensor &x = call.operand(0);
  Tensor y = call.result();
  if (kind == UnaryKind::IsNaN || kind == UnaryKind::IsInf) {
    for (size_t i = 0; i < x.floats.size(); ++i)
      y.ints[i] = kind == UnaryKind::IsNaN ? x.floats[i] != x.floats[i] : std::fabs(x.floats[i]) == math::kInfinity;
    return y;
  }
  const Function *f = find(kind);
  if (x.isFloat() && f) {
    for (size_t i = 0; i < x.floats.size(); ++i) y.floats[i] = f->value(x.floats[i]);
    return y;
  }
  for (size_t i = 0; i < x.ints.size(); ++i) {
    auto value = onInteger(kind, llvm::cast<mlir::IntegerType>(x.element), x.ints[i]);
    if (!value) return refuse("graph.unary " + graph::stringifyUnaryKind(kind).str() + " has no meaning on integers");
    y.ints[i] = *value;
  }
  return y;
}

Cotangents unaryVjp(const VjpCall &call) {
  const Function *f = find(llvm::cast<graph::UnaryOp>(call.op).getKind());
  Cotangents result(1);
  if (!f || !f->slope || !call.wanted[0]) return result;
  const Tensor &x = call.operand(0);
  result[0] = Tensor::zeros(x.element, x.shape);
  for (size_t i = 0; i < x.floats.size(); ++i)
    result[0].floats[i] = call.cotangent.floats[i] * f->slope(x.floats[i], call.value.floats[i]);
  return result;
}

} // namespace tare::reference
