/* kernel: gelu
   outcome: solved

   Classes with virtual functions, a virtual base, dynamic_cast and typeid, made and destroyed within the call. */
#include <cmath>
#include <cstdint>
#include <memory>
#include <numbers>
#include <typeinfo>
#include <vector>

struct Step {
  virtual ~Step() = default;
  virtual double of(double x) const = 0;
};
struct Named : virtual Step {
  virtual const char *name() const { return "step"; }
};
struct Half final : Named {
  double of(double x) const override { return x / 2; }
};
struct Bell : Named {
  double of(double x) const override { return 1 + std::erf(x / std::numbers::sqrt2); }
};
struct Told : Bell {
  const char *name() const override { return "bell"; }
};

extern "C" void gelu(const float *x, float *out, int64_t n) {
  std::vector<std::unique_ptr<Step>> steps;
  steps.push_back(std::make_unique<Half>());
  steps.push_back(std::make_unique<Told>());
  const Step &last = *steps.back();
  if (!dynamic_cast<const Bell *>(steps[1].get()) || typeid(last) != typeid(Told)) return;
  for (int64_t i = 0; i < n; i++) {
    double product = 1;
    for (const auto &step : steps) product *= step->of(x[i]);
    out[i] = static_cast<float>(product);
  }
}
