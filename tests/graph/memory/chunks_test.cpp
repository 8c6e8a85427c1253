#include "graph/memory/chunks.hpp"

#include <doctest/doctest.h>

#include <set>

using namespace sluice;

TEST_CASE("chunks: credit is granted, trimmed and given back; memory follows it") {
  Ledger ledger(10 * ChunkPool::chunk_bytes);
  Account& account = ledger.open("read-ahead", 10 * ChunkPool::chunk_bytes);
  int told = 0;
  ChunkPool pool(10, account, [&] { ++told; });

  CHECK(pool.try_grant(4));
  CHECK(pool.try_grant(4));
  CHECK_FALSE(pool.try_grant(4));
  CHECK(account.held() == 8 * ChunkPool::chunk_bytes);

  std::vector<std::uint8_t*> file;
  pool.take(3, file);
  pool.give_back_credit(1);  // the first file needed three of its four
  CHECK(told == 1);
  CHECK(pool.granted() == 7);
  CHECK_FALSE(pool.try_grant(4));
  CHECK(pool.try_grant(3));
  CHECK(pool.granted() == 10);

  CHECK(std::set<std::uint8_t*>(file.begin(), file.end()).size() == 3);
  for (std::uint8_t* chunk : file)
    chunk[0] = chunk[ChunkPool::chunk_bytes - 1] = 7;  // ASan and the kernel object if not ours
  pool.give_back(file);
  CHECK(file.empty());
  CHECK(told == 2);
  CHECK(account.held() == 7 * ChunkPool::chunk_bytes);
}

TEST_CASE("chunks: more chunks than credit is a programming error") {
  Ledger ledger(2 * ChunkPool::chunk_bytes);
  ChunkPool pool(2, ledger.open("read-ahead", 2 * ChunkPool::chunk_bytes), [] {});
  std::vector<std::uint8_t*> file;
  CHECK_THROWS_AS(pool.take(3, file), std::logic_error);
}

TEST_CASE("chunks: how many a file needs") {
  CHECK(ChunkPool::chunks_for(0) == 0);
  CHECK(ChunkPool::chunks_for(1) == 1);
  CHECK(ChunkPool::chunks_for(ChunkPool::chunk_bytes) == 1);
  CHECK(ChunkPool::chunks_for(ChunkPool::chunk_bytes + 1) == 2);
}
