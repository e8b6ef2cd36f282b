"""Where links in feeds and lookups may not lead: this machine, its network, the metadata of a cloud."""

import ipaddress
from typing import Any

import pytest

from podeval.datasets.http import is_public_address


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.8.9.1", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254"),
        *("100.64.0.1", "192.0.0.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"),
        *("::", "::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "fe80::1%eth0", "fc00::1"),
        *("168.63.129.16", "192.0.0.192", "192.0.0.9", "192.88.99.1", "100.100.100.200", "::ffff:168.63.129.16"),
        *(
            "3fff::1",
            "fd00:ec2::254",
            "fd20:ce::254",
            "5f00::1",
            "64:ff9b::a83f:8110",
            "64:ff9b:1::1",
            "2002:a83f:8110::1",
        ),
        *("fec0::1", "ff02::1", "2001:db8::1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2001:0::1"),
    ],
)
def test_no_way_of_writing_a_private_address_makes_it_public(address: str) -> None:
    assert not is_public_address(address)


SPECIAL = (
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24"),
    *("192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
    *("224.0.0.0/4", "240.0.0.0/4", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "fc00::/7", "fe80::/10"),
)
"""IANA's registries of special addresses, RFC 6890 and later."""


@pytest.mark.parametrize("network", [ipaddress.ip_network(each) for each in SPECIAL], ids=str)
def test_no_address_of_a_special_network_is_public(network: Any) -> None:
    addresses = (network[0], network[1], network[network.num_addresses // 2], network[-1])
    assert not any(is_public_address(str(address)) for address in addresses)


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "2a00:1450:4001::200e", "::ffff:8.8.8.8"])
def test_public_addresses_are_gone_to(address: str) -> None:
    assert is_public_address(address)
