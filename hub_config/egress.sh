#!/bin/sh
# Keeps jobs' containers from link-local addresses, where a cloud's metadata service gives out the machine's own
# rights, and from the networks that are named:  sudo sh hub_config/egress.sh [NETWORK ...]
#
# Docker asks the chain DOCKER-USER before its own rules, and leaves it alone. Run this once dockerd is up, after
# each start of the machine; what is there already is not added again. Jobs' networks are bridges named br-...;
# what stays within them, and the storage at this machine's own address, is not concerned.
set -eu
for network in 169.254.0.0/16 "$@"; do
  set -- -i br-+ ! -o br-+ -d "$network" -j REJECT --reject-with icmp-admin-prohibited
  iptables -w -C DOCKER-USER "$@" 2>/dev/null || iptables -w -I DOCKER-USER "$@"
done
