// SPDX-License-Identifier: Apache-2.0
// Finds the place of each edit, token by token, and writes the switches.
#include "harness/mutants/mutate.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "harness/mutants/fault_file.h"

namespace tigon {

namespace {

// A word or a single character; white space between them does not count.
struct Token {
  std::string_view text;
  size_t at;
  size_t end() const { return at + text.size(); }
};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

std::vector<Token> tokens_of(std::string_view text) {
  std::vector<Token> tokens;
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    while (is_word(text[i]) && end < text.size() && is_word(text[end])) ++end;
    if (!std::isspace(static_cast<unsigned char>(text[i])))
      tokens.push_back({text.substr(i, end - i), i});
    i = end;
  }
  return tokens;
}

// The text with blanks in place of its comments.
std::string without_comments(std::string text) {
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] == '"' || (text[i] == '\'' && (i == 0 || !is_word(text[i - 1])))) {
      const char quote = text[i];
      for (++i; i < text.size() && text[i] != quote; ++i) i += text[i] == '\\';
      continue;
    }
    if (text[i] != '/' || (text[i + 1] != '/' && text[i + 1] != '*')) continue;
    const bool is_line = text[i + 1] == '/';
    const size_t found = is_line ? text.find('\n', i) : text.find("*/", i + 2);
    const size_t end = found == std::string::npos ? text.size() : found + (is_line ? 0 : 2);
    for (; i < end; ++i)
      if (text[i] != '\n') text[i] = ' ';
  }
  return text;
}

// [begin, end) of the text; an insertion has no length.
struct Place {
  NamedEdit of;
  size_t begin, end;
  bool is_point() const { return begin == end; }
};

class Source {
 public:
  explicit Source(const std::string& text)
      : text_(text), code_(without_comments(text)), tokens_(tokens_of(text)) {}

  Place place_of(const NamedEdit& of) const {
    const Edit& edit = *of.edit;
    std::vector<Token> pattern = tokens_of(edit.before);
    const size_t before = pattern.size();
    for (const Token& t : tokens_of(edit.text)) pattern.push_back(t);
    const size_t behind = pattern.size();
    for (const Token& t : tokens_of(edit.after)) pattern.push_back(t);
    const Token* const first = find_once(of, pattern);
    Place place{of, first[before].at, 0};
    if (edit.kind == Edit::Kind::kInsert) {
      place.begin = place.end = before > 0 ? first[before - 1].end() : first[0].at;
    } else {
      place.end = first[behind - 1].end();
      if (code_[place.end - 1] == ' ')
        fail(of, "the text that is replaced ends in a comment; leave the comment out");
    }
    if (edit.kind != Edit::Kind::kExpression) check_statement(place);
    return place;
  }

 private:
  [[noreturn]] void fail(const NamedEdit& of, const std::string& text) const {
    throw FaultFileError(of.fault->source, of.edit->line, of.fault->name + ": " + text);
  }

  const Token* find_once(const NamedEdit& of, const std::vector<Token>& pattern) const {
    const auto same = [](const Token& a, const Token& b) { return a.text == b.text; };
    const Token* found = nullptr;
    int count = 0;
    for (auto at = tokens_.begin();; ++at) {
      at = std::search(at, tokens_.end(), pattern.begin(), pattern.end(), same);
      if (at == tokens_.end()) break;
      found = &*at;
      ++count;
    }
    if (count == 1) return found;
    fail(of, "its text is " + std::string(count == 0 ? "not" : std::to_string(count) + " times") +
                 " in " + of.edit->file + "; it must be there once" +
                 (count == 0 ? "" : ": add '=' lines with what stands around it"));
  }

  // A statement begins behind another one, or behind what it is the body of, and ends in ; or }.
  void check_statement(const Place& place) const {
    const auto last = [&](size_t end) {
      const size_t at = code_.find_last_not_of(" \t\n", end - 1);
      return end == 0 || at == std::string::npos ? ';' : code_[at];
    };
    const bool inserts = place.is_point();
    if (inserts && place.begin > 0 && code_[place.begin - 1] == ' ' &&
        text_[place.begin - 1] != ' ')
      fail(place.of, "insert: the text before it ends in a comment; leave the comment out");
    if (inserts && std::string_view(";{}").find(last(place.begin)) == std::string_view::npos)
      fail(place.of, "insert: no statement can stand there; it comes behind ; { or }");
    if (!inserts && std::string_view(";}").find(last(place.end)) == std::string_view::npos)
      fail(place.of, "statement: the text must end in ; or }; for less there is 'expression'");
  }

  const std::string& text_;
  const std::string code_;
  const std::vector<Token> tokens_;
};

// On one line, so that no line of the file moves.
std::string on_one_line(const std::string& code) {
  std::string line = without_comments(code);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

std::string with_switch(const NamedEdit& of, const std::string& original) {
  const std::string test = "::tigon::planted(\"" + of.fault->name + "\")";
  const std::string replacement = on_one_line(of.edit->replacement);
  switch (of.edit->kind) {
    case Edit::Kind::kExpression:
      return "(" + test + " ? (" + replacement + ") : (" + original + "))";
    case Edit::Kind::kStatement:
      return "{ if (" + test + ") { " + replacement + " } else { " + original + " } }";
    case Edit::Kind::kInsert:
      return " if (" + test + ") { " + replacement + " } ";
  }
  return original;
}

// What comes instead of the text, with as many lines.
std::string without_switch(const NamedEdit& of, const std::string& original) {
  const std::string replacement = on_one_line(of.edit->replacement);
  const bool is_expression = of.edit->kind == Edit::Kind::kExpression;
  const auto lines = static_cast<size_t>(std::count(original.begin(), original.end(), '\n'));
  return (is_expression ? "(" + replacement + ")" : "{ " + replacement + " }") +
         std::string(lines, '\n');
}

using Change = std::string (*)(const NamedEdit& of, const std::string& original);

// Writes [begin, end) with the places from *next on that lie in it. Places are in order, an outer
// one before those within.
std::string written(const std::string& text, size_t begin, size_t end,
                    const std::vector<Place>& places, Change change, size_t* next) {
  std::string out;
  while (*next < places.size() && places[*next].begin < end) {
    const Place& place = places[*next];
    ++*next;
    out += text.substr(begin, place.begin - begin);
    out += change(place.of, written(text, place.begin, place.end, places, change, next));
    begin = place.end;
  }
  return out + text.substr(begin, end - begin);
}

void check_nesting(const std::vector<Place>& places) {
  std::vector<Place> open;
  for (const Place& place : places) {
    while (!open.empty() && open.back().end <= place.begin) open.pop_back();
    if (!open.empty() && open.back().end < place.end)
      throw FaultFileError(place.of.fault->source, place.of.edit->line,
                           place.of.fault->name + ": its text overlaps that of " +
                               open.back().of.fault->name +
                               "; one must lie within the other, or apart");
    open.push_back(place);
  }
}

std::string edited(const std::string& text, const std::vector<NamedEdit>& edits, Change change) {
  const Source source(text);
  std::vector<Place> places;
  for (const NamedEdit& edit : edits) places.push_back(source.place_of(edit));
  // What is inserted where another text begins stands before that text.
  std::stable_sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    if (a.begin != b.begin) return a.begin < b.begin;
    if (a.is_point() != b.is_point()) return a.is_point();
    return a.end > b.end;
  });
  check_nesting(places);
  size_t next = 0;
  return written(text, 0, text.size(), places, change, &next);
}

}  // namespace

std::string mutated(const std::string& text, const std::string& path,
                    const std::vector<NamedEdit>& edits) {
  const std::string include = edits.empty() ? "" : "#include \"harness/mutants/planted.h\"\n";
  return include + "#line 1 \"" + path + "\"\n" + edited(text, edits, with_switch);
}

std::string with_one_fault(const std::string& text, const Mutant& fault) {
  std::vector<NamedEdit> edits;
  for (const Edit& edit : fault.edits) edits.push_back({&fault, &edit});
  return edited(text, edits, without_switch);
}

void check_file(const std::string& root, const Mutant& fault, const Edit& edit) {
  const std::string& file = edit.file;
  const bool is_source = file.ends_with(".h") || file.ends_with(".cu");
  if (file.starts_with("kernels/") && is_source && file.find("/tests/") == std::string::npos &&
      file.find("..") == std::string::npos && std::filesystem::exists(root + "/" + file))
    return;
  throw FaultFileError(fault.source, edit.line,
                       fault.name + ": no kernel source '" + file +
                           "'; write a path such as kernels/rms_norm/rms_norm.cu");
}

std::string mutated_file(const std::string& root, const std::string& file,
                         const std::vector<Mutant>& faults) {
  std::vector<NamedEdit> edits;
  for (const Mutant& m : faults)
    for (const Edit& edit : m.edits)
      if (edit.file == file) edits.push_back({&m, &edit});
  const std::string path = root + "/" + file;
  std::ifstream in(path, std::ios::binary);
  return mutated({std::istreambuf_iterator<char>(in), {}}, path, edits);
}

}  // namespace tigon
