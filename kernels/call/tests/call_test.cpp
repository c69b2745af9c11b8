// SPDX-License-Identifier: Apache-2.0
// The call: every op by name, its description, what a wrong call is told, and calls from many
// threads.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "kernels/call/tests/random_call.h"
#include "kernels/call/typed.h"
#include "kernels/cross_entropy/cross_entropy.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/swiglu/swiglu.h"

extern "C" int tigon_called_from_c(void);

namespace tigon::call {
namespace {

using Json = nlohmann::json;

std::vector<const tigon_op*> ops() {
  std::vector<const tigon_op*> all;
  for (int32_t i = 0; const tigon_op* op = tigon_op_at(i); ++i) all.push_back(op);
  return all;
}

unsigned seed_of_run() {
  const char* given = std::getenv("TIGON_TEST_SEED");
  return given != nullptr ? static_cast<unsigned>(std::stoul(given)) : std::random_device{}();
}

TEST(Call, finds_every_pass_in_every_dtype) {
  std::set<std::pair<std::string, int32_t>> names;
  for (const tigon_op* op : ops()) {
    EXPECT_TRUE(names.insert({op->name, op->dtype}).second) << op->name;
    EXPECT_EQ(tigon_find(op->name, op->dtype), op);
    EXPECT_EQ(op->abi, uint32_t{TIGON_ABI});
  }
  for (const char* op : {TIGON_TESTED_OPS})
    for (const int32_t dtype : {TIGON_F32, TIGON_BF16, TIGON_F16}) {
      // What several ranks do together has no forward pass of its own.
      const auto has = [&](const char* pass) {
        return tigon_find((std::string(op) + pass).c_str(), dtype) != nullptr;
      };
      EXPECT_TRUE(has(".forward") || has(".statistics")) << op;
    }
  EXPECT_EQ(tigon_find("rms_norm.forward", TIGON_F64), nullptr);
  EXPECT_EQ(tigon_find("rms_norm", TIGON_F32), nullptr);
  EXPECT_EQ(tigon_op_at(-1), nullptr);
  EXPECT_EQ(tigon_op_at(static_cast<int32_t>(names.size())), nullptr);
}

TEST(Call, describes_every_op_in_the_order_of_a_call) {
  for (const tigon_op* op : ops()) {
    const Json d = Json::parse(tigon_describe(op));
    EXPECT_EQ(d.at("name"), op->name);
    EXPECT_FALSE(d.at("formula").get<std::string>().empty());
    int32_t i = 0;
    for (const Json& t : d.at("tensors")) {
      EXPECT_EQ(tigon_tensor_index(op, t.at("name").get<std::string>().c_str()), i++);
      for (const Json& size : t.at("shape")) EXPECT_FALSE(size.get<std::string>().empty());
    }
    i = 0;
    for (const Json& o : d.at("options"))
      EXPECT_EQ(tigon_option_index(op, o.at("name").get<std::string>().c_str()), i++);
    EXPECT_EQ(tigon_tensor_index(op, "nothing"), -1);
    EXPECT_EQ(tigon_option_index(op, "nothing"), -1);
  }
  const Json norm = Json::parse(tigon_describe(tigon_find("rms_norm.backward", TIGON_BF16)));
  EXPECT_EQ(norm.at("axes").at("H"), "hidden size");
  EXPECT_EQ(norm.at("tensors")[4], Json({{"name", "dx"},
                                         {"role", "out"},
                                         {"dtype", "bf16"},
                                         {"shape", {"T", "H"}},
                                         {"optional", false},
                                         {"gradient_of", "x"},
                                         {"same_gradient_as", nullptr},
                                         {"strided", true},
                                         {"may_alias", {"dy"}}}));
  EXPECT_EQ(norm.at("tensors")[2].at("strided"), false);
  EXPECT_EQ(norm.at("tensors")[2].at("may_alias"), Json::array());
  const Json forward = Json::parse(tigon_describe(tigon_find("rms_norm.forward", TIGON_BF16)));
  EXPECT_EQ(forward.at("options")[2], Json({{"name", "casting"},
                                            {"type", "choice"},
                                            {"default", "llama"},
                                            {"choices", {"llama", "gemma", "none"}}}));
  EXPECT_EQ(Json::parse(tigon_build_info()).at("abi"), TIGON_ABI);
}

// Every gradient names a tensor that some pass of the op has.
TEST(Call, gradients_are_of_tensors_of_the_op) {
  std::map<std::string, std::set<std::string>> tensors;
  const auto op_name = [](const tigon_op* op) {
    return std::string(op->name).substr(0, std::string(op->name).find('.'));
  };
  const auto tensors_of = [](const tigon_op* op) -> Json {
    return Json::parse(tigon_describe(op)).at("tensors");
  };
  for (const tigon_op* op : ops())
    for (const Json& all = tensors_of(op); const Json& t : all)
      tensors[op_name(op)].insert(t.at("name").get<std::string>());
  for (const tigon_op* op : ops())
    for (const Json& all = tensors_of(op); const Json& t : all) {
      if (!t.at("gradient_of").is_string()) continue;
      EXPECT_TRUE(tensors[op_name(op)].count(t.at("gradient_of").get<std::string>()))
          << op->name << " " << t;
    }
  const tigon_op* add = tigon_find("add_rms_norm.forward", TIGON_F32);
  EXPECT_EQ(tensors_of(add)[0].at("same_gradient_as"), nullptr);
  EXPECT_EQ(tensors_of(add)[1].at("same_gradient_as"), "x");
}

TEST(Call, is_made_from_c89) { EXPECT_EQ(tigon_called_from_c(), 0); }

TEST(Call, gives_the_bits_of_the_typed_launcher) {
  RandomCall random(tigon_find("rms_norm.forward", TIGON_BF16));
  tigon_status status;
  const auto erased = random.run(nullptr, &status);
  ASSERT_EQ(status.code, TIGON_OK) << status.message;
  rms_norm::Forward<BF16> args;
  ASSERT_TRUE(fill_args(random.call(), &args));
  ASSERT_TRUE(rms_norm::forward(args, nullptr).ok());
  device_synchronize();
  std::vector<std::byte> typed(erased.size());
  const size_t y = static_cast<size_t>(args.y.size()) * sizeof(bf16);
  device_download(typed.data(), args.y.data, y);
  device_download(typed.data() + y, args.rstd.data, typed.size() - y);
  EXPECT_EQ(erased, typed);
  ASSERT_TRUE(tigon::run(args, nullptr).ok());  // and back through tigon.h
}

TEST(Call, takes_options_by_index) {
  RandomCall random(tigon_find("cross_entropy.forward", TIGON_F32));
  tigon_status status;
  const auto plain = random.run(nullptr, &status);
  const tigon_option smoothing = {tigon_option_index(random.op(), "label_smoothing"), 0, 0.5};
  random.call().options = &smoothing;
  random.call().option_count = 1;
  const auto smoothed = random.run(nullptr, &status);
  ASSERT_EQ(status.code, TIGON_OK) << status.message;
  EXPECT_NE(plain, smoothed);
}

// What a wrong call of rms_norm.forward is told.
struct WrongCall {
  void (*spoil)(std::vector<tigon_tensor>* tensors, std::vector<tigon_option>* options);
  const char* message;
};

int64_t wide[2] = {37, 73}, negative[2] = {-1, 72}, spread[2] = {144, 2};

const WrongCall kWrong[] = {
    {[](auto* t, auto*) { (*t)[2].sizes = wide; },
     "rms_norm.forward: y is [37, 73], but its axis 1 must be 72: it is H, which is 72 by x (axis "
     "1)"},
    {[](auto* t, auto*) { (*t)[0].sizes = nullptr; },
     "rms_norm.forward: x is missing; it is [T, H]"},
    {[](auto* t, auto*) { (*t)[3].dtype = TIGON_BF16; },
     "rms_norm.forward: rstd is bf16, but must be f32"},
    {[](auto* t, auto*) { (*t)[3].dtype = 77; },
     "rms_norm.forward: rstd is no dtype of Tigon, but must be f32"},
    {[](auto* t, auto*) { (*t)[0].rank = 3; },
     "rms_norm.forward: x has 3 axes, but must have 2: [T, H]"},
    {[](auto* t, auto*) { (*t)[0].sizes = negative; },
     "rms_norm.forward: x is [-1, 72]: its axis 0 is negative"},
    {[](auto* t, auto*) { (*t)[0].strides = spread; },
     "rms_norm.forward: x has stride 2 along its last axis, H, but must have 1"},
    {[](auto* t, auto*) { (*t)[2].data = nullptr; },
     "rms_norm.forward: y has no memory; only optional tensors may be left out"},
    {[](auto* t, auto*) { t->resize(2); }, "rms_norm.forward: y is missing; it is [T, H]"},
    {[](auto* t, auto*) { t->push_back(t->back()); },
     "rms_norm.forward: the call has 5 tensors, but the op takes 4"},
    {[](auto*, auto* o) {
       o->push_back({9, 0, 1});
     },
     "rms_norm.forward: there is no option 9; the last is 2"},
    {[](auto*, auto* o) {
       o->push_back({2, 0, 3});
     },
     "rms_norm.forward: the option casting is 3, but must be one of 0 (llama), 1 (gemma), 2 "
     "(none)"},
};

TEST(Call, says_what_is_wrong_with_it) {
  for (const WrongCall& wrong : kWrong) {
    RandomCall random(tigon_find("rms_norm.forward", TIGON_F32));
    tigon_call call = random.call();
    std::vector<tigon_tensor> tensors(call.tensors, call.tensors + call.tensor_count);
    std::vector<tigon_option> options;
    wrong.spoil(&tensors, &options);
    call.tensors = tensors.data();
    call.tensor_count = static_cast<int32_t>(tensors.size());
    call.options = options.data();
    call.option_count = static_cast<int32_t>(options.size());
    const tigon_status status = tigon_run(random.op(), &call, nullptr);
    EXPECT_EQ(status.code, TIGON_INVALID);
    EXPECT_STREQ(status.message, wrong.message);
  }
}

TEST(Call, says_what_is_wrong_with_expressions_and_whole_numbers) {
  RandomCall random(tigon_find("cross_entropy.forward", TIGON_F32));
  const tigon_option none = {tigon_option_index(random.op(), "reduction"), 0, 2};
  random.call().options = &none;
  random.call().option_count = 1;
  EXPECT_STREQ(tigon_run(random.op(), &random.call(), nullptr).message,
               "cross_entropy.forward: loss is [1], but its axis 0 must be 37: it is L");
  const tigon_option half = {tigon_option_index(random.op(), "ignore_index"), 0, 0.5};
  random.call().options = &half;
  EXPECT_STREQ(tigon_run(random.op(), &random.call(), nullptr).message,
               "cross_entropy.forward: the option ignore_index is 0.5, but must be a whole number");
}

TEST(Call, keeps_a_launchers_reason_where_the_signature_has_none) {
  RandomCall random(tigon_find("rms_norm.backward", TIGON_F32));
  random.call().scratch_bytes = 0;
  EXPECT_STREQ(tigon_run(random.op(), &random.call(), nullptr).message,
               "rms_norm.backward: scratch is smaller than workspace(args)");
}

TEST(Call, of_no_op_is_refused) {
  const tigon_call call = {};
  const tigon_status status = tigon_run(tigon_find("nothing.forward", TIGON_F32), &call, nullptr);
  EXPECT_EQ(status.code, TIGON_INVALID);
  EXPECT_NE(std::string(status.message).find("tigon_find"), std::string::npos);
}

TEST(Call, asks_no_op_without_harm) {
  EXPECT_STREQ(tigon_describe(nullptr), "");
  EXPECT_EQ(tigon_tensor_index(nullptr, "x"), -1);
  EXPECT_EQ(tigon_option_index(nullptr, "eps"), -1);
  const tigon_call call = {};
  int64_t sizes[TIGON_MAX_RANK] = {};
  int32_t rank = 0;
  const tigon_status status = tigon_shape(nullptr, &call, 0, sizes, &rank);
  EXPECT_EQ(status.code, TIGON_INVALID);
  EXPECT_STREQ(status.message, tigon_run(nullptr, &call, nullptr).message);
}

// Sizes that no op takes together, or at all: what an op says of them is its own, but it says it.
TEST(Call, of_any_sizes_is_answered) {
  const unsigned seed = seed_of_run();
  std::cout << "TIGON_TEST_SEED=" << seed << " draws these sizes again\n";
  std::mt19937 random(seed);
  const int64_t sizes[] = {-1, 0, 0, 1, 3, 8, 130, 1 << 20};
  const auto draw_size = [&] { return sizes[random() % std::size(sizes)]; };
  for (const tigon_op* op : ops()) {
    const PassInfo& info = static_cast<const OpState*>(op->state)->info;
    for (int i = 0; i < 100; ++i) {
      std::vector<std::array<int64_t, TIGON_MAX_RANK>> drawn(info.tensors.size());
      std::vector<tigon_tensor> tensors;
      for (size_t k = 0; k < drawn.size(); ++k) {
        for (int64_t& size : drawn[k]) size = draw_size();
        tensors.push_back({nullptr, random() % 8 == 0 ? nullptr : drawn[k].data(), nullptr,
                           static_cast<int32_t>(info.tensors[k].dtype),
                           static_cast<int32_t>(info.tensors[k].shape.size())});
      }
      const tigon_call call = {tensors.data(),
                               nullptr,
                               nullptr,
                               0,
                               static_cast<int32_t>(random() % (drawn.size() + 1)),
                               0};
      tigon_workspace(op, &call);
      tigon_prepare(op, &call);
      const tigon_status status = tigon_run(op, &call, nullptr);
      EXPECT_TRUE(status.code == TIGON_OK || *status.message != '\0') << op->name;
    }
  }
  device_synchronize();
}

TEST(Call, infers_the_shapes_of_outputs) {
  const tigon_op* op = tigon_find("swiglu.forward", TIGON_BF16);
  const int64_t gate[2] = {5, 96}, up[2] = {5, 0};
  tigon_tensor tensors[2] = {{nullptr, gate, nullptr, TIGON_BF16, 2},
                             {nullptr, up, nullptr, TIGON_BF16, 2}};
  const tigon_option packed = {tigon_option_index(op, "layout"), 0, 1};
  const tigon_call call = {tensors, &packed, nullptr, 0, 2, 1};
  int64_t sizes[TIGON_MAX_RANK] = {};
  int32_t rank = 0;
  const tigon_status status = tigon_shape(op, &call, tigon_tensor_index(op, "y"), sizes, &rank);
  ASSERT_EQ(status.code, TIGON_OK) << status.message;
  EXPECT_EQ(rank, 2);
  EXPECT_EQ(sizes[0], 5);
  EXPECT_EQ(sizes[1], 48);
  const tigon_call nothing = {};
  EXPECT_EQ(tigon_shape(op, &nothing, 2, sizes, &rank).code, TIGON_INVALID);
  EXPECT_EQ(tigon_shape(op, &call, 99, sizes, &rank).code, TIGON_INVALID);
}

// What the threads call: an op of some dtype on some shape.
struct Drawn {
  const tigon_op* op;
  Binding sizes;
  unsigned seed;
};

std::ostream& operator<<(std::ostream& out, const Drawn& d) {
  out << d.op->name << " " << name_of(static_cast<DType>(d.op->dtype));
  for (const auto& [axis, size] : d.sizes) out << " " << axis << "=" << size;
  return out;
}

// Every pass eight times: rows that are none, one or some, of lengths that are even or odd.
std::vector<Drawn> draw(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](int end) {
    return std::uniform_int_distribution<int>(0, end - 1)(random);
  };
  const auto length = [&] { return below(3) == 0 ? 16 * (1 + below(16)) : 1 + below(300); };
  std::vector<Drawn> all;
  for (const tigon_op* first : ops()) {
    if (first->dtype != TIGON_F32) continue;
    for (int i = 0; i < 8; ++i) {
      const int32_t dtypes[] = {TIGON_F32, TIGON_BF16, TIGON_F16};
      const double rows = below(4) == 0 ? below(2) : 1 + below(70);
      const double classes = length();  // all of them on one rank of those that joined
      const Binding sizes = {{"T", rows},          {"H", length()},     {"V", classes},
                             {"classes", classes}, {"R", 1 + below(5)}, {"F", length()},
                             {"Q", 1 + below(5)},  {"K", 1 + below(3)}, {"D", 2 * (1 + below(40))},
                             {"G", length()}};
      all.push_back({tigon_find(first->name, dtypes[below(3)]), sizes, seed + below(1000)});
    }
  }
  return all;
}

// What an op gives alone, it gives beside others.
TEST(Call, works_from_eight_threads_on_four_streams) {
  constexpr int kThreads = 8, kStreams = 4;
  const unsigned seed = seed_of_run();
  std::cout << "TIGON_TEST_SEED=" << seed << " draws these shapes again\n";
  const std::vector<Drawn> drawn = draw(seed);
  std::vector<Stream> streams;
  for (int i = 0; i < kStreams; ++i) streams.push_back(stream_create());
  const auto run = [&](const Drawn& d, Stream stream, tigon_status* status) {
    return RandomCall(d.op, d.sizes, d.seed).run(stream, status);
  };
  std::vector<std::vector<std::byte>> alone;
  for (const Drawn& d : drawn) {
    tigon_status status;
    alone.push_back(run(d, streams[0], &status));
    ASSERT_EQ(status.code, TIGON_OK) << d << ": " << status.message;
  }
  std::vector<std::atomic<int>> wrong(drawn.size());
  std::atomic<int> calls = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      for (size_t i = 0; i < drawn.size(); ++i) {
        const size_t at = (i + static_cast<size_t>(thread) * 7) % drawn.size();
        tigon_status status;
        const auto got = run(drawn[at], streams[thread % kStreams], &status);
        wrong[at] += status.code != TIGON_OK || got != alone[at];
        ++calls;
      }
    });
  for (std::thread& t : threads) t.join();
  for (const Stream s : streams) stream_destroy(s);
  for (size_t i = 0; i < drawn.size(); ++i) EXPECT_EQ(wrong[i], 0) << drawn[i];
  EXPECT_EQ(calls, kThreads * static_cast<int>(drawn.size()));
}

}  // namespace
}  // namespace tigon::call
