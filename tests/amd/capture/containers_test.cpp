// Containers from the texts of cgroup files, as docker, podman and Kubernetes write them.
#include "amd/capture/containers.h"

#include <gtest/gtest.h>

namespace weir::amd {
namespace {

const std::string kId = "4f1c9a6e02b7d3584f1c9a6e02b7d3584f1c9a6e02b7d3584f1c9a6e02b7d358";
const std::string kOther = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

TEST(Containers, are_recognised_in_every_form_of_cgroup) {
  struct Case {
    std::string lines, runtime, cgroup;
  };
  for (const Case& each : {
           Case{"0::/system.slice/docker-" + kId + ".scope\n", "docker", "/system.slice/docker-" + kId + ".scope"},
           Case{"0::/docker/" + kId + "/init\n", "docker", "/docker/" + kId},
           Case{"12:memory:/docker/" + kId + "\n11:cpu,cpuacct:/docker/" + kId + "\n", "docker", ""},
           Case{"0::/machine.slice/libpod-" + kId + ".scope/container\n", "podman",
                "/machine.slice/libpod-" + kId + ".scope"},
           Case{"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + kId + ".scope\n", "podman",
                "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + kId + ".scope"},
           Case{"0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-" + kId + ".scope\n", "containerd",
                "/kubepods.slice/kubepods-pod1.slice/cri-containerd-" + kId + ".scope"},
           Case{"0::/kubepods/pod1/crio-" + kId + "\n", "cri-o", "/kubepods/pod1/crio-" + kId},
           Case{"0::/kubepods/pod1/" + kId + "\n", "", "/kubepods/pod1/" + kId},
           Case{"0::/../docker-" + kId + ".scope\n", "docker", ""},
       }) {
    const std::vector<Container> found = containers_in(each.lines);
    ASSERT_EQ(found.size(), 1U) << each.lines;
    EXPECT_EQ(found[0].id, kId) << each.lines;
    EXPECT_EQ(found[0].runtime, each.runtime) << each.lines;
    EXPECT_EQ(found[0].cgroup, each.cgroup) << each.lines;
  }
}

TEST(Containers, one_may_be_in_another) {
  const auto found = containers_in("0::/docker/" + kId + "/libpod_parent/libpod-" + kOther + "\n");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].id, kId);
  EXPECT_EQ(found[0].cgroup, "/docker/" + kId);
  EXPECT_EQ(found[1].id, kOther);
  EXPECT_EQ(found[1].runtime, "podman");
}

TEST(Containers, others_are_none) {
  for (const std::string& lines :
       {std::string("0::/user.slice/user-1000.slice/session-2.scope\n"), std::string("0::/\n"), std::string(""),
        "0::/machine.slice/libpod-conmon-" + kId + ".scope\n", "0::/docker/" + kId.substr(1) + "\n",
        std::string("nonsense"), "0::/docker/" + std::string(64, 'G') + "\n"})
    EXPECT_TRUE(containers_in(lines).empty()) << lines;
}

}  // namespace
}  // namespace weir::amd
