// Links one object with lld (as a library) into an ELF file of two sections at address 0, then lays the sections out as one flat image.
// In: an object; out: the image and the ELF file. Must hold: what is checked here is what lets the runtime map code without relocating it.
#include "compiler/codegen/cpu/FlatLink.h"
#include "compiler/graph/Failure.h"
#include "compiler/graph/TemporaryFolder.h"
#include "lld/Common/Driver.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include <mutex>
#include <set>

LLD_HAS_DRIVER(elf)

using namespace llvm;

namespace tare {
namespace {

// Constants start on a cache line of their own; `tare_entry` comes first so that the entry offset is 0 in every section.
constexpr char linkerScript[] = R"(ENTRY(tare_entry)
SECTIONS {
  . = 0;
  .text : { KEEP(*(.text.tare_entry)) *(.text .text.*) }
  . = ALIGN(64);
  .rodata : { *(.rodata .rodata.*) }
  /DISCARD/ : { *(.eh_frame*) *(.note*) *(.comment*) *(.llvm*) }
}
)";

FailureBuilder internal(StringRef level, const Twine &what) { return fail(ExitCode::Internal, ("code for " + level + ": " + what).str()); }

/// Relocations that stay right wherever the image is mapped.
bool isRelative(uint64_t type) { return type == ELF::R_X86_64_PC32 || type == ELF::R_X86_64_PLT32 || type == ELF::R_X86_64_PC64 || type == ELF::R_X86_64_NONE; }

Error checkObject(const object::ELF64LEObjectFile &object, StringRef level) {
  std::set<std::string> undefined;
  for (const object::ELFSymbolRef symbol : object.symbols()) {
    Expected<uint32_t> flags = symbol.getFlags();
    Expected<StringRef> name = symbol.getName();
    if (!flags || !name) return joinErrors(flags.takeError(), name.takeError());
    if ((*flags & object::SymbolRef::SF_Undefined) && !name->empty()) undefined.insert(name->str());
  }
  if (!undefined.empty()) return internal(level, "undefined symbol" + Twine(undefined.size() > 1 ? "s " : " ") + join(undefined, ", ")).withHint("define it in kernels/cpu/support.c or stop calling it");
  for (const object::ELFSectionRef section : object.sections()) {
    Expected<StringRef> name = section.getName();
    if (!name) return name.takeError();
    const uint64_t flags = section.getFlags();
    if ((flags & ELF::SHF_ALLOC) && (flags & ELF::SHF_WRITE) && section.getSize() > 0) return internal(level, "writable data in " + *name);
    Expected<object::section_iterator> target = section.getRelocatedSection();
    if (!target) return target.takeError();
    if (*target == object.section_end() || !(object::ELFSectionRef(**target).getFlags() & ELF::SHF_ALLOC)) continue;
    for (const object::RelocationRef relocation : section.relocations()) {
      if (isRelative(relocation.getType())) continue;
      SmallString<32> type;
      relocation.getTypeName(type);
      return internal(level, "relocation " + type + " in " + *name + " is not PC-relative");
    }
  }
  return Error::success();
}

/// The two sections of the linked file at their addresses.
Error layOut(const object::ELF64LEObjectFile &elf, StringRef level, CodeSection &code) {
  for (const object::ELFSectionRef section : elf.sections()) {
    if (!(section.getFlags() & ELF::SHF_ALLOC) || section.getSize() == 0) continue;
    Expected<StringRef> name = section.getName();
    Expected<StringRef> contents = section.getContents();
    if (!name || !contents) return joinErrors(name.takeError(), contents.takeError());
    if (*name != ".text" && *name != ".rodata") return internal(level, "unexpected section " + *name);
    code.bytes.resize(std::max<size_t>(code.bytes.size(), section.getAddress() + contents->size()), '\0');
    memcpy(code.bytes.data() + section.getAddress(), contents->data(), contents->size());
    if (*name == ".text") code.textBytes = contents->size();
  }
  for (const object::ELFSymbolRef symbol : elf.symbols()) {
    Expected<StringRef> name = symbol.getName();
    Expected<uint64_t> address = symbol.getAddress();
    if (!name || !address) return joinErrors(name.takeError(), address.takeError());
    if (*name == "tare_entry" && *address != 0) return internal(level, "tare_entry is not at offset 0");
  }
  return code.textBytes ? Error::success() : Error(internal(level, "no code after linking"));
}

} // namespace

Expected<CodeSection> linkFlat(StringRef object, StringRef level) {
  CodeSection code;
  code.level = level.str();
  auto parsed = object::ObjectFile::createELFObjectFile(MemoryBufferRef(object, "kernels.o"));
  if (!parsed) return parsed.takeError();
  if (Error error = checkObject(cast<object::ELF64LEObjectFile>(**parsed), level)) return error;

  auto folder = TemporaryFolder::create("link");
  if (!folder) return folder.takeError();
  auto objectPath = folder->write("kernels.o", object);
  if (!objectPath) return objectPath.takeError();
  auto scriptPath = folder->write("flat.ld", linkerScript);
  if (!scriptPath) return scriptPath.takeError();
  const std::string outPath = folder->path("kernels.elf");

  std::string messages;
  raw_string_ostream stream(messages);
  {
    static std::mutex oneAtATime; // lld keeps its state in process-wide variables
    std::lock_guard<std::mutex> lock(oneAtATime);
    const char *arguments[] = {"ld.lld", "-o", outPath.c_str(), "-T", scriptPath->c_str(), "--gc-sections", "-e", "tare_entry", "--build-id=none", "--threads=1", "-z", "noexecstack", "-z", "nognustack", objectPath->c_str()};
    const lld::Result result = lld::lldMain(arguments, stream, stream, {{lld::Gnu, &lld::elf::link}});
    if (result.retCode != 0) return internal(level, "link failed: " + messages);
  }
  auto linked = MemoryBuffer::getFile(outPath, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!linked) return fail(ExitCode::Io, "cannot read: " + linked.getError().message()).inFile(outPath);
  code.elf = (*linked)->getBuffer().str();
  auto elf = object::ObjectFile::createELFObjectFile(MemoryBufferRef(code.elf, "kernels.elf"));
  if (!elf) return elf.takeError();
  if (Error error = layOut(cast<object::ELF64LEObjectFile>(**elf), level, code)) return error;
  return code;
}

} // namespace tare
