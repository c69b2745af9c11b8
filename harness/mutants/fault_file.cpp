// SPDX-License-Identifier: Apache-2.0
// The parser of fault files. A record is a list of fields; the lines of a change begin with a mark.
#include "harness/mutants/fault_file.h"

#include <cctype>
#include <fstream>
#include <map>
#include <sstream>
#include <utility>

#include "harness/mutants/fault_id.h"

namespace tigon {

namespace {

bool starts_with_blank(const std::string& line) { return line[0] == ' ' || line[0] == '\t'; }

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(trimmed(part));
  return parts;
}

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> found;
  for (std::string word; in >> word;) found.push_back(word);
  return found;
}

void append_line(std::string* text, const std::string& line) {
  *text += (text->empty() ? "" : "\n") + line;
}

constexpr const char* kFields =
    "fault, what, on, also, dtypes, hint, catalogue, group, executors, host_only, equivalent, "
    "define, "
    "file, expression, statement or insert";

class Parser {
 public:
  explicit Parser(const std::string& path) : path_(path) {}

  std::vector<Mutant> run() {
    std::ifstream in(path_);
    if (!in) fail(1, "cannot be read");
    for (std::string line; std::getline(in, line);) take(++line_, line);
    finish_field();
    finish_fault();
    return std::move(faults_);
  }

 private:
  [[noreturn]] void fail(int line, const std::string& text) const {
    throw FaultFileError(path_, line, text);
  }

  void take(int number, std::string line) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    const bool is_mark = !line.empty() && std::string("=-+").find(line[0]) != std::string::npos;
    if (is_mark) {
      finish_field();
      add_code(number, line);
    } else if (trimmed(line).empty() || line[0] == '#') {
      finish_field();
    } else if (starts_with_blank(line)) {
      if (field_.empty()) fail(number, "continues no field; a field is 'name: value'");
      value_ += " ";
      value_ += trimmed(line);
    } else {
      finish_field();
      const auto colon = line.find(':');
      if (colon == std::string::npos) fail(number, "is no field; a field is 'name: value'");
      field_ = line.substr(0, colon);
      value_ = trimmed(line.substr(colon + 1));
      field_line_ = number;
    }
  }

  // A field is complete when the next one begins.
  void finish_field() {
    if (field_.empty()) return;
    const std::string field = std::exchange(field_, ""), value = with_definitions(value_);
    if (field == "define") return define(value);
    if (field == "fault") return begin_fault(value);
    if (faults_.empty()) fail(field_line_, "'" + field + "' stands before the first 'fault: name'");
    if (field == "expression" || field == "statement" || field == "insert")
      return begin_edit(field, value);
    finish_edit();
    set(&faults_.back(), field, value);
  }

  void set(Mutant* m, const std::string& field, const std::string& value) {
    if (value.empty()) fail(field_line_, "'" + field + "' has no value");
    if (field == "what")
      m->what = value;
    else if (field == "on")
      add_targets(field, value, &m->targets);
    else if (field == "also")
      add_targets(field, value, &m->also);
    else if (field == "dtypes")
      for (const std::string& word : words(value)) m->dtypes.push_back(dtype_of(word));
    else if (field == "hint")
      m->hint = value;
    else if (field == "catalogue")
      m->catalogue = number_of(value);
    else if (field == "group")
      m->group = group_of(value);
    else if (field == "executors")
      m->executors = executors_of(value);
    else if (field == "host_only")
      m->host_only = value;
    else if (field == "equivalent")
      m->equivalents.push_back(equivalent_of(value));
    else if (field == "file")
      file_ = value;
    else
      fail(field_line_, "no field '" + field + "'; there are " + kFields);
  }

  // define: NAME = VALUE, for $NAME in the fields that follow.
  void define(const std::string& value) {
    const auto equals = value.find('=');
    if (equals == std::string::npos) fail(field_line_, "define: write 'define: name = value'");
    definitions_[trimmed(value.substr(0, equals))] = trimmed(value.substr(equals + 1));
  }

  std::string with_definitions(const std::string& value) const {
    std::string text;
    for (size_t at = 0; at < value.size();) {
      size_t end = at + 1;
      while (value[at] == '$' && end < value.size() &&
             (std::isalnum(static_cast<unsigned char>(value[end])) || value[end] == '_'))
        ++end;
      const std::string piece = value.substr(at, end - at);
      at = end;
      if (piece.size() == 1) {
        text += piece;
        continue;
      }
      const auto found = definitions_.find(piece.substr(1));
      if (found == definitions_.end())
        fail(field_line_,
             piece + " is not defined; write 'define: " + piece.substr(1) + " = value' above");
      text += found->second;
    }
    return text;
  }

  void begin_fault(const std::string& name) {
    finish_fault();
    if (name.empty() || name.find_first_of(" \t\"\\/") != std::string::npos)
      fail(field_line_, "a fault's name is one word without '/', such as swiglu.dy_ignored");
    faults_.push_back({.name = name, .source = path_, .line = field_line_});
    file_.clear();
  }

  void finish_fault() {
    finish_edit();
    if (faults_.empty()) return;
    Mutant& m = faults_.back();
    const auto needs = [&](bool there, const char* field) {
      if (!there) fail(m.line, m.name + " has no '" + field + "'");
    };
    needs(!m.what.empty(), "what: the mistake in a few words");
    needs(!m.targets.empty(), "on: op pass ...");
    needs(!m.edits.empty(), "expression:', 'statement:' or 'insert:");
    if (!m.executors.empty()) return;
    m.executors = {m.group == MutantGroup::kMemorySync ? "checked" : "fast"};
    if (m.group == MutantGroup::kSampled) m.executors = {"fast", "checked", "sm_80"};
  }

  void begin_edit(const std::string& kind, const std::string& value) {
    finish_edit();
    if (!value.empty()) fail(field_line_, kind + ": the code stands on lines of its own below");
    if (file_.empty()) fail(field_line_, kind + ": which file? write 'file: path' above");
    faults_.back().edits.push_back({.kind = kind == "expression"  ? Edit::Kind::kExpression
                                            : kind == "statement" ? Edit::Kind::kStatement
                                                                  : Edit::Kind::kInsert,
                                    .file = file_,
                                    .line = field_line_});
    in_edit_ = true;
  }

  // '=' stays, '-' goes, '+' comes.
  void add_code(int number, const std::string& line) {
    if (!in_edit_)
      fail(number,
           std::string("'") + line[0] + "' belongs below 'expression:', 'statement:' or 'insert:'");
    if (line.size() > 1 && line[1] != ' ')
      fail(number, std::string("a blank is missing behind '") + line[0] + "'");
    Edit& edit = faults_.back().edits.back();
    const std::string code = line.size() > 2 ? line.substr(2) : "";
    const bool changed = !edit.text.empty() || !edit.replacement.empty();
    if (line[0] == '-' && (!edit.after.empty() || !edit.replacement.empty()))
      fail(number, "'-' comes before '+', and once; a second place is an edit of its own");
    if (line[0] == '+' && !edit.after.empty())
      fail(number, "'+' comes once; a second place is an edit of its own");
    append_line(line[0] == '-'   ? &edit.text
                : line[0] == '+' ? &edit.replacement
                : changed        ? &edit.after
                                 : &edit.before,
                code);
  }

  void finish_edit() {
    if (!std::exchange(in_edit_, false)) return;
    const Edit& edit = faults_.back().edits.back();
    if (edit.kind == Edit::Kind::kInsert) {
      if (!edit.text.empty()) fail(edit.line, "insert: takes nothing away; '-' is for a statement");
      if (edit.before.empty() && edit.after.empty())
        fail(edit.line, "insert: has no '=' line that says where");
    } else if (edit.text.empty()) {
      fail(edit.line, "has no '-' line with the text that is replaced");
    }
    if (edit.kind != Edit::Kind::kStatement && edit.replacement.empty())
      fail(edit.line, "has no '+' line with what comes instead");
  }

  // OP PASS..., OP PASS...
  void add_targets(const std::string& field, const std::string& value,
                   std::vector<MutantTarget>* targets) {
    for (const std::string& part : split(value, ',')) {
      std::vector<std::string> names = words(part);
      if (names.size() < 2)
        fail(field_line_, field + ": write '" + field + ": op pass ..., op pass ...', such as '" +
                              field + ": swiglu forward'");
      targets->push_back({names[0], {names.begin() + 1, names.end()}});
    }
  }

  DType dtype_of(const std::string& word) const {
    const auto dtype = parse_dtype(word);
    if (!dtype) fail(field_line_, "no element type '" + word + "'; there are f32, bf16 and f16");
    return *dtype;
  }

  int number_of(const std::string& value) const {
    if (value.size() > 4 || value.find_first_not_of("0123456789") != std::string::npos)
      fail(field_line_, "catalogue: '" + value + "' is no number of catalogue.cpp");
    return std::stoi(value);
  }

  MutantGroup group_of(const std::string& value) const {
    for (const MutantGroup group :
         {MutantGroup::kNumeric, MutantGroup::kMemorySync, MutantGroup::kSampled})
      if (value == name_of(group)) return group;
    fail(field_line_, "no group '" + value + "'; there are numeric, memory_sync and sampled");
  }

  std::vector<std::string> executors_of(const std::string& value) const {
    const std::vector<std::string> names = words(value);
    for (const std::string& name : names)
      if (name != "fast" && name != "checked" && name != "sm_80")
        fail(field_line_, "no executor '" + name + "'; there are fast, checked and sm_80");
    return names;
  }

  // Element types, an op and its pass, or "all"; then the proof.
  Equivalent equivalent_of(const std::string& value) const {
    const auto colon = value.find(": ");
    if (colon == std::string::npos)
      fail(field_line_, "equivalent: write where and why, such as 'equivalent: f32: the proof'");
    Equivalent e{.proof = trimmed(value.substr(colon + 1))};
    for (const std::string& word : words(value.substr(0, colon))) {
      if (word == "all") continue;
      if (const auto dtype = parse_dtype(word))
        e.dtypes.push_back(*dtype);
      else
        (e.op.empty() ? e.op : e.pass) = word;
    }
    return e;
  }

  const std::string path_;
  int line_ = 0;
  std::vector<Mutant> faults_;
  std::map<std::string, std::string> definitions_;
  std::string file_;  // of the next edit
  bool in_edit_ = false;
  std::string field_, value_;  // what is being read
  int field_line_ = 0;
};

}  // namespace

const char* name_of(MutantGroup group) {
  return group == MutantGroup::kNumeric      ? "numeric"
         : group == MutantGroup::kMemorySync ? "memory_sync"
                                             : "sampled";
}

std::vector<Mutant> read_fault_file(const std::string& path) { return Parser(path).run(); }

std::vector<Mutant> read_fault_files(const std::vector<std::string>& paths) {
  std::vector<Mutant> all;
  std::map<uint32_t, std::string> seen;  // a kernel compares hashes
  for (const std::string& path : paths)
    for (Mutant& m : read_fault_file(path)) {
      const auto [first, is_new] = seen.emplace(FaultId::hash(m.name.c_str()), m.name);
      if (!is_new && first->second == m.name)
        throw FaultFileError(path, m.line, m.name + " is there already; a name occurs once");
      if (!is_new)
        throw FaultFileError(path, m.line,
                             m.name + " has the hash of " + first->second + "; rename one");
      all.push_back(std::move(m));
    }
  return all;
}

}  // namespace tigon
