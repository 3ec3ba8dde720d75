// The weights of a Hugging Face folder. In: a folder. Out: the tensors of its safetensors files, by name. Follows the index and checks it both ways
// (bugs B44, bad-inputs B44, B45): a tensor that is missing is an error here or where it is needed, never zeros.
#include "compiler/graph/Failure.h"
#include "compiler/import/Safetensors.h"
#include "compiler/import/StrictJson.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <set>

using namespace llvm;
using Json = nlohmann::json;

namespace tare {
namespace {
const char *const kIndex = "model.safetensors.index.json";

std::string resolved(StringRef path) {
  SmallString<256> real;
  return sys::fs::real_path(path, real) ? std::string() : std::string(real.str());
}

/// A shard may be a link (the Hugging Face cache keeps all files of a snapshot as links into one `blobs` folder), but only to the folder itself or to
/// the folder that config.json resolves to.
Error stayInside(StringRef folder, StringRef file) {
  std::string real = resolved(file), home = resolved(folder), blobs = sys::path::parent_path(resolved((folder + "/config.json").str())).str();
  if (real.empty()) return fail(ExitCode::Io, "cannot resolve: no such file, or a loop of links").inFile(file.str());
  StringRef parent = sys::path::parent_path(real);
  if (parent == home || (!blobs.empty() && parent == blobs)) return Error::success();
  return refuse("is a link to " + real + ", which leaves the model's folder").inFile(file.str()).withHint("copy the file into the folder");
}

Error add(Checkpoint &into, Checkpoint from) {
  for (auto &[name, view] : from.tensors) {
    auto [it, added] = into.tensors.emplace(name, view);
    if (!added) return refuse("tensor '" + name + "' is also in " + it->second.file).inFile(view.file).ofTensor(name).withHint("an index file (" + std::string(kIndex) + ") says which one counts");
  }
  into.files.insert(into.files.end(), from.files.begin(), from.files.end());
  into.mappings.insert(into.mappings.end(), from.mappings.begin(), from.mappings.end());
  return Error::success();
}

Expected<Checkpoint> readSharded(StringRef folder, StringRef index, const std::set<std::string> &present) {
  auto buffer = MemoryBuffer::getFile(index, false, false);
  if (!buffer) return fail(ExitCode::Io, "cannot read: " + buffer.getError().message()).inFile(index.str());
  if ((*buffer)->getBufferSize() > kMaxHeader) return refuse("index is larger than 100 MB").inFile(index.str());
  auto json = parseStrictJson((*buffer)->getBuffer(), index, kIndex);
  if (!json) return json.takeError();
  auto bad = [&](const Twine &why) { return refuse(why.str()).inFile(index.str()); };
  if (!json->is_object() || !json->contains("weight_map") || !(*json)["weight_map"].is_object()) return bad("no object \"weight_map\" in the index");
  Checkpoint out;
  out.files.push_back(index.str());
  std::map<std::string, std::set<std::string>> shards; // shard -> tensors that the index expects in it
  for (auto &[tensor, shard] : (*json)["weight_map"].items()) {
    if (!shard.is_string()) return bad("weight_map entry '" + tensor + "' is not a file name").ofTensor(tensor);
    StringRef name = shard.get_ref<const std::string &>();
    if (name.empty() || name.contains('/') || name.contains('\\') || name.contains('\0') || name == "." || name == ".." || name.contains(':'))
      return bad("tensor '" + tensor + "': the shard name '" + name + "' is not a plain file name in this folder").ofTensor(tensor);
    if (!name.ends_with(".safetensors")) return bad("tensor '" + tensor + "': shard '" + name + "' is not a .safetensors file").ofTensor(tensor).withHint("pickle is never loaded; convert the checkpoint to safetensors");
    shards[name.str()].insert(tensor);
  }
  if (shards.empty()) return bad("weight_map is empty");
  for (const auto &[shard, wanted] : shards) {
    std::string path = (folder + "/" + shard).str();
    if (!sys::fs::exists(path)) return bad("shard '" + shard + "' is missing; tensor '" + *wanted.begin() + "' should be in it").ofTensor(*wanted.begin());
    if (Error error = stayInside(folder, path)) return error;
    auto part = readSafetensors(path);
    if (!part) return part.takeError();
    for (const std::string &tensor : wanted)
      if (!part->tensors.count(tensor)) return bad("tensor '" + tensor + "' is not in shard '" + shard + "', which the index names for it").ofTensor(tensor);
    // A tensor that the index places elsewhere, or does not list, does not count.
    for (auto it = part->tensors.begin(); it != part->tensors.end();) {
      if (wanted.count(it->first)) { ++it; continue; }
      if (!(*json)["weight_map"].contains(it->first)) out.warnings.push_back("tensor '" + it->first + "' of " + shard + " is not in the index and is ignored");
      it = part->tensors.erase(it);
    }
    if (Error error = add(out, std::move(*part))) return error;
  }
  for (const std::string &name : present)
    if (!shards.count(name)) out.warnings.push_back("file " + name + " is not in the index and is ignored");
  return out;
}
} // namespace

Expected<Checkpoint> readCheckpoint(StringRef folder) {
  std::set<std::string> safetensors, pickles;
  std::error_code error;
  for (sys::fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    StringRef name = sys::path::filename(it->path());
    if (name.ends_with(".safetensors")) safetensors.insert(name.str());
    if (name.ends_with(".bin") || name.ends_with(".pt") || name.ends_with(".pth") || name.ends_with(".ckpt")) pickles.insert(name.str());
  }
  if (error) return fail(ExitCode::Io, "cannot list: " + error.message()).inFile(folder.str());
  std::string index = (folder + "/" + kIndex).str();
  if (sys::fs::exists(index)) {
    if (Error e = stayInside(folder, index)) return e;
    return readSharded(folder, index, safetensors);
  }
  if (safetensors.count("model.safetensors")) safetensors = {"model.safetensors"};
  if (safetensors.empty()) {
    if (!pickles.empty())
      return refuse("only pickled weights (" + *pickles.begin() + ") are here; pickle is never loaded").inFile(folder.str()).withHint("convert to safetensors first: model.save_pretrained(folder, safe_serialization=True)");
    return refuse("no .safetensors file in this folder").inFile(folder.str());
  }
  Checkpoint out;
  for (const std::string &name : safetensors) {
    std::string path = (folder + "/" + name).str();
    if (Error e = stayInside(folder, path)) return e;
    auto part = readSafetensors(path);
    if (!part) return part.takeError();
    if (Error e = add(out, std::move(*part))) return e;
  }
  return out;
}
} // namespace tare
