// SPDX-License-Identifier: Apache-2.0
// Source lines by addr2line, function names from the ELF symbol table.
#include "kernels/simt/symbolize.h"

#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>

namespace tigon::simt {

namespace {

std::mutex caches_mutex;  // guards the two caches
std::map<const void*, SourceLine> lines;
std::map<const void*, std::string> names;

// The program or library that contains an address, and the address in its file.
struct Place {
  std::string path;
  uintptr_t offset = 0;
};

std::string program_path() {
  char path[4096];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof path);
  return n > 0 ? std::string(path, static_cast<size_t>(n)) : std::string();
}

Place place_of(const void* address) {
  struct Search {
    uintptr_t address;
    Place found;
  } search{reinterpret_cast<uintptr_t>(address), {}};
  const auto visit = [](dl_phdr_info* info, size_t, void* data) {
    auto& s = *static_cast<Search*>(data);
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const ElfW(Phdr)& h = info->dlpi_phdr[i];
      if (h.p_type != PT_LOAD || s.address - (info->dlpi_addr + h.p_vaddr) >= h.p_memsz) continue;
      // The program itself has no name here.
      s.found = {info->dlpi_name[0] != '\0' ? info->dlpi_name : program_path(),
                 s.address - info->dlpi_addr};
      return 1;
    }
    return 0;
  };
  dl_iterate_phdr(visit, &search);
  return search.found;
}

std::string offset_text(const Place& p) {
  char offset[32];
  snprintf(offset, sizeof offset, "+0x%zx", static_cast<size_t>(p.offset));
  return p.path.substr(p.path.rfind('/') + 1) + offset;
}

// Folder of the source tree, as the compiler was given it, with a slash at the end.
std::string_view source_root() {
  constexpr std::string_view self = __FILE__;
  constexpr std::string_view own = "kernels/simt/symbolize.cpp";
  return self.size() > own.size() ? self.substr(0, self.size() - own.size()) : std::string_view();
}

// The device layer, the element types and the executor's headers are inlined into kernels; the
// caller's line says more.
bool is_device_layer(std::string_view file) {
  if (file.find("/tests/") != std::string_view::npos) return false;
  for (const std::string_view layer : {"kernels/device/", "kernels/signature/", "kernels/simt/"})
    if (file.find(layer) != std::string_view::npos) return true;
  return false;
}

// One "file:line" or "file:line (discriminator n)" of addr2line.
SourceLine parse(std::string_view text) {
  SourceLine s;
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || text.substr(0, 2) == "??") return s;
  s.line = static_cast<unsigned>(strtoul(std::string(text.substr(colon + 1)).c_str(), nullptr, 10));
  // A cache of compilations may have made the path one from the folder of the build.
  s.file = std::filesystem::path(text.substr(0, colon)).lexically_normal().string();
  const std::string_view root = source_root();
  if (!root.empty() && s.file.starts_with(root)) s.file.erase(0, root.size());
  return s;
}

// Runs addr2line on addresses of one file; answers in the same order, line 0 where unknown.
std::vector<SourceLine> addr2line(const std::string& path, const std::vector<uintptr_t>& offsets) {
  std::vector<SourceLine> found(offsets.size());
  std::string command = "addr2line -a -i -e '" + path + "'";
  char text[4096];
  for (uintptr_t offset : offsets) {
    snprintf(text, sizeof text, " 0x%zx", static_cast<size_t>(offset));
    command += text;
  }
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen((command + " 2>/dev/null").c_str(), "r"),
                                                   pclose);
  if (pipe == nullptr) return found;
  size_t next = 0;  // one past the address whose frames are being read
  while (fgets(text, sizeof text, pipe.get()) != nullptr) {
    const std::string_view line(text);
    if (line.substr(0, 2) == "0x") {
      ++next;
      continue;
    }
    if (next == 0 || next > found.size()) continue;
    SourceLine& best = found[next - 1];
    if (best.line == 0 || is_device_layer(best.file)) {
      const SourceLine frame = parse(line);
      if (frame.line != 0) best = frame;
    }
  }
  return found;
}

// Calls f(mangled name, symbol) for the functions in a file's symbol table until it returns true.
template <class F>
void visit_functions(const std::string& path, const F& f) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  struct stat st {};
  fstat(fd, &st);
  const auto size = static_cast<size_t>(st.st_size);
  void* map =
      size > sizeof(ElfW(Ehdr)) ? mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
  close(fd);
  if (map == MAP_FAILED) return;
  const char* file = static_cast<const char*>(map);
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(file);
  const auto* sections = reinterpret_cast<const ElfW(Shdr)*>(file + header->e_shoff);
  bool is_done = false;
  for (unsigned i = 0; i < header->e_shnum && !is_done; ++i) {
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    const auto* symbols = reinterpret_cast<const ElfW(Sym)*>(file + sections[i].sh_offset);
    const char* strings = file + sections[sections[i].sh_link].sh_offset;
    for (size_t k = 0; k < sections[i].sh_size / sizeof *symbols && !is_done; ++k)
      if (ELF64_ST_TYPE(symbols[k].st_info) == STT_FUNC)
        is_done = f(strings + symbols[k].st_name, symbols[k]);
  }
  munmap(map, size);
}

// Mangled name of the function at `offset`, from the file's symbol table.
std::string symbol_name(const Place& place) {
  std::string name;
  visit_functions(place.path, [&](const char* mangled, const ElfW(Sym) & symbol) {
    const bool is_it = place.offset - symbol.st_value < symbol.st_size;
    if (is_it) name = mangled;
    return is_it;
  });
  return name;
}

// Where this program's addresses begin.
uintptr_t program_base() {
  uintptr_t base = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        *static_cast<uintptr_t*>(data) = info->dlpi_addr;
        return 1;  // the program comes first
      },
      &base);
  return base;
}

std::string demangle(const std::string& mangled) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), free);
  return status == 0 ? text.get() : mangled;
}

void erase_all(std::string& text, std::string_view what) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what))
    text.erase(at, what.size());
}

// "void tigon::f<tigon::bf16, 8>(float*)" -> "f<bf16, 8>"
std::string shorten(std::string text) {
  erase_all(text, "tigon::");
  erase_all(text, "(anonymous namespace)::");
  if (text.rfind("void ", 0) == 0) text.erase(0, 5);
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    depth += (text[i] == '<') - (text[i] == '>');
    if (text[i] == '(' && depth == 0) return text.substr(0, i);
  }
  return text;
}

}  // namespace

void resolve(const std::vector<const void*>& pcs) {
  const std::lock_guard lock(caches_mutex);
  std::map<std::string, std::vector<const void*>> unknown;  // by file
  std::map<const void*, Place> places;
  for (const void* pc : pcs) {
    if (pc == nullptr || lines.count(pc) != 0 || places.count(pc) != 0) continue;
    const Place place = place_of(static_cast<const char*>(pc) - 1);
    places[pc] = place;
    unknown[place.path].push_back(pc);
  }
  for (const auto& [path, addresses] : unknown) {
    std::vector<uintptr_t> offsets;
    for (const void* pc : addresses) offsets.push_back(places[pc].offset);
    const std::vector<SourceLine> found = addr2line(path, offsets);
    for (size_t i = 0; i < addresses.size(); ++i)
      lines[addresses[i]] =
          found[i].line != 0 ? found[i] : SourceLine{offset_text(places[addresses[i]]), 0};
  }
}

SourceLine source_line(const void* pc) {
  if (pc == nullptr) return {};
  resolve({pc});
  const std::lock_guard lock(caches_mutex);
  return lines[pc];
}

std::vector<Function> functions(const std::string& ending) {
  std::vector<Function> found;
  const uintptr_t base = program_base();
  visit_functions(program_path(), [&](const std::string& mangled, const ElfW(Sym) & symbol) {
    // A part that the compiler has cut off a function has a dot in its name; _ZZ begins what is
    // inside one, a lambda that was not inlined.
    if (mangled.find(ending) == std::string::npos || mangled.find('.') != std::string::npos ||
        mangled.starts_with("_ZZ"))
      return false;
    std::string name = shorten(demangle(mangled));
    if (std::string_view(name).substr(0, name.find('<')).ends_with(ending))
      found.push_back({std::move(name), reinterpret_cast<const void*>(base + symbol.st_value)});
    return false;
  });
  return found;
}

std::string kernel_name(const void* function) {
  const std::lock_guard lock(caches_mutex);
  std::string& name = names[function];
  if (!name.empty()) return name;
  const Place place = place_of(function);
  const std::string symbol = symbol_name(place);
  name = symbol.empty() ? offset_text(place) : shorten(demangle(symbol));
  return name;
}

}  // namespace tigon::simt
