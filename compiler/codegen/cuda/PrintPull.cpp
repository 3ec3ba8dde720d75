// Pulling: the expression for any element of any value in a kernel body (compiler/codegen/cpu/EmitPull.cpp,
// EmitMoving.cpp and EmitReduce.cpp in text). Sizes may be 0 at run time: an operand is read only where its indices are
// inside, so concat and pad branch, and gathers check their index.
#include "compiler/codegen/cuda/Printer.h"
#include "compiler/codegen/IndexWalk.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;

namespace tare::cuda {

static Type elementType(Value tensor) { return cast<RankedTensorType>(tensor.getType()).getElementType(); }

std::string Printer::pullDequantize(graph::DequantizeOp op, Indices indices) {
  Type target = elementType(op.getResult());
  auto parameter = [&](Value tensor) {
    Dims dims = graph::dimsOf(tensor);
    if (elementCount(dims).isConstant(1)) return element(tensor, SmallVector<Index>(dims.size(), "0"));
    size_t axis = op.getAxis();
    if (op.getBlockSize() == 0) return element(tensor, {indices[axis]});
    SmallVector<Index> blocked(indices);
    blocked[axis] = div(indices[axis], std::to_string(op.getBlockSize()));
    return element(tensor, blocked);
  };
  auto widened = [&](const std::string &scalar, Value tensor) { return cast(scalar, elementType(tensor), target); };
  std::string x = widened(element(op.getX(), indices), op.getX());
  if (op.getZeroPoint())
    x = binary(graph::BinaryKind::Sub, x, widened(parameter(op.getZeroPoint()), op.getZeroPoint()), target);
  return binary(graph::BinaryKind::Mul, x, widened(parameter(op.getScale()), op.getScale()), target);
}

std::string Printer::pull(Value tensor, Indices indices) {
  if (auto it = memory.find(tensor); it != memory.end()) return load(it->second, indices);
  Dims dims = graph::dimsOf(tensor);
  Type type = elementType(tensor);
  auto at = [&](Value operand) { return element(operand, broadcast(operand, indices, dims)); };
  return TypeSwitch<Operation *, std::string>(tensor.getDefiningOp())
      .Case([&](graph::ConstantOp c) { return literal(type, c.getValue()); })
      .Case([&](graph::FillOp f) { return literal(type, f.getValue()); })
      .Case([&](graph::UnaryOp u) { return unary(u.getKind(), element(u.getX(), indices), elementType(u.getX())); })
      .Case([&](graph::BinaryOp o) {
        std::string x = at(o.getLhs()), y = at(o.getRhs());
        Type xType = elementType(o.getLhs()), yType = elementType(o.getRhs());
        if (o.getKind() == graph::BinaryKind::Pow) { // ONNX lets the exponent's type differ
          if (std::optional<double> power = graph::scalarValue(o.getRhs()); power && isa<FloatType>(xType)) {
            if (*power == 2) return binary(graph::BinaryKind::Mul, x, x, xType);
            if (*power == 3)
              return binary(graph::BinaryKind::Mul, binary(graph::BinaryKind::Mul, x, x, xType), x, xType);
            if (*power == 1) return x;
          }
          if (isa<IntegerType>(xType) && isa<FloatType>(yType)) {
            Type f64 = Float64Type::get(tensor.getContext());
            return cast(binary(graph::BinaryKind::Pow, cast(x, xType, f64), cast(y, yType, f64), f64), f64, xType);
          }
          y = cast(y, yType, xType.isF16() || xType.isBF16() ? Type(Float32Type::get(tensor.getContext())) : xType);
        }
        return binary(o.getKind(), x, y, xType);
      })
      .Case([&](graph::SelectOp s) {
        std::string cond = at(s.getCond()), x = at(s.getLhs()), y = at(s.getRhs());
        return x == y ? x : named(scalarType(type), cond + " ? " + x + " : " + y);
      })
      .Case([&](graph::CastOp c) { return cast(element(c.getX(), indices), elementType(c.getX()), type); })
      .Case([&](graph::DequantizeOp d) { return pullDequantize(d, indices); })
      .Case([&](graph::ReduceOp r) { return pullReduce(r, indices); })
      .Case([&](graph::CumSumOp c) { return pullCumSum(c, indices); })
      .Case([&](graph::MatmulOp m) { return pullMatmul(m, indices); })
      .Default([&](Operation *) { return pullMoving(tensor, indices); });
}

std::string Printer::pullConcat(graph::ConcatOp op, Indices indices) {
  size_t axis = op.getAxis();
  Type type = elementType(op.getResult());
  int64_t fixed;
  bool known = isNumber(indices[axis], &fixed);
  auto from = [&](Value input, const Dim &offset) {
    SmallVector<Index> inner(indices);
    inner[axis] = sub(indices[axis], dim(offset));
    return element(input, inner);
  };
  std::function<std::string(size_t, Dim)> rest = [&](size_t i, Dim offset) -> std::string {
    Value input = op.getInputs()[i];
    Dim end = offset + graph::dimsOf(input)[axis];
    if (i + 1 == op.getInputs().size()) return from(input, offset);
    if (known && end.constant()) return fixed < *end.constant() ? from(input, offset) : rest(i + 1, end);
    return choose(
        indices[axis] + " < " + dimText(end), type, [&] { return from(input, offset); },
        [&] { return rest(i + 1, end); });
  };
  return rest(0, 0);
}

std::string Printer::pullPad(graph::PadOp op, Indices indices) {
  Dims before = op.getBefore().dims(), own = graph::dimsOf(op.getX()), dims = graph::dimsOf(op.getResult());
  SmallVector<Index> inner(indices);
  std::string inside;
  auto also = [&](const std::string &cond) { inside += (inside.empty() ? "" : " && ") + cond; };
  for (size_t i = 0; i < own.size(); ++i) {
    inner[i] = sub(indices[i], dim(before[i]));
    if (!before[i].isConstant(0)) also(inner[i] + " >= 0");
    if (!(before[i] + own[i] == dims[i])) also(inner[i] + " < " + dimText(own[i]));
  }
  if (inside.empty()) return element(op.getX(), inner);
  auto padding = [&] { return element(op.getValue(), SmallVector<Index>(graph::dimsOf(op.getValue()).size(), "0")); };
  return choose(
      inside, elementType(op.getX()), [&] { return element(op.getX(), inner); }, padding);
}

std::string Printer::checkedIndex(const std::string &index, Type element, const Dim &size) {
  std::string wide = scalarType(element) == "i64" ? index : "static_cast<i64>(" + index + ")";
  return named("i64", "checked_index(" + wide + ", " + dimText(size) + ", " + kFault.str() + ", " + kStep.str() + ")",
               "g");
}

/// The sum, maximum... of one element's reduced values, in a loop nest of its own.
std::string Printer::pullReduce(graph::ReduceOp op, Indices indices) {
  using K = graph::ReduceKind;
  using B = graph::BinaryKind;
  Value x = op.getX();
  Type element = elementType(x),
       wide = element.isF16() || element.isBF16() ? Type(Float32Type::get(x.getContext())) : element;
  std::string type = scalarType(element);
  bool isFloat = isa<FloatType>(element);
  Dims dims = graph::dimsOf(x), reduced;
  for (int64_t axis : op.getAxes())
    reduced.push_back(dims[axis]);
  auto inputIndices = [&](Indices at) { return codegen::reductionIndices<Index>(op, indices, at); };
  auto extreme = [&](bool least) -> std::string {
    if (isFloat) return number(wide, least ? -INFINITY : INFINITY);
    unsigned width = element.getIntOrFloatBitWidth();
    if (element.isInteger(1)) return least ? "false" : "true";
    if (element.isUnsignedInteger()) return least ? "0" : "static_cast<" + type + ">(~0ull)";
    return "static_cast<" + type + ">(" +
           (least ? std::string("1ull << ") + std::to_string(width - 1)
                  : "(1ull << " + std::to_string(width - 1) + ") - 1") +
           ")";
  };
  // `combine` puts two partial results together; with `lanes` each lane has taken every 32nd element.
  auto fold = [&](const std::string &init, B combine,
                  llvm::function_ref<std::string(const std::string &, const std::string &)> step) {
    std::string acc = fresh("s");
    line(type + " " + acc + " = " + init + ";");
    auto one = [&](Indices at) { line(acc + " = " + step(acc, this->element(x, inputIndices(at))) + ";"); };
    if (!lanes) {
      nest(reduced, one);
      return acc;
    }
    std::string n = fresh("n");
    open("for (i64 " + n + " = lane_index(); " + n + " < " + dimText(elementCount(reduced)) + "; " + n + " += 32) {");
    one(delinearise(n, reduced));
    close();
    return named(type, "warp_fold(" + acc + ", [](" + type + " a, " + type + " b) { return " +
                           (combine == B::Max   ? "max_of(a, b)"
                            : combine == B::Min ? "min_of(a, b)"
                            : combine == B::Mul ? "a * b"
                                                : "a + b") +
                           "; })");
  };
  std::string zero = isFloat ? number(wide, 0) : "0";
  auto sumOf = [&](llvm::function_ref<std::string(const std::string &)> term) {
    return fold(zero, B::Add, [&](const std::string &sum, const std::string &v) {
      return (isFloat ? "" : "static_cast<" + type + ">(") + sum + " + " + term(v) + (isFloat ? "" : ")");
    });
  };
  auto same = [](const std::string &v) { return v; };
  auto square = [&](const std::string &v) { return binary(B::Mul, v, v, element); };
  switch (op.getKind()) {
  case K::Sum:
    return sumOf(same);
  case K::Mean: {
    std::string sum = sumOf(same);
    return binary(B::Div, sum, named(type, "static_cast<" + type + ">(" + dimText(elementCount(reduced)) + ")"),
                  element);
  }
  case K::L1:
    return sumOf([&](const std::string &v) { return unary(graph::UnaryKind::Abs, v, element); });
  case K::L2:
    return unary(graph::UnaryKind::Sqrt, sumOf(square), element);
  case K::SumSquare:
    return sumOf(square);
  case K::LogSum:
    return unary(graph::UnaryKind::Log, sumOf(same), element);
  case K::LogSumExp: {
    std::string most =
        fold(extreme(true), B::Max, [&](const std::string &m, const std::string &v) { return binary(B::Max, m, v, element); });
    std::string shift =
        named(type, "absolute(" + most + ") == " + number(wide, INFINITY) + " ? " + zero + " : " + most);
    std::string sum = sumOf(
        [&](const std::string &v) { return unary(graph::UnaryKind::Exp, binary(B::Sub, v, shift, element), element); });
    return binary(B::Add, unary(graph::UnaryKind::Log, sum, element), shift, element);
  }
  case K::Max:
    return fold(extreme(true), B::Max,
                [&](const std::string &m, const std::string &v) { return binary(B::Max, m, v, element); });
  case K::Min:
    return fold(extreme(false), B::Min,
                [&](const std::string &m, const std::string &v) { return binary(B::Min, m, v, element); });
  case K::Prod:
    return fold(isFloat ? number(wide, 1) : "1", B::Mul,
                [&](const std::string &p, const std::string &v) { return binary(B::Mul, p, v, element); });
  case K::ArgMax:
  case K::ArgMin: {
    bool most = op.getKind() == K::ArgMax, last = op.getLastIndex();
    std::string best = fresh("s"), place = fresh("s");
    line(type + " " + best + " = " + extreme(most) + ";");
    line("i64 " + place + " = 0;");
    nest(reduced, [&](Indices at) {
      std::string v = this->element(x, inputIndices(at));
      std::string wins = v + (most ? (last ? " >= " : " > ") : (last ? " <= " : " < ")) + best;
      if (isFloat)
        wins += " || (" + v + " != " + v + (last ? ")" : " && " + best + " == " + best + ")"); // NaN wins over numbers
      line("if (" + wins + ") " + best + " = " + v + ", " + place + " = " + at[0] + ";");
    });
    return place;
  }
  }
  return zero;
}

/// The running sum up to (or, with reverse, from) the index: quadratic, as on the CPU.
std::string Printer::pullCumSum(graph::CumSumOp op, Indices indices) {
  size_t axis = op.getAxis();
  Type element = elementType(op.getX());
  std::string type = scalarType(element), acc = fresh("s"), n = fresh("n"), here = indices[axis];
  std::string lo = op.getReverse() ? (op.getExclusive() ? here + " + 1" : here) : "0";
  std::string hi =
      op.getReverse() ? dimText(graph::dimsOf(op.getX())[axis]) : (op.getExclusive() ? here : here + " + 1");
  line(
      type + " " + acc + " = " +
      (isa<FloatType>(element) ? number(element.isF64() ? element : Type(Float32Type::get(op.getContext())), 0) : "0") +
      ";");
  open("for (i64 " + n + " = " + lo + "; " + n + " < " + hi + "; ++" + n + ") {");
  SmallVector<Index> at(indices);
  at[axis] = n;
  line(acc + " = static_cast<" + type + ">(" + acc + " + " + this->element(op.getX(), at) + ");");
  close();
  return acc;
}

SmallVector<Index> Printer::operandIndices(graph::MatmulOp op, Value operand, Indices batch, const Index &first,
                                           const Index &second) {
  Dims own = graph::dimsOf(operand), dims = graph::dimsOf(op.getResult());
  SmallVector<Index> at;
  size_t lead = own.size() > 2 ? own.size() - 2 : 0;
  for (size_t i = 0; i < lead; ++i) {
    Index index = batch[batch.size() - lead + i];
    if (own[i].isConstant(1))
      index = "0";
    else if (!(own[i] == dims[batch.size() - lead + i]))
      index = named("i64", dim(own[i]) + " == 1 ? 0 : " + index, "i");
    at.push_back(index);
  }
  if (!first.empty()) at.push_back(first);
  if (!second.empty()) at.push_back(second);
  return at;
}

/// A product element as a dot product: for types and forms that no tile takes.
std::string Printer::pullMatmul(graph::MatmulOp op, Indices indices) {
  Dims l = graph::dimsOf(op.getLhs()), r = graph::dimsOf(op.getRhs());
  std::string type = scalarType(elementType(op.getResult())), acc = fresh("s");
  bool hasRow = l.size() > 1, hasColumn = r.size() > 1;
  size_t lead = indices.size() - hasRow - hasColumn;
  Indices batch = indices.take_front(lead);
  Index row = hasRow ? indices[lead] : Index(), column = hasColumn ? indices.back() : Index();
  line(type + " " + acc + " = 0;");
  nest(l.back(), [&](Indices k) {
    std::string x = this->element(op.getLhs(), operandIndices(op, op.getLhs(), batch, row, k[0])),
                y = this->element(op.getRhs(), operandIndices(op, op.getRhs(), batch, k[0], column));
    line(acc + " = " +
         (type == "float" ? "fma32(" + x + ", " + y + ", " + acc + ")"
                          : "static_cast<" + type + ">(" + acc + " + " + x + " * " + y + ")") +
         ";");
  });
  return acc;
}

std::string Printer::pullMoving(Value tensor, Indices indices) {
  Type type = elementType(tensor);
  Dims dims = graph::dimsOf(tensor);
  auto guarded = [&](ArrayRef<Dim> sizes, llvm::function_ref<std::string()> load) {
    std::string cond;
    for (const Dim &size : sizes)
      if (!size.constant() || *size.constant() == 0) cond += (cond.empty() ? "" : " && ") + dimText(size) + " > 0";
    return cond.empty() ? load() : choose(cond, type, load, [&] {
      return isa<FloatType>(type) ? number(type.isF64() ? type : Type(Float32Type::get(tensor.getContext())), 0)
                                  : std::string("0");
    });
  };
  return TypeSwitch<Operation *, std::string>(tensor.getDefiningOp())
      .Case(
          [&](graph::ReshapeOp r) { return element(r.getX(), reshapeIndices(indices, dims, graph::dimsOf(r.getX()))); })
      .Case([&](graph::TransposeOp t) {
        SmallVector<Index> inner(indices.size());
        for (auto [i, p] : llvm::enumerate(t.getPerm()))
          inner[p] = indices[i];
        return element(t.getX(), inner);
      })
      .Case([&](graph::ExpandOp x) { return element(x.getX(), broadcast(x.getX(), indices, dims)); })
      .Case([&](graph::SliceOp s) {
        SmallVector<Index> inner;
        Dims starts = s.getStarts().dims();
        for (auto [i, index] : llvm::enumerate(indices))
          inner.push_back(add(mul(index, std::to_string(s.getSteps()[i])), dim(starts[i])));
        return element(s.getX(), inner);
      })
      .Case([&](graph::ConcatOp c) { return pullConcat(c, indices); })
      .Case([&](graph::PadOp p) { return pullPad(p, indices); })
      .Case([&](graph::TileOp t) {
        SmallVector<Index> inner;
        Dims own = graph::dimsOf(t.getX());
        for (auto [i, index] : llvm::enumerate(indices))
          inner.push_back(own[i] == dims[i] ? index : own[i].isConstant(1) ? Index("0") : rem(index, dim(own[i])));
        return element(t.getX(), inner);
      })
      .Case([&](graph::GatherOp g) {
        size_t axis = g.getAxis(), rank = graph::dimsOf(g.getIndices()).size();
        Dims own = graph::dimsOf(g.getX());
        SmallVector<Index> inner(indices.take_front(axis));
        inner.push_back(
            checkedIndex(element(g.getIndices(), indices.slice(axis, rank)), elementType(g.getIndices()), own[axis]));
        llvm::append_range(inner, indices.drop_front(axis + rank));
        return guarded(own[axis], [&] { return element(g.getX(), inner); });
      })
      .Case([&](graph::GatherElementsOp g) {
        Dims own = graph::dimsOf(g.getX());
        SmallVector<Index> inner(indices);
        inner[g.getAxis()] =
            checkedIndex(element(g.getIndices(), indices), elementType(g.getIndices()), own[g.getAxis()]);
        return guarded(own[g.getAxis()], [&] { return element(g.getX(), inner); });
      })
      .Case([&](graph::GatherNDOp g) {
        Dims own = graph::dimsOf(g.getX()), table = graph::dimsOf(g.getIndices());
        size_t batch = g.getBatchDims(), lead = table.size() - 1;
        SmallVector<Index> inner(indices.take_front(batch));
        SmallVector<Dim> sizes;
        for (int64_t l = 0; l < *table.back().constant(); ++l) { // fixed: the result's rank depends on it
          SmallVector<Index> at(indices.take_front(lead));
          at.push_back(std::to_string(l));
          inner.push_back(checkedIndex(element(g.getIndices(), at), elementType(g.getIndices()), own[batch + l]));
          sizes.push_back(own[batch + l]);
        }
        llvm::append_range(inner, indices.drop_front(lead));
        return guarded(sizes, [&] { return element(g.getX(), inner); });
      })
      .Case([&](graph::TriluOp t) {
        size_t rank = indices.size();
        Index diagonal = sub(indices[rank - 1], indices[rank - 2]);
        std::string zero =
            isa<FloatType>(type) ? number(type.isF64() ? type : Type(Float32Type::get(tensor.getContext())), 0) : "0";
        return named(scalarType(type), diagonal + (t.getUpper() ? " >= " : " <= ") + dim(t.getK().dims()[0]) + " ? " +
                                           element(t.getX(), indices) + " : " + zero);
      })
      .Case([&](graph::RangeOp r) {
        Dims startDelta = r.getStartDelta().dims();
        return cast(add(dim(startDelta[0]), mul(indices[0], dim(startDelta[1]))),
                    IntegerType::get(tensor.getContext(), 64), type);
      })
      .Case([&](graph::DimsConstantOp c) {
        Dims content = c.getContent().dims();
        Type i64 = IntegerType::get(tensor.getContext(), 64);
        if (content.empty()) return std::string("0");
        if (indices.empty() || content.size() == 1) return cast(dim(content[0]), i64, type);
        std::string value = dim(content.back());
        for (size_t i = content.size() - 1; i-- > 0;)
          value = indices[0] + " == " + std::to_string(i) + " ? " + dim(content[i]) + " : (" + value + ")";
        return cast(named("i64", value), i64, type);
      })
      .Default([](Operation *) { return std::string(); });
}

} // namespace tare::cuda
