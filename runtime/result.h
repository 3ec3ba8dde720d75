// Errors inside the runtime. In: nothing. Out: Result<T>, which holds a value or an Error; both are [[nodiscard]]. An Error owns no memory (fixed
// buffers), so it can be made when memory has run out; it never crosses the C API as an exception (runtime/Api.cpp copies it into tare_error).
#pragma once
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <utility>
#include <variant>

namespace tare {

/// Numbers equal tare_status in tare.h and, up to 7, the exit codes of the tools.
enum class Status : int { Ok = 0, Internal = 1, Usage = 2, Refused = 3, Verification = 4, Environment = 5, Io = 6, Limit = 7, Cancelled = 8 };

struct [[nodiscard]] Error {
  Status code = Status::Internal;
  const char *text = "";  ///< what, a static string
  char detail[400] = {0}; ///< which values, formatted; may be empty
  char step[128] = {0};   ///< source node name, when a step of the plan is to blame
  char tensor[128] = {0}; ///< input or output name, when a tensor is to blame
  int64_t offset = -1;    ///< byte offset in the engine file, when a byte is to blame
  int driverCode = 0;     ///< CUresult, when a call of the CUDA driver is to blame

  Error(Status code, const char *text) : code(code), text(text) {}

  /// `Error::format(Status::Refused, "section is cut", "%s ends at %llu", name, end)`. Text that does not fit is cut.
  [[gnu::format(printf, 3, 4)]] static Error format(Status code, const char *text, const char *pattern, ...) {
    Error error(code, text);
    va_list args;
    va_start(args, pattern);
    vsnprintf(error.detail, sizeof error.detail, pattern, args);
    va_end(args);
    return error;
  }
  Error &&inStep(const char *name) && { return snprintf(step, sizeof step, "%s", name), std::move(*this); }
  Error &&ofTensor(const char *name) && { return snprintf(tensor, sizeof tensor, "%s", name), std::move(*this); }
  Error &&atOffset(uint64_t value) && { return offset = static_cast<int64_t>(value), std::move(*this); }
};

template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : state(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state(std::in_place_index<1>, std::move(error)) {}
  explicit operator bool() const { return state.index() == 0; }
  /// Only after the test said true.
  T &operator*() { return *std::get_if<0>(&state); }
  T *operator->() { return std::get_if<0>(&state); }
  /// Only after the test said false.
  Error &error() { return *std::get_if<1>(&state); }

private:
  std::variant<T, Error> state;
};

template <> class [[nodiscard]] Result<void> {
public:
  Result() = default;
  Result(Error error) : failed(true), value(std::move(error)) {}
  explicit operator bool() const { return !failed; }
  Error &error() { return value; }

private:
  bool failed = false;
  Error value{Status::Ok, ""};
};

/// `TARE_TRY(expression)`: returns its error from the enclosing function.
#define TARE_TRY(expression)                                                                                           \
  do {                                                                                                                 \
    if (auto tried = (expression); !tried) return std::move(tried.error());                                            \
  } while (false)

} // namespace tare
