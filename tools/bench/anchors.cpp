// bench-anchors: time of the anchor scanner per 10,000 characters, one thread. In: a marked set (JSON Lines with `text`), its texts joined up to a size. Out: per
// language and in all: milliseconds per 10,000 characters (median and least of the repeats, CPU time of the thread), with the network and without it.
//   build/bin/bench-anchors [test/data/anchors/golden.jsonl] [repeats]
#include "runtime/tare_anchors.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

static double seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
}

int main(int argc, char **argv) {
  const char *path = argc > 1 ? argv[1] : "test/data/anchors/golden.jsonl";
  const int repeats = argc > 2 ? std::max(1, std::atoi(argv[2])) : 15;
  std::map<std::string, std::string> texts;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    auto one = nlohmann::json::parse(line, nullptr, false);
    if (one.is_discarded()) continue;
    for (std::string key : {std::string("all"), one["lang"].get<std::string>()}) texts[key] += one["text"].get<std::string>() + "\n\n";
  }
  if (texts.empty()) return std::fprintf(stderr, "bench-anchors: no texts in %s\n", path), 1;
  std::printf("%-8s %-10s %10s %10s %12s %14s\n", "texts", "network", "median ms", "least ms", "characters", "anchors/10k");
  for (auto &[name, once] : texts) {
    std::string text;
    while (text.size() < 2000000) text += once;
    for (int noNetwork : {0, 1}) {
      std::vector<double> times;
      tare_anchor_summary summary{};
      for (int k = 0; k < repeats; ++k) {
        tare_error error{};
        tare_anchor_options options{sizeof options, 0, noNetwork};
        const double begin = seconds();
        tare_anchors_t *anchors = tare_scan_anchors(text.data(), text.size(), &options, &error);
        const double end = seconds();
        if (!anchors) return std::fprintf(stderr, "bench-anchors: %s\n", error.message), 1;
        summary = *tare_anchors_summary(anchors);
        tare_anchors_destroy(anchors);
        times.push_back((end - begin) * 1e7 / double(summary.chars));
      }
      std::sort(times.begin(), times.end());
      std::printf("%-8s %-10s %10.3f %10.3f %12llu %14.0f\n", name.c_str(), noNetwork ? "no" : "yes", times[times.size() / 2], times[0], static_cast<unsigned long long>(summary.chars),
                  double(summary.anchors) * 1e4 / double(summary.chars));
    }
  }
  return 0;
}
