// Where a process listens for TCP connections, as the kernel tells it.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace sluice::test {

// "127.0.0.1:29500", "[::]:29500" or, of any other IPv6 address, its digits in the kernel's order.
inline std::vector<std::string> listeners(pid_t process) {
  namespace fs = std::filesystem;
  const fs::path proc = fs::path("/proc") / std::to_string(process);
  std::set<std::string> inodes;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(proc / "fd", error)) {
    const std::string target = fs::read_symlink(entry.path(), error).string();  // "socket:[123]"
    if (target.starts_with("socket:[")) inodes.insert(target.substr(8, target.size() - 9));
  }
  const auto readable = [](const std::string& text) {  // "0100007F:733C"
    const std::size_t colon = text.find(':');
    const std::string port = std::to_string(std::stoul(text.substr(colon + 1), nullptr, 16));
    const std::string digits = text.substr(0, colon);
    if (digits.size() == 8) {
      const unsigned long address = std::stoul(digits, nullptr, 16);
      std::string dotted;
      for (int i = 0; i < 4; ++i) dotted += (i == 0 ? "" : ".") + std::to_string((address >> (8 * i)) & 255U);
      return dotted + ":" + port;
    }
    if (digits == std::string(32, '0')) return "[::]:" + port;
    if (digits == std::string(24, '0') + "01000000") return "[::1]:" + port;
    return "[" + digits + "]:" + port;
  };
  std::vector<std::string> found;
  for (const char* table : {"tcp", "tcp6"}) {
    std::ifstream in(proc / "net" / table);
    std::string line;
    std::getline(in, line);  // the headings
    while (std::getline(in, line)) {
      std::istringstream words(line);
      std::string number, local, remote, state, skipped, inode;
      words >> number >> local >> remote >> state;
      for (int i = 0; i < 5; ++i) words >> skipped;  // queues, timer, retransmits, owner, timeout
      words >> inode;
      if (state == "0A" && inodes.contains(inode)) found.push_back(readable(local));
    }
  }
  return found;
}

}  // namespace sluice::test
