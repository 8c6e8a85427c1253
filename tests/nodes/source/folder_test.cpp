#include "nodes/source/folder.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/folder.hpp"

using namespace sluice;
namespace fs = std::filesystem;

namespace {

// A tree of empty files that is gone after the test.
class Tree {
 public:
  Tree& file(const std::string& relative) {
    fs::create_directories((folder_.path() / relative).parent_path());
    std::ofstream(folder_.path() / relative).put('x');
    return *this;
  }
  Tree& folder(const std::string& relative) {
    fs::create_directories(folder_.path() / relative);
    return *this;
  }
  [[nodiscard]] const fs::path& path() const { return folder_.path(); }
  [[nodiscard]] Result<ImageFolder> scan(const FolderOptions& options = {}) const {
    return ImageFolder::scan(folder_.path().string(), options);
  }
  [[nodiscard]] std::vector<std::string> images(const FolderOptions& options = {}) const {
    const Result<ImageFolder> folder = scan(options);
    REQUIRE(folder);
    std::vector<std::string> found;
    for (std::size_t i = 0; i < folder->size(); ++i)
      found.push_back(std::to_string(folder->label(i)) + " " +
                      fs::path(folder->path(i)).lexically_relative(folder_.path()).string());
    return found;
  }
  [[nodiscard]] std::string failure(const FolderOptions& options = {}) const {
    const Result<ImageFolder> folder = scan(options);
    REQUIRE_FALSE(folder);
    return folder.error().text();
  }

 private:
  test::TemporaryFolder folder_;
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("classes and files are in byte order, endings in either case, other files left out") {
  Tree tree;
  tree.file("b/2.JPEG").file("b/10.jpg").file("b/1.jpe").file("a/x.Jpeg").file("B/y.JPG");
  tree.file("a/notes.txt").file("a/.hidden.jpg").file(".cache/z.jpg").file("a/deep/z.jpg").file("readme.txt");
  CHECK(tree.images() == Names{"0 B/y.JPG", "1 a/x.Jpeg", "2 b/1.jpe", "2 b/10.jpg", "2 b/2.JPEG"});
  CHECK(tree.scan()->class_names() == Names{"B", "a", "b"});
}

TEST_CASE("symlinks to folders and files are followed, broken ones ignored") {
  Tree elsewhere, tree;
  elsewhere.file("real/1.jpg").file("2.jpg");
  tree.file("a/0.jpg");
  fs::create_directory_symlink(elsewhere.path() / "real", tree.path() / "b");
  fs::create_symlink(elsewhere.path() / "2.jpg", tree.path() / "a" / "2.jpg");
  fs::create_symlink(elsewhere.path() / "nowhere.jpg", tree.path() / "a" / "3.jpg");
  CHECK(tree.images() == Names{"0 a/0.jpg", "0 a/2.jpg", "1 b/1.jpg"});
}

TEST_CASE("exclude takes paths and patterns; a class it empties keeps its label") {
  Tree tree;
  tree.file("a/1.jpg").file("a/2.jpg").file("b/1.jpg").file("b/[x].jpg").file("c/1.jpg");
  CHECK(tree.images({.exclude = {"a/2.jpg"}}) == Names{"0 a/1.jpg", "1 b/1.jpg", "1 b/[x].jpg", "2 c/1.jpg"});
  CHECK(tree.images({.exclude = {"b/*"}}) == Names{"0 a/1.jpg", "0 a/2.jpg", "2 c/1.jpg"});
  CHECK(tree.images({.exclude = {"*/1.jpg", "b/[x].jpg"}}) == Names{"0 a/2.jpg"});
  CHECK(has(tree.failure({.exclude = {"*/*"}}), "data.exclude leaves no image"));
  CHECK(has(tree.failure({.exclude = {"1.jpg"}}), "class/file"));
}

TEST_CASE("per_class takes the first of each class, after exclude") {
  Tree tree;
  tree.file("a/1.jpg").file("a/2.jpg").file("a/3.jpg").file("b/1.jpg");
  CHECK(tree.images({.exclude = {"a/1.jpg"}, .per_class = 1}) == Names{"0 a/2.jpg", "1 b/1.jpg"});
}

TEST_CASE("a subset of classes is fixed by its seed and sorted") {
  Tree tree;
  for (int i = 0; i < 30; ++i) tree.file(std::to_string(100 + i) + "/1.jpg");
  const auto subset = [&](std::size_t count, std::uint64_t seed) {
    const Result<ImageFolder> folder = tree.scan({.classes = count, .subset_seed = seed});
    REQUIRE(folder);
    return folder->class_names();
  };
  const Names ten = subset(10, 42);
  CHECK(ten.size() == 10);
  CHECK(std::ranges::is_sorted(ten));
  CHECK(std::ranges::adjacent_find(ten) == ten.end());
  CHECK(ten == subset(10, 42));
  CHECK(ten != subset(10, 43));
  CHECK(subset(30, 1) == tree.scan()->class_names());
  CHECK(has(tree.failure({.classes = 31}), "asks for 31 classes, there are 30"));
}

TEST_CASE("a validation tree must have the training tree's classes") {
  Tree tree;
  tree.file("a/1.jpg").file("b/1.jpg").file("c/1.jpg");
  CHECK(tree.images({.expect = {"a", "b", "c"}}).size() == 3);
  const std::string text = tree.failure({.expect = {"a", "c", "d", "e"}});
  CHECK(has(text, "missing (2): d, e"));
  CHECK(has(text, "surplus (1): b"));
  CHECK(tree.images({.classes = 2, .expect = {"a", "c"}}) == Names{"0 a/1.jpg", "1 c/1.jpg"});
  CHECK(has(tree.failure({.classes = 2, .expect = {"a", "d"}}), "missing (1): d"));
  Names many;
  for (int i = 0; i < 9; ++i) many.push_back(std::to_string(i) + "m");
  CHECK(has(tree.failure({.expect = many}), "missing (9): 0m, 1m, 2m, 3m, 4m and 4 more"));
}

TEST_CASE("what is wrong with a tree is said") {
  Tree tree;
  CHECK(has(ImageFolder::scan(tree.path() / "nowhere", {}).error().text(), "No such file or directory"));
  tree.file("loose.jpg");
  CHECK(has(ImageFolder::scan(tree.path() / "loose.jpg", {}).error().text(), "Not a directory"));
  CHECK(has(tree.failure(), "no class folders, but images directly in it"));
  CHECK(has(Tree().failure(), "no class folders; expected"));

  Tree wrong;
  wrong.file("a/1.PNG").file("a/2.png").file("b/list");
  CHECK(has(wrong.failure(), "found: no ending (1), .png (2)"));
  Tree bare;
  bare.folder("a");
  CHECK(has(bare.failure(), "no images in any class folder; they are empty"));

  Tree gap;
  gap.file("a/1.jpg").folder("b").file("c/x.txt");
  CHECK(has(gap.failure(), "class folders without images: b, c"));
}

TEST_CASE("the index takes the names' bytes, five more per file, and a little per class") {
  Tree tree;
  for (int i = 0; i < 1000; ++i) tree.file("class/image" + std::to_string(1000 + i) + ".JPEG");
  const Result<ImageFolder> folder = tree.scan();
  REQUIRE(folder);
  const std::size_t names = 1000 * (std::string("image1000.JPEG").size() + 5);
  CHECK(folder->index_bytes() > names);
  CHECK(folder->index_bytes() < names + 1000);
}
