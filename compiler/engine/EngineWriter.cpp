// The order of the file: weights (streamed, so that their offsets are known), code, plan, texts, signature.
#include "compiler/engine/EngineWriter.h"
#include "compiler/codegen/cpu/Packing.h"
#include "compiler/engine/PlanBuilder.h"
#include "compiler/graph/Failure.h"

namespace tare {
using format::SectionKind;

/// Packs and writes every weight buffer of the program; equal constants share one buffer already (plan-buffers sees to it).
static llvm::Error writeWeights(SectionWriter &file, plan::ProgramOp program, std::map<size_t, uint64_t> &offsets) {
  size_t index = 0;
  bool begun = false;
  for (auto buffer : program.getBody().front().getOps<plan::BufferOp>()) {
    size_t at = index++;
    if (buffer.getKind() != "weight") continue;
    auto value = buffer.getValue();
    if (!value) return fail(ExitCode::Internal, "a weight of the plan has no value").ofTensor(buffer.getName().str());
    auto packed = packWeight(*value, buffer.getPacking());
    if (!packed) return packed.takeError();
    auto expected = buffer.getBytes().dims().front().constant();
    if (!expected || static_cast<uint64_t>(*expected) != packed->size())
      return fail(ExitCode::Internal, "a packed weight has " + std::to_string(packed->size()) + " bytes, the plan says " + buffer.getBytes().dims().front().str()).ofTensor(buffer.getName().str());
    if (!begun)
      if (auto error = file.begin(SectionKind::Weights, format::kPage)) return error;
    begun = true;
    if (auto error = file.align(64)) return error;
    offsets[at] = file.sectionBytes();
    if (auto error = file.append(*packed)) return error;
  }
  if (!begun) return llvm::Error::success();
  auto ended = file.end();
  return ended ? llvm::Error::success() : ended.takeError();
}

/// A CUDA module: the images of all kernels for one architecture, each at a multiple of 64.
static llvm::Expected<ImagePlace> writeImage(SectionWriter &file, const cuda::Image &image) {
  ImagePlace place{image.architecture, 0, {}, {}};
  if (auto error = file.begin(SectionKind::CudaModule, 64)) return std::move(error);
  for (const std::string &bytes : image.binaries) {
    if (auto error = file.align(64)) return std::move(error);
    place.offsets.push_back(file.sectionBytes()), place.sizes.push_back(bytes.size());
    if (auto error = file.append(bytes)) return std::move(error);
  }
  auto ended = file.end();
  if (!ended) return ended.takeError();
  place.section = *ended;
  return place;
}

llvm::Error writeEngine(llvm::StringRef path, const EngineContents &contents) {
  auto program = findProgram(contents.planned);
  if (!program) return program.takeError();
  auto file = SectionWriter::create(path);
  if (!file) return file.takeError();
  std::map<size_t, uint64_t> offsets;
  if (auto error = writeWeights(*file, *program, offsets)) return error;
  std::vector<CodePlace> places;
  for (const CodeSection &section : contents.code) {
    auto added = file->add(SectionKind::Code, format::kPage, section.bytes);
    if (!added) return added.takeError();
    places.push_back({section.level, *added, section.textBytes});
  }
  std::vector<ImagePlace> images;
  for (size_t i = 0; contents.cuda && i < contents.cuda->images.size(); ++i) {
    auto added = writeImage(*file, contents.cuda->images[i]);
    if (!added) return added.takeError();
    images.push_back(std::move(*added));
  }
  auto plan = buildPlan(contents, offsets, places, images);
  if (!plan) return plan.takeError();
  const std::pair<SectionKind, llvm::StringRef> rest[] = {{SectionKind::Plan, *plan},
                                                          {SectionKind::Certificate, contents.certificate},
                                                          {SectionKind::Configuration, contents.configuration},
                                                          {SectionKind::Report, contents.report},
                                                          {SectionKind::Provenance, contents.provenance},
                                                          {SectionKind::CudaSource, contents.cudaSource}};
  for (auto &[kind, bytes] : rest) {
    if (bytes.empty()) continue;
    if (auto added = file->add(kind, 64, bytes); !added) return added.takeError();
  }
  return file->finish(contents.signer);
}

} // namespace tare
