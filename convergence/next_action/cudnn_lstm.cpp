// SPDX-License-Identifier: Apache-2.0
// One flat array of parameters on the device: [embedding][cuDNN's cells][head][head's bias].
#include "convergence/next_action/cudnn_lstm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "convergence/converge.h"
#include "convergence/kernels.h"
#include "convergence/next_action/cudnn_cells.h"
#include "convergence/next_action/head.h"
#include "convergence/next_action/lstm_loop.h"
#include "convergence/require.h"
#include "convergence/text_data.h"
#include "kernels/cross_entropy/cross_entropy.h"
#include "kernels/device/gemm.h"
#include "kernels/device/integer.h"
#include "reference/naive/cudnn_pointwise.h"

namespace tigon::convergence::next_action {
namespace {

DeviceBuffer floats(int64_t n) { return DeviceBuffer(static_cast<size_t>(n) * sizeof(float)); }

// A product of fp32 matrices whose rows are packed.
Gemm product(int64_t m, int64_t n, int64_t k, const float* a, const float* b, float* c) {
  Gemm g{.m = m, .n = n, .k = k, .a = a, .b = b, .c = c};
  g.lda = k;
  g.ldb = g.ldc = n;
  return g;
}

class CudnnLstm final : public LstmPredictor {
 public:
  CudnnLstm(int32_t vocabulary, const LstmSettings& settings)
      : s_(settings),
        layout_(vocabulary, settings),
        classes_(round_up(layout_.vocabulary, 8)),
        rows_(int64_t{settings.lanes} * settings.window),
        cells_(layout_, settings.lanes, settings.window),
        cells_at_(round_up(layout_.vocabulary * layout_.embedding_width, kAlign)),
        head_at_(cells_at_ + round_up(cells_.floats(), kAlign)),
        bias_at_(head_at_ + round_up(classes_ * layout_.hidden, kAlign)),
        total_(bias_at_ + round_up(classes_, kAlign)) {
    for (DeviceBuffer* b : {&w_, &g_, &m_, &v_}) *b = floats(total_);
    // What lies between the parts of g stays 0.
    for (DeviceBuffer* b : {&g_, &m_, &v_}) device_fill(b->data(), 0, b->bytes());
    for (DeviceBuffer* b : {&x_, &dx_}) *b = floats(rows_ * layout_.embedding_width);
    for (DeviceBuffer* b : {&y_, &dy_}) *b = floats(rows_ * layout_.hidden);
    logits_ = floats(rows_ * classes_);
    lse_ = floats(rows_);
    one_ = floats(2);  // loss, square of the gradient
    partial_ = floats(kNormPartials);
    schedule_ = floats(2 * kSchedule);
    for (DeviceBuffer* b : {&input_, &target_, &zeros_}) *b = DeviceBuffer(bytes_of<int64_t>());
    order_ = DeviceBuffer(bytes_of<int32_t>());
    first_ = DeviceBuffer(bytes_of<int32_t>() + sizeof(int32_t));
    device_fill(zeros_.data(), 0, zeros_.bytes());
    loss_scratch_ = DeviceBuffer(cross_entropy::workspace(loss_args()));
    size_t gemm_bytes = 0;
    for (const Gemm& g : {logits_of_y(), gradient_of_y(), gradient_of_head()})
      gemm_bytes = std::max(gemm_bytes, gemm_workspace(g));
    gemm_scratch_ = DeviceBuffer(gemm_bytes);
    upload_weights(first_weights(layout_, settings.seed));
  }

  int64_t parameters() const override { return layout_.total; }

  void train(const std::vector<Sequence>& learners,
             const std::function<bool(int, double)>& on_epoch) override {
    guarded([&] {
      train_by_windows(s_, learners,
                       {[&] { cells_.forget(); },
                        [&](const Lanes& lanes, int64_t step, int64_t count) {
                          return window(lanes, step, count);
                        },
                        [&](double rate) { update(rate); }},
                       on_epoch);
    });
  }

  std::vector<Hits> score(const std::vector<Sequence>& learners) override {
    std::vector<Hits> hits(learners.size());
    guarded([&] {
      const Floats all = flat(w_);
      const Head head{all.data() + layout_.head, all.data() + layout_.head_bias, layout_.vocabulary,
                      layout_.hidden};
      const Lanes lanes = lanes_in_order(learners, s_);
      Floats top(static_cast<size_t>(rows_ * layout_.hidden));
      cells_.forget();
      for (int64_t step = 0; step < lanes.length(); step += s_.window) {
        const std::vector<LaneStep> steps = forward(lanes, step);
        cells_.carry();
        device_download(top.data(), y_.data(), y_.bytes());
        std::vector<int32_t> targets;
        for (const LaneStep& at : steps) targets.push_back(at.target);
        const std::vector<int> rank = ranks(head, top.data(), targets);
        for (size_t i = 0; i < steps.size(); ++i)
          if (targets[i] >= 0) hits[static_cast<size_t>(steps[i].learner)].add(rank[i]);
      }
    });
    return hits;
  }

  double gradient(const std::vector<Sequence>& learners, Floats& gradient) override {
    double loss = 0;
    guarded([&] {
      const Lanes lanes = lanes_in_order(learners, s_);
      cells_.forget();
      const int64_t count = targets_in(lanes, s_, 0);
      loss = window(lanes, 0, count) / static_cast<double>(count);
      gradient = flat(g_);
      cells_.forget();
    });
    return loss;
  }

 private:
  static constexpr int64_t kAlign = 64;  // floats: 256 bytes

  template <class T>
  size_t bytes_of() const {
    return static_cast<size_t>(rows_) * sizeof(T);
  }

  template <class F>
  static void guarded(F&& f) {
    try {
      f();
    } catch (const naive::Failure& e) {
      throw ConvergeError(5, fmt::format("LSTM: {}", e.status.reason));
    } catch (const DeviceError& e) {
      throw ConvergeError(5, fmt::format("LSTM: {}", e.what()));
    }
  }

  float* w(int64_t at) const { return w_.as<float>() + at; }
  float* g(int64_t at) const { return g_.as<float>() + at; }

  // A class that only fills up has a logit that no softmax sees.
  void upload_weights(const Floats& flat) {
    constexpr float kNever = -1e30f;
    Floats image(static_cast<size_t>(total_), 0.0f);
    const auto copy = [&](int64_t from, int64_t count, int64_t to) {
      std::copy_n(flat.begin() + from, count, image.begin() + to);
    };
    copy(layout_.embedding, layout_.vocabulary * layout_.embedding_width, 0);
    copy(layout_.head, layout_.vocabulary * layout_.hidden, head_at_);
    copy(layout_.head_bias, layout_.vocabulary, bias_at_);
    std::fill(image.begin() + bias_at_ + layout_.vocabulary, image.begin() + bias_at_ + classes_,
              kNever);
    const std::vector<int64_t>& places = cells_.places();
    for (size_t i = 0; i < places.size(); ++i)
      image[static_cast<size_t>(cells_at_ + places[i])] =
          flat[static_cast<size_t>(layout_.layers.front().input) + i];
    device_upload(w_.data(), image.data(), w_.bytes());
  }

  // Weights or gradients in the order of LstmLayout.
  Floats flat(const DeviceBuffer& buffer) const {
    Floats image(static_cast<size_t>(total_)), flat(static_cast<size_t>(layout_.total));
    device_download(image.data(), buffer.data(), buffer.bytes());
    const auto copy = [&](int64_t from, int64_t count, int64_t to) {
      std::copy_n(image.begin() + from, count, flat.begin() + to);
    };
    copy(0, layout_.vocabulary * layout_.embedding_width, layout_.embedding);
    copy(head_at_, layout_.vocabulary * layout_.hidden, layout_.head);
    copy(bias_at_, layout_.vocabulary, layout_.head_bias);
    const std::vector<int64_t>& places = cells_.places();
    for (size_t i = 0; i < places.size(); ++i)
      flat[static_cast<size_t>(layout_.layers.front().input) + i] =
          image[static_cast<size_t>(cells_at_ + places[i])];
    return flat;
  }

  // logits = bias + y head^T, dy = dlogits head, dhead = dlogits^T y.
  Gemm logits_of_y() const {
    Gemm p =
        product(rows_, classes_, layout_.hidden, y_.as<float>(), w(head_at_), logits_.as<float>());
    p.transpose_b = true;
    p.ldb = layout_.hidden;
    p.beta = 1.0f;
    return p;
  }
  Gemm gradient_of_y() const {
    return product(rows_, layout_.hidden, classes_, logits_.as<float>(), w(head_at_),
                   dy_.as<float>());
  }
  Gemm gradient_of_head() const {
    Gemm p =
        product(classes_, layout_.hidden, rows_, logits_.as<float>(), y_.as<float>(), g(head_at_));
    p.transpose_a = true;
    p.lda = classes_;
    return p;
  }
  void multiply(const Gemm& p) const {
    require(gemm(p, {gemm_scratch_.data(), gemm_scratch_.bytes()}, nullptr), "LSTM: product");
  }

  cross_entropy::ForwardBackward<F32> loss_args() const {
    const int64_t* const target = target_.as<int64_t>();
    cross_entropy::ForwardBackward<F32> a;
    a.logits = view(logits_.as<float>(), rows_, classes_);
    a.target = view(target, rows_);
    a.loss = view(one_.as<float>(), 1);
    a.lse = view(lse_.as<float>(), rows_);
    a.scratch = {loss_scratch_.data(), loss_scratch_.bytes()};
    return a;
  }

  // Up to y; the steps of the window.
  std::vector<LaneStep> forward(const Lanes& lanes, int64_t step) {
    std::vector<LaneStep> steps;
    for (int t = 0; t < s_.window; ++t)
      for (int lane = 0; lane < s_.lanes; ++lane) {
        steps.push_back(lanes.at(lane, step + t));
        if (t == 0 && steps.back().fresh) cells_.forget(lane);
      }
    Batch batch;
    for (const LaneStep& at : steps) {
      batch.input.push_back(at.input);
      batch.target.push_back(at.target >= 0 ? at.target : kIgnored);
    }
    batch.list_equal_tokens();
    const auto send = [](const DeviceBuffer& to, const auto& from) {
      device_upload(to.data(), from.data(), from.size() * sizeof(from[0]));
    };
    send(input_, batch.input);
    send(target_, batch.target);
    send(order_, batch.order);
    send(first_, batch.first);
    require(gather_rows<float>(w(0), input_.as<int64_t>(), x_.as<float>(), rows_,
                               layout_.embedding_width, nullptr),
            "LSTM: embedding");
    cells_.forward(w(cells_at_), x_.as<float>(), y_.as<float>());
    return steps;
  }

  double window(const Lanes& lanes, int64_t step, int64_t count) {
    forward(lanes, step);
    require(gather_rows<float>(w(bias_at_), zeros_.as<int64_t>(), logits_.as<float>(), rows_,
                               classes_, nullptr),
            "LSTM: bias");
    multiply(logits_of_y());
    require(cross_entropy::forward_backward(loss_args(), nullptr), "LSTM: loss");
    multiply(gradient_of_head());
    multiply(gradient_of_y());
    require(sum_rows<float>(logits_.as<float>(), rows_, classes_, g(bias_at_), nullptr),
            "LSTM: gradient of the bias");
    cells_.backward(w(cells_at_), x_.as<float>(), y_.as<float>(), dy_.as<float>(), dx_.as<float>(),
                    g(cells_at_));
    cells_.carry();
    device_fill(g(0), 0, static_cast<size_t>(cells_at_) * sizeof(float));
    require(scatter_rows<float>({dx_.as<float>(), input_.as<int64_t>(), order_.as<int32_t>(),
                                 first_.as<int32_t>(), g(0), rows_, layout_.embedding_width},
                                nullptr),
            "LSTM: gradient of the embedding");
    float loss = 0;
    device_download(&loss, one_.data(), sizeof loss);
    return static_cast<double>(loss) * static_cast<double>(count);
  }

  void update(double rate) {
    using namespace lstm_adam;
    float* const square = one_.as<float>() + 1;
    require(sum_of_squares<float>(g(0), total_, partial_.as<float>(), square, nullptr),
            "LSTM: gradient norm");
    const auto t = static_cast<double>(++updates_);
    AdamW<float> a{};
    a.square_norm = square;
    a.clip = static_cast<float>(s_.clip);
    a.beta1 = kBeta1;
    a.beta2 = kBeta2;
    a.eps = kEps;
    const auto correction1 = static_cast<float>(1.0 / (1.0 - std::pow(kBeta1, t)));
    const auto correction2 = static_cast<float>(1.0 / (1.0 - std::pow(kBeta2, t)));
    const float schedule[2 * kSchedule] = {
        static_cast<float>(rate),          correction1, correction2,
        static_cast<float>(kDense * rate), correction1, correction2};
    device_upload(schedule_.data(), schedule, sizeof schedule);
    const float *const common = schedule_.as<float>(), *const dense = common + kSchedule;
    const auto range = [&](int64_t begin, int64_t end, const float* of_range) {
      a.weight = a.master = w(begin);
      a.gradient = g(begin);
      a.m = m_.as<float>() + begin;
      a.v = v_.as<float>() + begin;
      a.n = end - begin;
      a.schedule = of_range;
      require(adamw(a, nullptr), "LSTM: Adam");
    };
    range(0, cells_at_, common);
    range(cells_at_, head_at_, dense);
    range(head_at_, total_, common);
  }

  LstmSettings s_;
  LstmLayout layout_;
  int64_t classes_, rows_;
  CudnnCells cells_;
  int64_t cells_at_, head_at_, bias_at_, total_;  // in the flat array
  int64_t updates_ = 0;
  DeviceBuffer w_, g_, m_, v_;
  DeviceBuffer x_, dx_, y_, dy_, logits_, lse_, one_, partial_, schedule_, input_, target_, zeros_,
      order_, first_, loss_scratch_, gemm_scratch_;
};

}  // namespace

std::unique_ptr<LstmPredictor> cudnn_lstm(int32_t vocabulary, const LstmSettings& settings) {
  if (settings.align != settings.window)
    throw ConvergeError(2, "LSTM: on a GPU learners must begin with a window");
  try {
    return std::make_unique<CudnnLstm>(vocabulary, settings);
  } catch (const naive::Failure& e) {
    throw ConvergeError(5, fmt::format("LSTM: {}", e.status.reason));
  } catch (const DeviceError& e) {
    throw ConvergeError(5, fmt::format("LSTM: {}", e.what()));
  }
}

}  // namespace tigon::convergence::next_action
