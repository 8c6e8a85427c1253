#include "base/files/regular.hpp"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <sstream>

#include "tests/support/folder.hpp"
#include "tests/support/watchdog.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

// A socket that somebody listens on.
int listen_on(const std::string& path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  REQUIRE(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(listen(fd, 1) == 0);
  return fd;
}

std::string cause(const OpenedFile& file) {
  const Descriptor closed(file.fd);
  return file.fd < 0 ? file.cause() : "";
}

}  // namespace

TEST_CASE("regular file: what is none is named and never waited for") {
  const Watchdog watchdog("opening");
  const TemporaryFolder folder;
  const std::string fifo = folder / "fifo", bound = folder / "socket", link = folder / "link",
                    plain = folder / "plain";
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  const Descriptor listening(listen_on(bound));
  std::filesystem::create_symlink("fifo", link);
  write_file(plain, std::string("text"));

  CHECK(cause(open_regular(plain.c_str())).empty());
  CHECK(cause(open_regular(fifo.c_str())) == "is a FIFO, not a file");
  CHECK(cause(open_regular(link.c_str())) == "is a FIFO, not a file");
  CHECK(cause(open_regular(bound.c_str())) == "is a socket, not a file");
  CHECK(cause(open_regular("/dev/zero")) == "is a device, not a file");
  CHECK(cause(open_regular(folder.path().c_str())) == "is a folder, not a file");
  CHECK(cause(open_regular((folder / "none").c_str())) == "No such file or directory");

  CHECK(cause(open_stream(plain.c_str())).empty());
  CHECK(cause(open_stream(fifo.c_str())).empty());
  CHECK(cause(open_stream("/dev/zero")).empty());
  CHECK(cause(open_stream(bound.c_str())) == "is a socket, not a file");
  CHECK(cause(open_stream(folder.path().c_str())) == "is a folder, not a file");

  for (const int flags : {O_WRONLY, O_RDWR | O_APPEND, O_WRONLY | O_CREAT | O_TRUNC}) {
    CHECK(cause(open_for_writing(plain.c_str(), flags)).empty());
    CHECK(cause(open_for_writing("/dev/null", flags)).empty());
    CHECK(cause(open_for_writing(fifo.c_str(), flags)) == "is a FIFO, not a file");
    CHECK(cause(open_for_writing(bound.c_str(), flags)) == "is a socket, not a file");
  }
  // A FIFO with a reader would open, and break or block later.
  const Descriptor reader(open(fifo.c_str(), O_RDONLY | O_NONBLOCK));
  CHECK(cause(open_for_writing(fifo.c_str(), O_WRONLY | O_APPEND)) == "is a FIFO, not a file");
}

TEST_CASE("regular file: opened as it was asked for, and no longer without waiting") {
  const TemporaryFolder folder;
  const std::string plain = folder / "plain";
  const OpenedFile file = open_for_writing(plain.c_str(), O_RDWR | O_CREAT | O_APPEND);
  const Descriptor owner(file.fd);
  CHECK((fcntl(file.fd, F_GETFL) & (O_NONBLOCK | O_APPEND | O_ACCMODE)) == (O_APPEND | O_RDWR));
  CHECK(fcntl(file.fd, F_GETFD) == FD_CLOEXEC);
}

TEST_CASE("regular file: as a stream, line by line and whole") {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += std::to_string(i) + "\n";
  write_file(folder / "x", text);
  InputFile in(folder / "x");
  std::string line;
  int lines = 0;
  while (std::getline(in, line) && line == std::to_string(lines)) ++lines;
  CHECK(lines == 20'000);
  InputFile again(folder / "x");
  std::ostringstream whole;
  whole << again.rdbuf();
  CHECK(whole.str() == text);
  InputFile none(folder / "none");
  CHECK(none.missing());
  CHECK_FALSE(none);
  CHECK_FALSE(std::getline(none, line));
}
