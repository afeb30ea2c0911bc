#!/bin/sh
# Keeps jobs' containers from link-local addresses, where a cloud's metadata service gives out the machine's own
# rights, from the networks that are named, and from one another:  sudo sh hub_config/egress.sh [NETWORK ...]
#
# Run this after each start of the machine; what is there already is not added again. The rules are in the table
# mangle: Docker opens DOCKER-USER for milliseconds whenever it makes a network. Jobs' networks are bridges named
# pai-..., those of older versions and of others br-...; what stays within one, and the storage at this machine's own
# address, is not concerned.
set -eu
keep_from() {
  iptables -w -t mangle -C FORWARD "$@" -j DROP 2>/dev/null || iptables -w -t mangle -I FORWARD "$@" -j DROP
}
keep_from -i pai-+ -o pai-+ -m physdev ! --physdev-is-bridged
keep_from -i pai-+ -o docker0
for network in 169.254.0.0/16 "$@"; do
  for bridge in pai-+ br-+; do
    keep_from -i "$bridge" ! -o "$bridge" -d "$network"
  done
done
