#include "graph/memory/ledger.hpp"

#include <doctest/doctest.h>

#include <stdexcept>
#include <thread>

using namespace sluice;

TEST_CASE("ledger: accounts cannot promise more than the budget") {
  Ledger ledger(100);
  ledger.open("a", 60);
  CHECK_THROWS_AS(ledger.open("b", 41), std::logic_error);
  CHECK_NOTHROW(ledger.open("b", 40));
  CHECK_THROWS_AS(ledger.open("c", 1), std::logic_error);
}

TEST_CASE("ledger: a charge past the bound throws and changes nothing") {
  Ledger ledger(100);
  Account& a = ledger.open("a", 60);
  a.charge(50);
  CHECK_THROWS_WITH(a.charge(11), doctest::Contains("a would hold 61 bytes, its bound is 60"));
  CHECK(a.held() == 50);
  CHECK(ledger.held() == 50);
  a.release(50);
  CHECK(ledger.held() == 0);
  CHECK(ledger.peak() == 50);
  CHECK_THROWS_AS(a.release(1), std::logic_error);
}

TEST_CASE("ledger: the peak is the most that was held at once, over all accounts and threads") {
  Ledger ledger(1000);
  Account &a = ledger.open("a", 500), &b = ledger.open("b", 500);
  const auto churn = [](Account& account) {
    for (int i = 0; i < 2000; ++i) {
      account.charge(100);
      account.release(100);
    }
  };
  a.charge(300);
  std::thread one([&] { churn(b); }), two([&] { churn(b); });
  one.join();
  two.join();
  CHECK(ledger.held() == 300);
  CHECK(ledger.peak() >= 400);
  CHECK(ledger.peak() <= 500);
  CHECK(b.peak() <= 200);
}
