#include "base/files/fresh.hpp"

#include <doctest/doctest.h>

#include "tests/support/folder.hpp"

using namespace sluice;
using namespace sluice::test;
namespace fs = std::filesystem;

TEST_CASE("fresh: nothing that is there already is opened, a planted link least of all") {
  const TemporaryFolder folder;
  write_file(folder / "precious", "mine");
  write_file(folder / "file", "there");
  fs::create_symlink(folder / "precious", folder / "link");
  fs::create_symlink(folder / "nowhere", folder / "dangling");
  for (const char* name : {"file", "link", "dangling"}) {
    CAPTURE(name);
    const OpenedFile opened = create_fresh(folder / name);
    CHECK(opened.fd < 0);
    CHECK(opened.error == EEXIST);
  }
  CHECK(read_text(folder / "precious") == "mine");
  CHECK_FALSE(fs::exists(folder / "nowhere"));
  const Descriptor made(create_fresh(folder / "new").fd);
  CHECK(made.get() >= 0);
}

TEST_CASE("fresh: a text is swapped in whole, and a link planted at the temporary name is not followed") {
  const TemporaryFolder folder;
  write_file(folder / "precious", "mine");
  write_file(folder / "graph.dot", "old");
  fs::create_symlink(folder / "precious", folder / ".new");
  CHECK(swap_text(folder / "graph.dot", folder / ".new", "digraph {}"));
  CHECK(read_text(folder / "graph.dot") == "digraph {}");
  CHECK(fs::is_regular_file(fs::symlink_status(folder / "graph.dot")));
  CHECK(read_text(folder / "precious") == "mine");
  CHECK_FALSE(fs::exists(fs::symlink_status(folder / ".new")));
  // What cannot be put aside leaves the old text.
  fs::create_directories(folder / ".new" / "x");
  CHECK_FALSE(swap_text(folder / "graph.dot", folder / ".new", "digraph { a }"));
  CHECK(read_text(folder / "graph.dot") == "digraph {}");
}
