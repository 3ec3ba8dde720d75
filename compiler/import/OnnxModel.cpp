// Loading an ONNX file: map, format detection, wire check, parse, model-level checks.
#include "compiler/import/OnnxModel.h"
#include "compiler/import/OpTable.h"
#include "compiler/import/WireCheck.h"
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/unknown_field_set.h>
#include "llvm/ADT/DenseMap.h"

using namespace llvm;

namespace tare {

static void addEntry(Metadata &into, const onnx::StringStringEntryProto &entry) { into.emplace(entry.key(), entry.value()); }

static Metadata fromUnknown(const google::protobuf::UnknownFieldSet &fields, int number) {
  Metadata result;
  for (int i = 0; i < fields.field_count(); ++i) {
    auto &field = fields.field(i);
    if (field.number() != number || field.type() != google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED) continue;
    onnx::StringStringEntryProto entry;
    if (entry.ParsePartialFromString(field.length_delimited())) addEntry(result, entry);
  }
  return result;
}

Metadata metadataOf(const onnx::NodeProto &node) { return fromUnknown(node.unknown_fields(), 9); }
Metadata metadataOf(const onnx::FunctionProto &function) { return fromUnknown(function.unknown_fields(), 14); }
Metadata metadataOf(const onnx::GraphProto &graph) { return fromUnknown(graph.unknown_fields(), 16); }
Metadata metadataOf(const onnx::ModelProto &model) {
  Metadata result;
  for (auto &entry : model.metadata_props()) addEntry(result, entry);
  return result;
}

/// A string field that the installed ONNX may not know (overload: NodeProto 8, FunctionProto 13).
static std::string unknownString(const google::protobuf::UnknownFieldSet &fields, int number) {
  for (int i = 0; i < fields.field_count(); ++i)
    if (fields.field(i).number() == number && fields.field(i).type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED)
      return fields.field(i).length_delimited();
  return "";
}

static std::string functionKey(StringRef domain, StringRef name, StringRef overload) {
  return (normalDomain(domain) + "\n" + name + "\n" + overload).str();
}

const onnx::FunctionProto *calledFunction(const OnnxModel &model, const onnx::NodeProto &node) {
  if (model.functions.empty()) return nullptr;
  return model.functions.lookup(functionKey(node.domain(), node.op_type(), unknownString(node.unknown_fields(), 8)));
}

Expected<Opsets> readOpsets(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto> &imports, StringRef owner) {
  Opsets opsets;
  for (auto &import : imports) {
    std::string domain = normalDomain(import.domain()).str();
    auto [it, added] = opsets.emplace(domain, import.version());
    if (!added && it->second != import.version())
      return refuse(owner.str() + " imports opset domain '" + domain + "' twice, with versions " + std::to_string(it->second) + " and " + std::to_string(import.version()));
    if (!added) return refuse(owner.str() + " imports opset domain '" + domain + "' twice");
    if (domain.empty() && (import.version() < kOldestOpset || import.version() > kNewestOpset))
      return refuse(owner.str() + " imports opset " + std::to_string(import.version()) + " of the default domain; supported: " + std::to_string(kOldestOpset) + " to " + std::to_string(kNewestOpset))
          .withHint("export the model again with a supported opset, or convert it with onnx.version_converter");
    if (import.version() < 1) return refuse(owner.str() + " imports opset version " + std::to_string(import.version()) + " of domain '" + domain + "'");
  }
  return opsets;
}

/// Refuses call cycles between functions (depth-first, with its own stack) and duplicate ids; fills model.functions.
static Error checkFunctions(OnnxModel &model) {
  for (auto &f : model.proto.functions()) {
    auto key = functionKey(f.domain(), f.name(), unknownString(f.unknown_fields(), 13));
    if (!model.functions.try_emplace(key, &f).second) return refuse("function '" + f.domain() + "::" + f.name() + "' is defined twice").atNode(f.name());
    if (f.opset_import_size() == 0) continue;
    auto opsets = readOpsets(f.opset_import(), "function '" + f.domain() + "::" + f.name() + "'");
    if (!opsets) return opsets.takeError();
  }
  struct Frame { const onnx::FunctionProto *function; int next; };
  DenseMap<const onnx::FunctionProto *, bool> done; // false: on the path
  for (auto &root : model.proto.functions()) {
    if (done.count(&root)) continue;
    std::vector<Frame> path{{&root, 0}};
    done[&root] = false;
    while (!path.empty()) {
      auto &[function, next] = path.back();
      if (next == function->node_size()) {
        done[function] = true;
        path.pop_back();
        continue;
      }
      auto *callee = calledFunction(model, function->node(next++));
      if (!callee) continue;
      auto [it, added] = done.try_emplace(callee, false);
      if (added) {
        path.push_back({callee, 0});
      } else if (!it->second) {
        std::string text;
        bool inside = false;
        for (auto &frame : path)
          if ((inside |= frame.function == callee)) text += frame.function->name() + " -> ";
        return refuse("functions call each other in a cycle: " + text + callee->name()).atNode(callee->name());
      }
    }
  }
  return Error::success();
}

Expected<std::shared_ptr<OnnxModel>> loadOnnx(StringRef path) {
  auto file = MappedFile::open(path);
  if (!file) return file.takeError();
  auto model = std::make_shared<OnnxModel>();
  model->file = *file;
  auto bytes = (*file)->bytes();
  auto inFile = [&](Error error) -> Error {
    return handleErrors(std::move(error), [&](Failure &f) -> Error { return make_error<Failure>(f.inFile(path.str())); });
  };
  if (auto format = foreignFormat(bytes); !format.empty())
    return refuse("this is " + format.str() + ", not an ONNX model").inFile(path.str()).withHint("export the model to ONNX, or give a Hugging Face folder");
  if (bytes.size() > uint64_t(INT32_MAX))
    return refuse("the file has " + std::to_string(bytes.size()) + " bytes, protobuf's limit is 2 GiB").inFile(path.str()).withHint("save the weights as external data");
  if (auto error = checkOnnxBytes(bytes)) return inFile(std::move(error));
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  google::protobuf::io::CodedInputStream coded(&stream);
  coded.SetRecursionLimit(kMaxNesting + 2);
  if (!model->proto.MergePartialFromCodedStream(&coded) || !coded.ConsumedEntireMessage())
    return refuse("not an ONNX protobuf: it stops making sense near byte " + std::to_string(coded.CurrentPosition())).inFile(path.str());
  if (auto error = (*file)->stillSame()) return std::move(error);
  auto &proto = model->proto;
  if (!proto.has_graph()) return refuse("no graph in the model").inFile(path.str());
  if (!proto.has_ir_version() || proto.ir_version() < kOldestIr || proto.ir_version() > kNewestIr)
    return refuse((proto.has_ir_version() ? "ir_version " + std::to_string(proto.ir_version()) : std::string("ir_version is missing;")) + " is not supported: " + std::to_string(kOldestIr) + " to " + std::to_string(kNewestIr) + " are")
        .inFile(path.str());
  if (proto.graph().node_size() == 0 && proto.graph().output_size() == 0) return refuse("nothing to compile: the graph has no nodes and no outputs").inFile(path.str());
  if (proto.graph().output_size() == 0) return refuse("nothing to compile: the graph has no outputs").inFile(path.str());
  if (proto.opset_import_size() == 0) return refuse("no opset is imported: opset_import is missing").inFile(path.str());
  auto opsets = readOpsets(proto.opset_import(), "the model");
  if (!opsets) return inFile(opsets.takeError());
  model->opsets = std::move(*opsets);
  if (auto error = checkFunctions(*model)) return inFile(std::move(error));
  return model;
}

} // namespace tare
