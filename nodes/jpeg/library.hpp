// Which libjpeg-turbo the process has loaded. nodes/jpeg/huffman puts a function of its own into a table that
// libjpeg-turbo keeps for itself, so it must know that the table is the one it was written for: the headers
// tell that when it is built, this tells it when it runs.
#pragma once

#include <string>
#include <string_view>

namespace sluice {

// Versions whose `jpeg_entropy_decoder` (jpegint.h) and calls of `decode_mcu` (jdcoefct.c, jdapistd.c) were
// read: 2.1.0 to 2.1.5, as LIBJPEG_TURBO_VERSION_NUMBER counts them. 2.1.90 and later are betas of 3.0.
constexpr int oldest_checked_libjpeg = 2'001'000, newest_checked_libjpeg = 2'001'005;

// Of a version as libjpeg-turbo writes it: "2.1.5". False for whatever cannot be read as one.
[[nodiscard]] bool is_checked_libjpeg(std::string_view version);

// The first "libjpeg-turbo version X" with a number X in these bytes: X, or "" if there is none.
[[nodiscard]] std::string_view find_libjpeg_version(std::string_view bytes);

// The version of the loaded library, from its own text; "" if it does not tell. Looks once.
[[nodiscard]] const std::string& loaded_libjpeg();

}  // namespace sluice
