#include "run/launch/checklist.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

using namespace sluice;

TEST_CASE("checklist: warnings pass, one failure fails") {
  Checklist list;
  CHECK_FALSE(list.failed());
  list.ok("CPUs", "2 may be used");
  list.warn("huge pages", "switched off", "switch them on");
  CHECK_FALSE(list.failed());
  list.fail("disk", Error{"run folder", "/runs", "is full", "make room"});
  CHECK(list.failed());
  CHECK(list.lines().back().found == "run folder: /runs: is full");
  CHECK(list.lines().back().hint == "make room");
}

TEST_CASE("checklist: table and JSON tell the same") {
  Checklist list;
  list.ok("CPUs", "2 may be used");
  list.fail("device", "none", "buy one");
  CHECK(list.table() ==
        "ok       CPUs    2 may be used\n"
        "fail     device  none\n"
        "                 -> buy one\n");
  const nlohmann::json json = nlohmann::json::parse(list.json().dump());
  CHECK(json["ok"] == false);
  CHECK(json["checks"][0] == nlohmann::json{{"name", "CPUs"}, {"verdict", "ok"}, {"found", "2 may be used"}});
  CHECK(json["checks"][1]["hint"] == "buy one");
}
