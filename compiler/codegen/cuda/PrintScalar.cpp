// Scalar functions as C++ expressions: literals, casts, unary and binary ops on one element, with the meaning that
// compiler/codegen/cpu/EmitScalar.cpp has.
#include "compiler/codegen/cuda/Printer.h"
#include <cmath>

using namespace mlir;

namespace tare::cuda {

std::string number(Type element, double value) {
  bool isDouble = element.isF64();
  if (std::isnan(value)) return isDouble ? "static_cast<double>(TARE_NAN)" : "TARE_NAN";
  if (std::isinf(value))
    return std::string(value < 0 ? "-" : "") + (isDouble ? "static_cast<double>(TARE_INF)" : "TARE_INF");
  char text[64];
  snprintf(text, sizeof text, isDouble ? "%.17g" : "%.9g", value);
  std::string s = text;
  if (s.find_first_of(".e") == std::string::npos) s += ".0";
  return isDouble ? s : s + "f";
}

std::string literal(Type element, Attribute value) {
  if (auto dense = dyn_cast<DenseElementsAttr>(value)) {
    if (isa<FloatType>(element))
      value = FloatAttr::get(element, *dense.value_begin<APFloat>());
    else
      value = IntegerAttr::get(IntegerType::get(element.getContext(), element.getIntOrFloatBitWidth()),
                               *dense.value_begin<APInt>());
  }
  bool isFloat = isa<FloatType>(element);
  if (auto f = dyn_cast<FloatAttr>(value)) {
    if (isFloat) return number(element, f.getValueAsDouble());
    return std::to_string(static_cast<int64_t>(f.getValueAsDouble()));
  }
  if (auto i = dyn_cast<IntegerAttr>(value)) {
    if (isFloat) return number(element, static_cast<double>(i.getInt()));
    if (element.isInteger(1)) return i.getValue().isZero() ? "false" : "true";
    if (element.isUnsignedInteger())
      return std::to_string(i.getValue().getZExtValue()) + "u" + (element.getIntOrFloatBitWidth() == 64 ? "ll" : "");
    int64_t v = i.getValue().getSExtValue();
    if (v == INT64_MIN) return "(-9223372036854775807ll - 1)";
    return element.getIntOrFloatBitWidth() == 64 ? "i64(" + std::to_string(v) + ")"
           : v < 0                               ? "(" + std::to_string(v) + ")"
                                                 : std::to_string(v);
  }
  return isFloat ? number(element, 0) : "0";
}

std::string Printer::cast(const std::string &x, Type from, Type to) {
  if (from == to) return x;
  bool fromFloat = isa<FloatType>(from), toFloat = isa<FloatType>(to);
  std::string type = scalarType(to), store = storageType(to);
  if (to.isInteger(1)) return named("bool", x + " != " + (fromFloat ? number(from, 0) : "0"));
  if (toFloat) {
    bool half = to.isF16() || to.isBF16();
    if (!half) return scalarType(from) == type ? x : named(type, "static_cast<" + type + ">(" + x + ")");
    std::string wide = from.isF64() || !fromFloat ? "to_odd(static_cast<double>(" + x + "))" : x;
    return named("float", "rounded<" + store + ">(" + wide + ")");
  }
  if (fromFloat)
    return named(type, "to_integer<" + type + ">(" + x + ", " + (to.isUnsignedInteger() ? "true" : "false") + ", " +
                           std::to_string(to.getIntOrFloatBitWidth()) + ")");
  return named(type, "static_cast<" + type + ">(" + x + ")");
}

std::string Printer::unary(graph::UnaryKind kind, const std::string &x, Type element) {
  using K = graph::UnaryKind;
  std::string type = scalarType(element);
  auto call = [&](const char *function) { return named(type, std::string(function) + "(" + x + ")"); };
  if (kind == K::Identity) return x;
  if (isa<IntegerType>(element)) {
    auto wrap = [&](const std::string &e) { return named(type, "static_cast<" + type + ">(" + e + ")"); };
    switch (kind) {
    case K::Neg:
      return wrap("0 - " + x);
    case K::Not:
      return type == "bool" ? named("bool", "!" + x) : wrap("~" + x);
    case K::Abs:
      return call("absolute");
    case K::Relu:
      return call("relu");
    case K::Sign:
      return call("sign_of");
    case K::Floor:
    case K::Ceil:
    case K::Round:
      return x;
    case K::IsNaN:
    case K::IsInf:
      return "false";
    default:
      break;
    }
    Type f64 = Float64Type::get(element.getContext()); // a transcendental of an integer: through double
    return cast(unary(kind, cast(x, element, f64), f64), f64, element);
  }
  switch (kind) {
  case K::Neg:
    return named(type, "-" + x);
  case K::Abs:
    return call("absolute");
  case K::Sqrt:
    return call("square_root");
  case K::Rsqrt:
    return named(type, number(element, 1) + " / square_root(" + x + ")");
  case K::Reciprocal:
    return named(type, number(element, 1) + " / " + x);
  case K::Floor:
    return call(type == "float" ? "floor32" : "floor64");
  case K::Ceil:
    return call(type == "float" ? "ceil32" : "ceil64");
  case K::Round:
    return call("round_even");
  case K::Relu:
    return call("relu");
  case K::Sign:
    return call("sign_of");
  case K::Not:
    return named(type, x + " == " + number(element, 0) + " ? " + number(element, 1) + " : " + number(element, 0));
  case K::IsNaN:
    return named("bool", x + " != " + x);
  case K::IsInf:
    return named("bool", "absolute(" + x + ") == " + number(element, INFINITY));
  case K::Exp:
    return call("exp");
  case K::Log:
    return call("log");
  case K::Erf:
    return call("erf");
  case K::Tanh:
    return call("tanh");
  case K::Sin:
    return call("sin");
  case K::Cos:
    return call("cos");
  case K::Tan:
    return call("tan");
  case K::Asin:
    return call("asin");
  case K::Acos:
    return call("acos");
  case K::Atan:
    return call("atan");
  case K::Sinh:
    return call("sinh");
  case K::Cosh:
    return call("cosh");
  case K::Sigmoid:
    return call("sigmoid");
  case K::Softplus:
    return call("softplus");
  case K::Silu:
    return call("silu");
  case K::GeluErf:
    return call("gelu_erf");
  case K::GeluTanh:
    return call("gelu_tanh");
  case K::Identity:
    return x;
  }
  return x;
}

std::string Printer::binary(graph::BinaryKind kind, const std::string &x, const std::string &y, Type element) {
  using K = graph::BinaryKind;
  std::string type = scalarType(element);
  bool isFloat = isa<FloatType>(element);
  auto infix = [&](const char *op) {
    return isFloat || type == "bool" ? named(type, x + op + y)
                                     : named(type, "static_cast<" + type + ">(" + x + op + y + ")");
  };
  auto call = [&](const char *function) {
    return named(type, std::string(function) + "<" + type + ">(" + x + ", " + y + ")");
  };
  auto compare = [&](const char *op) { return named("bool", x + op + y); };
  switch (kind) {
  case K::Add:
    return infix(" + ");
  case K::Sub:
    return infix(" - ");
  case K::Mul:
    return infix(" * ");
  case K::Div:
    return isFloat ? infix(" / ") : call("divide");
  case K::Pow:
    return isFloat ? named(type, "power(" + x + ", " + y + ")") : call("integer_power");
  case K::Mod:
    return call("modulo");
  case K::Fmod:
    return isFloat ? named(type, "fmod_of(" + x + ", " + y + ")") : call("remainder_of");
  case K::Min:
    return call("min_of");
  case K::Max:
    return call("max_of");
  case K::And:
    return infix(" & ");
  case K::Or:
    return infix(" | ");
  case K::Xor:
    return infix(" ^ ");
  case K::Eq:
    return compare(" == ");
  case K::Lt:
    return compare(" < ");
  case K::Le:
    return compare(" <= ");
  case K::Gt:
    return compare(" > ");
  case K::Ge:
    return compare(" >= ");
  }
  return x;
}

} // namespace tare::cuda
