// Words for what is found: numbers, names and sentences, one line each and safe to print. Decides nothing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lab/fleet/judge/table.h"

namespace weir::fleet {

std::string grouped(double number);     // 1,410
std::string share_text(double effect);  // "6.1 % below", "12 % above"
// Text of a document, made safe for one line and shortened.
std::string plain_fact(std::string_view text);
// "node7 cuda:3 (1320224)": the serial number where it has one.
std::string name_of_device(const DeviceRow& row);
// "400 devices", "1 device"
std::string counted_devices(std::size_t count);
// "node1, node2, node3 and 5 more"
std::string first_names(const std::vector<std::string>& names, std::size_t most = 3);

}  // namespace weir::fleet
