// ONNX's backend node tests (Debian package libonnx-testdata). In: the folder of one test. Out: its inputs and expected outputs in the graph's order; and the
// walk over all tests that the reference and the engines share.
// Tests whose data are sequences or optionals have no tensors and are left out by the caller, with that reason.
#pragma once
#include "compiler/import/Import.h"
#include "compiler/import/TensorFiles.h"
#include "test/support/TempDir.h"
#include "llvm/Support/FileSystem.h"
#include <onnx/onnx_pb.h>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <iostream>
#include <map>
#include <string>
#include <vector>

namespace tare::test {

inline const char *const kNodeTests = "/usr/share/libonnx-testdata/data/node";

struct NodeTest {
  std::vector<std::vector<std::pair<std::string, Array>>> inputs, outputs; ///< per data set
};

/// "" or why the data cannot be read.
inline std::string readNodeTest(const std::string &folder, NodeTest &test) {
  for (int set = 0; llvm::sys::fs::is_directory(folder + "/test_data_set_" + std::to_string(set)); ++set) {
    std::vector<std::pair<std::string, Array>> in, out;
    for (auto [kind, list] : {std::pair{"/input_", &in}, std::pair{"/output_", &out}})
      for (int i = 0;; ++i) {
        std::string path = folder + "/test_data_set_" + std::to_string(set) + kind + std::to_string(i) + ".pb";
        if (!llvm::sys::fs::exists(path)) break;
        auto tensor = readTensorProto(path);
        if (!tensor) return llvm::toString(tensor.takeError());
        list->push_back(std::move(*tensor));
      }
    test.inputs.push_back(std::move(in));
    test.outputs.push_back(std::move(out));
  }
  return test.outputs.empty() ? "no data sets" : "";
}

/// A copy of the model with the integer and bool inputs of rank 0 and 1 (shapes, axes, sizes, pads) turned into initializers: an engine has no shapes that
/// depend on data, while these tests feed even axes at run time. `inputs` loses what became constant. False when the file cannot be read.
inline bool bindConstants(const std::string &model, const std::string &to, std::vector<std::pair<std::string, Array>> &inputs) {
  std::ifstream in(model, std::ios::binary);
  onnx::ModelProto proto;
  if (!proto.ParseFromIstream(&in)) return false;
  auto *graph = proto.mutable_graph();
  for (size_t i = inputs.size(); i-- > 0;) {
    auto &[name, array] = inputs[i];
    bool integer = array.dtype == 6 || array.dtype == 7 || array.dtype == 9;
    // A range may count in floats; its three operands are what decides the shape.
    bool range = graph->node_size() == 1 && graph->node(0).op_type() == "Range";
    if ((!integer && !range) || array.shape.size() > 1) continue;
    int at = 0;
    while (at < graph->input_size() && graph->input(at).name() != name) ++at;
    if (at == graph->input_size()) continue;
    onnx::TensorProto *tensor = graph->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(array.dtype);
    for (int64_t d : array.shape) tensor->add_dims(d);
    tensor->set_raw_data(array.bytes);
    graph->mutable_input()->DeleteSubrange(at, 1);
    inputs.erase(inputs.begin() + i);
  }
  std::ofstream out(to, std::ios::binary);
  return proto.SerializeToOstream(&out);
}

/// All test names, sorted.
inline std::vector<std::string> nodeTestNames() {
  std::vector<std::string> names;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it(kNodeTests, error), end; !error && it != end; it.increment(error)) names.push_back(it->path().substr(std::string(kNodeTests).size() + 1));
  std::sort(names.begin(), names.end());
  return names;
}

/// `mode name: reason` lines; '#' starts a comment. `mode` is import (not supported yet), reference, engine or all.
inline std::map<std::string, std::string> readExclusions(const std::string &path, const std::string &mode) {
  std::map<std::string, std::string> out;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    size_t blank = line.find(' '), colon = line.find(": ");
    if (line.empty() || line[0] == '#' || blank == std::string::npos || colon == std::string::npos) continue;
    std::string which = line.substr(0, blank);
    if (which == mode || which == "all") out[line.substr(blank + 1, colon - blank - 1)] = line.substr(colon + 2);
  }
  return out;
}

/// Walks all node tests whose ops are in the op table, those of TARE_NODE_SHARE ("k/n": every n-th) and of TARE_NODE_TESTS (a part of the name) only.
/// `run(model, test)` returns "" or why the test fails; a test whose shapes depend on its inputs gets a second try with them as constants.
/// Every failure must be listed in node-exclusions.txt for `mode` ("reference", "engine"), and nothing that passes may be.
inline void walkNodeTests(const std::string &mode, const std::function<std::string(const std::string &model, const NodeTest &test)> &run) {
  auto excluded = readExclusions(TARE_SOURCE "/test/e2e/node-exclusions.txt", mode);
  const char *only = std::getenv("TARE_NODE_TESTS"), *share = std::getenv("TARE_NODE_SHARE");
  unsigned part = share ? unsigned(std::atoi(share)) : 0, parts = share && std::strchr(share, '/') ? unsigned(std::atoi(std::strchr(share, '/') + 1)) : 1;
  TempDir dir;
  unsigned number = 0, passed = 0, unsupported = 0;
  std::vector<std::string> names = nodeTestNames();
  ASSERT_GT(names.size(), 900u) << "package libonnx-testdata is not installed";
  for (const std::string &name : names) {
    if (number++ % std::max(parts, 1u) != part) continue;
    if (only && name.find(only) == std::string::npos) continue;
    std::string folder = std::string(kNodeTests) + "/" + name, model = folder + "/model.onnx";
    auto coverage = importCoverage(model);
    std::string why;
    if (!coverage) why = llvm::toString(coverage.takeError());
    else if (llvm::any_of(*coverage, [](const OpCoverage &c) { return !c.supported; })) {
      ++unsupported;
      continue;
    }
    NodeTest test;
    if (why.empty()) why = readNodeTest(folder, test);
    if (why.empty()) {
      why = run(model, test);
      if (why.find("depends on data") != std::string::npos && test.inputs.size() == 1 && bindConstants(model, dir.path("model.onnx"), test.inputs[0])) why = run(dir.path("model.onnx"), test);
    }
    bool listed = excluded.count(name);
    if (why.empty() && !listed) ++passed;
    if (!why.empty() && !listed) ADD_FAILURE() << name << ": " << why;
    if (why.empty() && listed) ADD_FAILURE() << name << " passes, but node-exclusions.txt lists it: " << excluded[name];
  }
  std::cout << passed << " pass, " << excluded.size() << " are listed with a reason, " << unsupported << " use ops that are not in the table\n";
}

/// Elements as double; exact for everything but 64-bit integers beyond 2^53.
inline std::vector<double> doublesOf(const Array &a) {
  std::vector<double> out;
  unsigned size = dtypeSize(a.dtype);
  for (size_t at = 0; at + size <= a.bytes.size(); at += size) {
    const char *p = a.bytes.data() + at;
    auto as = [&](auto zero) { std::memcpy(&zero, p, sizeof zero); return double(zero); };
    switch (a.dtype) {
    case 1: out.push_back(as(float{})); break;
    case 2: case 9: out.push_back(as(uint8_t{})); break;
    case 3: out.push_back(as(int8_t{})); break;
    case 4: out.push_back(as(uint16_t{})); break;
    case 5: out.push_back(as(int16_t{})); break;
    case 6: out.push_back(as(int32_t{})); break;
    case 7: out.push_back(as(int64_t{})); break;
    case 11: out.push_back(as(double{})); break;
    case 12: out.push_back(as(uint32_t{})); break;
    case 13: out.push_back(as(uint64_t{})); break;
    case 16: { uint16_t h; std::memcpy(&h, p, 2); uint32_t w = uint32_t(h) << 16; float f; std::memcpy(&f, &w, 4); out.push_back(f); break; }
    case 10: {
      uint16_t h;
      std::memcpy(&h, p, 2);
      int e = (h >> 10) & 31, m = h & 1023;
      double v = e == 31 ? (m ? NAN : INFINITY) : e ? std::ldexp(1024.0 + m, e - 25) : std::ldexp(double(m), -24);
      out.push_back(h & 0x8000 ? -v : v);
      break;
    }
    default: return {};
    }
  }
  return out;
}

/// ONNX's own tolerance (backend/test/runner): relative 1e-3, absolute 1e-7; NaN equals NaN. "" when equal.
inline std::string compareArrays(const std::vector<double> &got, const std::vector<double> &want) {
  if (got.size() != want.size()) return std::to_string(got.size()) + " elements, expected " + std::to_string(want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(got[i]) && std::isnan(want[i])) continue;
    if (got[i] == want[i] || std::fabs(got[i] - want[i]) <= 1e-7 + 1e-3 * std::fabs(want[i])) continue;
    return "element " + std::to_string(i) + " is " + std::to_string(got[i]) + ", expected " + std::to_string(want[i]);
  }
  return "";
}
} // namespace tare::test
