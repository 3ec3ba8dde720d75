// From input shapes to numbers. In: the shapes that a caller gave, and linked states. Out: the value of every symbol and of every dim of the plan, or one
// error that names the tensor, the expected and the given shape. After construction nothing is allocated.
#pragma once
#include "runtime/Validate.h"
#include <vector>

namespace tare {

/// The shape of one input. Absent: the caller left it out. Linked: the context owns it; only `dims[axis]`, its present length, counts.
struct Shape {
  enum class From : int32_t { Absent, Caller, Linked } from = From::Absent;
  int32_t rank = 0;
  int64_t dims[8] = {0};
};
/// One state that is linked: index in Plan.states and its capacity.
struct LinkedCapacity { bool linked = false; int64_t capacity = 0; };

class Binding {
public:
  explicit Binding(const fb::Plan &plan);
  /// `shapes` has one entry per input, `links` one per state. `estimateOnly`: undecided symbols get a value (1; 0 along a state's axis), constraints are not checked.
  Result<void> bind(const Shape *shapes, const LinkedCapacity *links, bool estimateOnly = false);
  const int64_t *dims() const { return dimValues.data(); }
  int64_t dim(uint32_t index) const { return dimValues[index]; }

  /// Rank, dtype-independent and constant sizes of one input, without any binding: what set_input can say at once.
  static Result<void> checkAlone(const fb::Plan &plan, const fb::Tensor &tensor, const Shape &shape);

private:
  bool value(uint32_t dim, int64_t &result) const;
  Result<void> compare(const fb::Tensor &tensor, const Shape &shape) const;
  Result<void> bindGiven(const Shape *shapes, bool allNeeded);
  void bindLeftOut(const Shape *shapes, bool estimateOnly);
  Result<void> bindCapacities(const LinkedCapacity *links);
  const fb::Plan &plan;
  std::vector<int64_t> symbolValues, dimValues;
  std::vector<uint8_t> bound;
};

/// Fills `data` (elements of `tensor`'s dtype in `dims`, row-major) with the default of an input that was left out.
void fillDefault(const fb::Tensor &tensor, const int64_t *dims, void *data);

} // namespace tare
