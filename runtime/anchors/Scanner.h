// The scanner. In: UTF-8 in pieces. Out: anchors in text order through a callback, then a summary. Holds: text is read in windows of kWindow matched
// characters whose borders depend on the text alone, so neither memory nor the result depends on the pieces.
#pragma once
#include "runtime/anchors/Anchor.h"
#include "runtime/anchors/Grammar.h"
#include "runtime/anchors/Markup.h"
#include <functional>

namespace tare::anchors {

struct Options {
  bool outline = false; ///< also bare outline labels
  bool network = true;  ///< false: every trigger goes to the grammar
};

struct Counts {
  uint64_t anchors = 0, triggers = 0, asked = 0, proposed = 0, steps = 0;
};

class Scanner {
public:
  using Sink = std::function<void(const Anchor &)>;
  Scanner(const Options &options, Sink sink) : options(options), sink(std::move(sink)), preparer(text) {}
  void feed(const char *data, size_t size);
  void finish();

  const Preparer &prepared() const { return preparer; }
  const Counts &count() const { return counts; }

private:
  void window(size_t commit, size_t end);
  size_t attempt(const View &view, size_t i);
  size_t blockAt(const View &view, const Block &block);
  size_t report(const View &view, Type type, std::string value, size_t begin, size_t end);
  bool proposes(const View &view, size_t i, const Designator &found, bool certain);

  const Options options;
  Sink sink;
  Text text;
  Preparer preparer;
  MarkupState markup;
  std::vector<Block> blocks;
  Counts counts;
  size_t from = 0;    ///< index where the next window begins
  size_t resume = 0;  ///< the grammar goes on here: an anchor may reach over the window's border
  size_t carry = 0;   ///< the only place where the cue of the last cross reference still holds, or 0
};

/// Outline.cpp: a bare label at `i`: `4.2 Payment`, `（一）`, `(a)`, `一、`, or a cue and a bare number. Its value and end.
struct Outline { std::string value; size_t begin, end; };
std::optional<Outline> outlineLabel(const View &view, size_t i);

} // namespace tare::anchors
