// Rounding with feedback, scale search, coordinate descent (CheckQuantizer.h). Matrices are held transposed, [width, rows]: a row of W is then a column,
// every inner loop runs over independent rows, and chunks of rows go to threads without any change of a sum.
#include "compiler/checks/CheckQuantizer.h"
#include "compiler/reference/Gemm.h"
#include <algorithm>
#include <cmath>
#include <thread>

namespace tare::checks {
namespace {

using Matrix = std::vector<double>;
constexpr int64_t kGroup = 32;
constexpr int kSweeps = 4;
constexpr double kDamping = 0.01;

/// H = U diag(d) U^T with U unit upper triangular; `h` becomes U (the lower part is left as it was). Panels of columns from the last to the first,
/// the rest updated by one product per panel.
std::vector<double> factorize(Matrix &h, int64_t n) {
  constexpr int64_t kPanel = 64;
  std::vector<double> d(n);
  for (int64_t end = n; end > 0;) {
    int64_t begin = std::max<int64_t>(0, end - kPanel), panel = end - begin;
    for (int64_t j = end - 1; j >= begin; --j) {
      d[j] = h[j * n + j];
      for (int64_t i = 0; i < j; ++i) h[i * n + j] /= d[j];
      for (int64_t i = 0; i < j; ++i) {
        double factor = h[i * n + j] * d[j];
        for (int64_t k = std::max(begin, i); k < j; ++k) h[i * n + k] -= factor * h[k * n + j];
      }
    }
    // h[0:begin, 0:begin] -= U D U^T of this panel.
    Matrix negated(begin * panel), turned(panel * begin);
    for (int64_t i = 0; i < begin; ++i)
      for (int64_t k = 0; k < panel; ++k) {
        double u = h[i * n + begin + k];
        negated[i * panel + k] = -u * d[begin + k], turned[k * begin + i] = u;
      }
    reference::gemmAccumulate(begin, begin, panel, negated.data(), panel, 1, turned.data(), begin, h.data(), n);
    end = begin;
  }
  return d;
}

/// The columns [first, first + count) of W^T that one thread works on; all matrices are [width, count].
struct Chunk {
  const CheckWeights &weights;
  const Matrix &moment, &upper;
  const std::vector<double> &diagonal;
  int64_t bits, first, count, width = weights.width;
  int64_t lowest = bits == 4 ? -8 : -127, highest = bits == 4 ? 7 : 127;
  int64_t groups = (width + kGroup - 1) / kGroup;
  Matrix error = Matrix(width * count), gradient = {}, codes = Matrix(width * count);
  std::vector<float> scales = std::vector<float>(groups * count);

  double original(int64_t column, int64_t row) const { return weights.w[(first + row) * width + column]; }
  double code(double value, double scale) const { return std::clamp(std::nearbyint(value / scale), double(lowest), double(highest)); }

  /// The scale with the smallest weighted error for one row of a group; both signs of the largest element are tried for the lowest code.
  float searchScale(const double *values, int64_t stride, const double *importance, int64_t columns) const {
    double largest = 0;
    for (int64_t j = 0; j < columns; ++j)
      if (std::abs(values[j * stride]) > std::abs(largest)) largest = values[j * stride];
    constexpr float kSmallest = 1e-30f; // a group of zeros: any scale gives zeros
    float best = kSmallest;
    double bestError = INFINITY;
    for (int step = 0; step <= 24; ++step)
      for (int64_t end : {lowest, highest}) {
        float scale = static_cast<float>(largest * (0.5 + 0.025 * step) / static_cast<double>(end));
        if (!(std::abs(scale) >= kSmallest)) continue;
        double sum = 0;
        for (int64_t j = 0; j < columns; ++j) {
          double value = values[j * stride], difference = value - code(value, scale) * scale;
          sum += importance[j] * difference * difference;
        }
        if (sum < bestError) bestError = sum, best = scale;
      }
    return best;
  }

  /// Rounds one group after the other; a column's target holds the errors of all columns before it.
  void roundWithFeedback() {
    Matrix target(kGroup * count);
    for (int64_t begin = 0; begin < width; begin += kGroup) {
      int64_t columns = std::min(kGroup, width - begin);
      for (int64_t j = 0; j < columns; ++j)
        for (int64_t r = 0; r < count; ++r) target[j * count + r] = original(begin + j, r);
      reference::gemmAccumulate(columns, count, begin, upper.data() + begin, 1, width, error.data(), count, target.data(), count);
      float *scale = &scales[begin / kGroup * count];
      for (int64_t r = 0; r < count; ++r) scale[r] = searchScale(&target[r], count, &diagonal[begin], columns);
      for (int64_t j = 0; j < columns; ++j) {
        double *e = &error[(begin + j) * count];
        for (int64_t r = 0; r < count; ++r) {
          double &c = codes[(begin + j) * count + r];
          c = code(target[j * count + r], scale[r]);
          e[r] = original(begin + j, r) - c * scale[r];
        }
        for (int64_t k = j + 1; k < columns; ++k)
          for (int64_t r = 0; r < count; ++r) target[k * count + r] += e[r] * upper[(begin + j) * width + begin + k];
      }
    }
  }

  /// Adds `change` to the error of `column`, and what follows from it to the gradient inside of the group [begin, begin + columns).
  void change(int64_t column, int64_t row, double change, int64_t begin, int64_t columns) {
    error[column * count + row] += change;
    for (int64_t k = 0; k < columns; ++k) gradient[(begin + k) * count + row] += change * moment[column * width + begin + k];
  }

  /// The best scale for the codes as they are (least squares), when it lowers the error.
  void refitScale(int64_t begin, int64_t columns, int64_t row) {
    double slope = 0, curvature = 0;
    for (int64_t j = 0; j < columns; ++j) {
      double c = codes[(begin + j) * count + row], inner = 0;
      slope += c * gradient[(begin + j) * count + row];
      for (int64_t k = 0; k < columns; ++k) inner += moment[(begin + j) * width + begin + k] * codes[(begin + k) * count + row];
      curvature += c * inner;
    }
    float &scale = scales[begin / kGroup * count + row];
    if (!(curvature > 0)) return;
    float better = static_cast<float>(scale + slope / curvature);
    double step = double(better) - scale;
    if (!(std::abs(better) >= 1e-30f) || !(step * step * curvature - 2 * step * slope < 0)) return;
    scale = better;
    for (int64_t j = 0; j < columns; ++j)
      if (double c = codes[(begin + j) * count + row]) change(begin + j, row, -step * c, begin, columns);
  }

  /// One pass over all codes: each takes the value that is best while all others stay. The gradient of other groups follows by one product per group.
  void sweep() {
    Matrix before(kGroup * count), difference(kGroup * count);
    for (int64_t begin = 0; begin < width; begin += kGroup) {
      int64_t columns = std::min(kGroup, width - begin);
      std::copy_n(&error[begin * count], columns * count, before.begin());
      for (int64_t r = 0; r < count; ++r) {
        refitScale(begin, columns, r);
        double scale = scales[begin / kGroup * count + r];
        for (int64_t j = begin; j < begin + columns; ++j) {
          double &c = codes[j * count + r], best = code(c * scale + gradient[j * count + r] / moment[j * width + j], scale);
          if (best == c) continue;
          change(j, r, (c - best) * scale, begin, columns);
          c = best;
        }
      }
      for (int64_t i = 0; i < columns * count; ++i) difference[i] = error[begin * count + i] - before[i];
      auto propagate = [&](int64_t from, int64_t to) {
        reference::gemmAccumulate(to - from, count, columns, &moment[from * width + begin], width, 1, difference.data(), count, &gradient[from * count], count);
      };
      propagate(0, begin);
      if (begin + columns < width) propagate(begin + columns, width);
    }
  }

  void run(QuantizedCheck &out) {
    roundWithFeedback();
    gradient.assign(width * count, 0);
    reference::gemmAccumulate(width, count, width, moment.data(), width, 1, error.data(), count, gradient.data(), count);
    for (int i = 0; i < kSweeps; ++i) sweep();
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t j = 0; j < width; ++j) out.q[(first + r) * width + j] = static_cast<int8_t>(codes[j * count + r]);
      for (int64_t g = 0; g < groups; ++g) out.scale[(first + r) * groups + g] = scales[g * count + r];
    }
  }
};

} // namespace

std::vector<double> dequantized(const QuantizedCheck &check, int64_t width) {
  std::vector<double> values(check.q.size());
  int64_t groups = (width + check.group - 1) / check.group;
  for (int64_t i = 0; i < static_cast<int64_t>(values.size()); ++i)
    values[i] = double(check.q[i]) * double(check.scale[i / width * groups + i % width / check.group]);
  return values;
}

StateMoments::StateMoments(int64_t width) : width(width), products(width * width) {}

void StateMoments::add(const double *states, int64_t tokens) {
  Matrix rows;
  for (int64_t t = 0; t < tokens; ++t) {
    const double *h = states + t * width;
    if (!std::all_of(h, h + width, [](double v) { return std::isfinite(v); })) continue;
    rows.insert(rows.end(), h, h + width);
    ++count;
  }
  int64_t kept = width ? static_cast<int64_t>(rows.size()) / width : 0;
  reference::gemmAccumulate(width, width, kept, rows.data(), 1, width, rows.data(), width, products.data(), width);
}

std::vector<double> StateMoments::second() const {
  Matrix result = products;
  for (double &v : result) v /= static_cast<double>(std::max<int64_t>(count, 1));
  return result;
}

QuantizedCheck quantizeCheck(const CheckWeights &weights, const StateMoments &moments, int64_t bits, unsigned threads) {
  int64_t width = weights.width, rows = weights.heads * weights.rank, groups = (width + kGroup - 1) / kGroup;
  QuantizedCheck out{bits, kGroup, std::vector<int8_t>(rows * width), std::vector<float>(rows * groups)};
  Matrix moment = moments.second();
  double trace = 0;
  for (int64_t j = 0; j < width; ++j) trace += moment[j * width + j];
  // Without states every column counts the same.
  double added = trace > 0 ? kDamping * trace / static_cast<double>(width) : 1;
  for (int64_t j = 0; j < width; ++j) moment[j * width + j] += added;
  Matrix upper = moment;
  std::vector<double> diagonal = factorize(upper, width);

  constexpr int64_t kRowsPerChunk = 64;
  std::vector<std::thread> workers;
  int64_t chunks = (rows + kRowsPerChunk - 1) / kRowsPerChunk, step = std::max(1u, threads);
  for (int64_t worker = 0; worker < std::min(step, chunks); ++worker)
    workers.emplace_back([&, worker] {
      for (int64_t c = worker; c < chunks; c += step) {
        int64_t first = c * kRowsPerChunk;
        Chunk{weights, moment, upper, diagonal, bits, first, std::min(kRowsPerChunk, rows - first)}.run(out);
      }
    });
  for (auto &worker : workers) worker.join();
  return out;
}

} // namespace tare::checks
