// Softmax, LayerNorm, RMSNorm and the fused attention. A softmax row of -inf gives NaN (0 under attention's nan_guard), as the written-out
// ONNX graph does. Means and variances are plain sums in row-major order; the variance is the mean of squared deviations.
#include "compiler/reference/Math.h"
#include "compiler/reference/Walk.h"

namespace tare::reference {

/// In place over `count` elements `stride` apart.
static void softmaxRow(double *row, int64_t count, int64_t stride, bool log) {
  double largest = -math::kInfinity, sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    double v = row[i * stride];
    largest = largest != largest || v != v ? largest + v : std::max(largest, v);
  }
  for (int64_t i = 0; i < count; ++i) {
    double shifted = row[i * stride] - largest, e = math::exp(shifted);
    sum += e;
    row[i * stride] = log ? shifted : e;
  }
  double logSum = log ? math::log(sum) : 0;
  for (int64_t i = 0; i < count; ++i) row[i * stride] = log ? row[i * stride] - logSum : row[i * stride] / sum;
}

/// fn(offset of the row's first element, its length, its stride).
template <typename Fn> static void eachRow(const Shape &shape, int64_t axis, Fn fn) {
  if (axis < 0) axis += shape.size();
  int64_t outer = 1, inner = 1, size = shape[axis];
  for (int64_t d = 0; d < axis; ++d) outer *= shape[d];
  for (size_t d = axis + 1; d < shape.size(); ++d) inner *= shape[d];
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i) fn(o * size * inner + i, size, inner);
}

llvm::Expected<Tensor> softmax(const Call &call) {
  auto op = llvm::cast<graph::SoftmaxOp>(call.op);
  Tensor y = call.operand(0);
  eachRow(y.shape, op.getAxis(), [&](int64_t at, int64_t count, int64_t stride) { softmaxRow(y.floats.data() + at, count, stride, op.getLog()); });
  return y;
}

Cotangents softmaxVjp(const VjpCall &call) {
  auto op = llvm::cast<graph::SoftmaxOp>(call.op);
  Cotangents result(1);
  result[0] = call.cotangent;
  double *d = result[0].floats.data();
  const double *y = call.value.floats.data(), *g = call.cotangent.floats.data();
  eachRow(call.value.shape, op.getAxis(), [&](int64_t at, int64_t count, int64_t stride) {
    double sum = 0;
    for (int64_t i = at, n = 0; n < count; ++n, i += stride) sum += op.getLog() ? g[i] : g[i] * y[i];
    for (int64_t i = at, n = 0; n < count; ++n, i += stride) d[i] = op.getLog() ? g[i] - math::exp(y[i]) * sum : y[i] * (g[i] - sum);
  });
  return result;
}

/// LayerNorm (centred, with bias) and RMSNorm (neither) share everything else.
struct Norm {
  int64_t rows = 1, width = 1;
  double epsilon;
  bool centred;
  Shape inner; ///< dims [axis, rank)
  Norm(const Tensor &x, int64_t axis, double epsilon, bool centred) : epsilon(epsilon), centred(centred) {
    if (axis < 0) axis += x.shape.size();
    for (size_t d = 0; d < x.shape.size(); ++d) (static_cast<int64_t>(d) < axis ? rows : width) *= x.shape[d];
    inner.assign(x.shape.begin() + axis, x.shape.end());
  }
  /// The row's mean (0 for RMSNorm) and 1 / sqrt(variance + epsilon).
  std::pair<double, double> statistics(const double *x) const {
    double mean = 0, square = 0;
    if (centred) {
      for (int64_t i = 0; i < width; ++i) mean += x[i];
      mean /= static_cast<double>(width);
    }
    for (int64_t i = 0; i < width; ++i) square += (x[i] - mean) * (x[i] - mean);
    return {mean, 1 / std::sqrt(square / static_cast<double>(width) + epsilon)};
  }
  /// A parameter spread over the normalised dims.
  std::vector<double> spread(const Tensor &t) const {
    std::vector<double> values;
    walk<1>(inner, {broadcastStrides(t.shape, inner)}, [&](auto &at) { values.push_back(t.floats[at[0]]); });
    return values;
  }

  Tensor forward(const Tensor &x, const Tensor &scale, const Tensor *bias) const {
    Tensor y = x;
    std::vector<double> s = spread(scale), b = bias ? spread(*bias) : std::vector<double>(width, 0);
    for (int64_t r = 0; r < rows; ++r) {
      double *row = y.floats.data() + r * width;
      auto [mean, inverse] = statistics(row);
      for (int64_t i = 0; i < width; ++i) row[i] = bias ? (row[i] - mean) * inverse * s[i] + b[i] : (row[i] - mean) * inverse * s[i];
    }
    return y;
  }

  Cotangents backward(const VjpCall &call) const {
    Cotangents result(call.operands.size());
    const Tensor &x = call.operand(0), &scale = call.operand(1);
    std::vector<double> s = spread(scale), scaleSum(width, 0), biasSum(width, 0);
    result[0] = Tensor::zeros(x.element, x.shape);
    for (int64_t r = 0; r < rows; ++r) {
      const double *row = x.floats.data() + r * width, *g = call.cotangent.floats.data() + r * width;
      double *d = result[0].floats.data() + r * width, sum = 0, projected = 0;
      auto [mean, inverse] = statistics(row);
      for (int64_t i = 0; i < width; ++i) {
        double normal = (row[i] - mean) * inverse, u = g[i] * s[i];
        sum += u, projected += u * normal;
        scaleSum[i] += g[i] * normal, biasSum[i] += g[i];
      }
      double n = static_cast<double>(width);
      for (int64_t i = 0; i < width; ++i) {
        double normal = (row[i] - mean) * inverse;
        d[i] = inverse * (g[i] * s[i] - (centred ? sum / n : 0) - normal * (projected / n));
      }
    }
    auto gather = [&](unsigned operand, const std::vector<double> &values) {
      if (operand >= call.operands.size() || !call.wanted[operand]) return;
      const Tensor &t = call.operand(operand);
      result[operand] = Tensor::zeros(t.element, t.shape);
      int64_t i = 0;
      walk<1>(inner, {broadcastStrides(t.shape, inner)}, [&](auto &at) { result[operand].floats[at[0]] += values[i++]; });
    };
    gather(1, scaleSum);
    gather(2, biasSum);
    return result;
  }
};

llvm::Expected<Tensor> layerNorm(const Call &call) {
  auto op = llvm::cast<graph::LayerNormOp>(call.op);
  return Norm(call.operand(0), op.getAxis(), op.getEpsilon().convertToDouble(), true)
      .forward(call.operand(0), call.operand(1), op.getBias() ? call.operands[2] : nullptr);
}
Cotangents layerNormVjp(const VjpCall &call) {
  auto op = llvm::cast<graph::LayerNormOp>(call.op);
  return Norm(call.operand(0), op.getAxis(), op.getEpsilon().convertToDouble(), true).backward(call);
}
llvm::Expected<Tensor> rmsNorm(const Call &call) {
  auto op = llvm::cast<graph::RmsNormOp>(call.op);
  return Norm(call.operand(0), op.getAxis(), op.getEpsilon().convertToDouble(), false).forward(call.operand(0), call.operand(1), nullptr);
}
Cotangents rmsNormVjp(const VjpCall &call) {
  auto op = llvm::cast<graph::RmsNormOp>(call.op);
  return Norm(call.operand(0), op.getAxis(), op.getEpsilon().convertToDouble(), false).backward(call);
}

llvm::Expected<Tensor> attention(const Call &call) {
  auto op = llvm::cast<graph::AttentionOp>(call.op);
  const Tensor &q = call.operand(0), &k = call.operand(1), &v = call.operand(2);
  llvm::StringRef layout = op.getLayout();
  // Dims and strides as [batch, heads, positions, width], whatever the layout.
  auto order = [&](const Shape &shape, char letter) { return letter == 's' ? Shape{shape[0], shape[2], shape[1], shape[3]} : shape; };
  auto strides = [&](const Shape &shape, char letter) { return order(rowMajorStrides(shape), letter); };
  Tensor y = call.result();
  Shape qd = order(q.shape, layout[0]), kd = order(k.shape, layout[1]), vd = order(v.shape, layout[2]);
  Shape qs = strides(q.shape, layout[0]), ks = strides(k.shape, layout[1]), vs = strides(v.shape, layout[2]), ys = strides(y.shape, layout[3]);
  int64_t batch = qd[0], heads = qd[1], rows = qd[2], width = qd[3], groups = kd[1], columns = kd[2], valueWidth = vd[3];
  Shape scoreShape = {batch, heads, rows, columns};
  Shape bs = op.getBias() ? broadcastStrides(call.operand(3).shape, scoreShape) : Shape(4, 0);
  double scale = op.getScale().convertToDouble();
  std::vector<double> p(columns);
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t s = 0; s < rows; ++s) {
        int64_t g = h / (heads / groups);
        for (int64_t t = 0; t < columns; ++t) {
          double dot = 0;
          for (int64_t d = 0; d < width; ++d)
            dot += q.floats[b * qs[0] + h * qs[1] + s * qs[2] + d * qs[3]] * k.floats[b * ks[0] + g * ks[1] + t * ks[2] + d * ks[3]];
          p[t] = scale * dot + (op.getBias() ? call.operand(3).floats[b * bs[0] + h * bs[1] + s * bs[2] + t * bs[3]] : 0);
        }
        softmaxRow(p.data(), columns, 1, false);
        for (double &weight : p)
          if (op.getNanGuard() && weight != weight) weight = 0;
        for (int64_t d = 0; d < valueWidth; ++d) {
          double sum = 0;
          for (int64_t t = 0; t < columns; ++t) sum += p[t] * v.floats[b * vs[0] + g * vs[1] + t * vs[2] + d * vs[3]];
          y.floats[b * ys[0] + h * ys[1] + s * ys[2] + d * ys[3]] = sum;
        }
      }
  return y;
}

} // namespace tare::reference
