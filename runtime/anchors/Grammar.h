// The grammar of designators (docs/anchors.md, sections "Designators", "Types", "Values"). In: a View, a position, the context before it. Out: a designator
// with kind, value and end, or nothing. Holds: decides on the matching form alone; every match is bounded, so time is linear in the text.
#pragma once
#include "runtime/anchors/Numbers.h"

namespace tare::anchors {

enum class Kind : uint8_t { Clause, Division /* 编 部分 章 节, Chapter, Part */, Annex, Table };

struct Designator {
  Kind kind;
  std::string value; ///< without "annex " and "table "
  size_t end;
};

struct Context {
  bool cue = false;       ///< a cue stands before, or carries over
  bool lineStart = false; ///< View::lineStart(i)
  bool afterUnit = false; ///< 本条, 该条, 前条, 同条, 前款, 本款 or 该款 stands directly before
};

/// A designator that begins at `i` in Chinese (第, 附件, 附录, 附表, 表) or English.
std::optional<Designator> designator(const View &view, size_t i, Context context);
std::optional<Designator> chineseDesignator(const View &view, size_t i, Context context);
std::optional<Designator> englishDesignator(const View &view, size_t i, Context context);
/// 第N条 and its like from the 第 on.
std::optional<Designator> chain(const View &view, size_t i, Context context);
/// 本条 and its like end directly before `i` (a gap may stand between).
bool unitBefore(const View &view, size_t i);

/// Behind a cue that begins at `i`, or 0.
size_t cueEnd(const View &view, size_t i);
/// Cue, what may stand after it, and a designator: where the designator begins, and itself.
struct Reference { size_t begin; Designator target; };
std::optional<Reference> crossReference(const View &view, size_t i);
/// The first position of a designator to which a cue carries over when the last reference ended at `i`, or 0.
size_t carriedTo(const View &view, size_t i);

/// What joins two members of a list at `i`: its end (0 when nothing does), whether it was a bare comma, whether it was and, or, 和...
struct Joiner { size_t end = 0; bool comma = false, word = false; };
Joiner joiner(const View &view, size_t i);
/// Behind 至, 到, ~, -, to or through with gaps around it, or 0. `dash` says that it was a dash.
size_t rangeMark(const View &view, size_t i, bool &dash);

/// Values of several members: "3,4,5", "3..5"; text that all share is repeated by the caller.
std::string listed(const std::vector<std::string> &members, bool range);

} // namespace tare::anchors
