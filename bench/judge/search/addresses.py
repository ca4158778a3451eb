"""Where a page may come from: public addresses at the web's own ports, and networks that the settings name."""

import ipaddress
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

WEB_PORTS = frozenset({80, 443})
# IPv4 addresses as gateways to such networks write them (RFC 6052).
_NAT64 = IPv6Network("64:ff9b::/96")


def may_serve(text: str, port: int, named: Sequence[Network]) -> bool:
    """Whether a page may be fetched from this address; False also for what is no address."""
    try:
        address = _inner(ipaddress.ip_address(text.partition("%")[0]))
    except ValueError:
        return False
    if any(address in network for network in named):
        return True
    return address.is_global and not address.is_multicast and not address.is_reserved and port in WEB_PORTS


def _inner(address: Address) -> Address:
    """The IPv4 address that an IPv6 one stands for, which is what a connection would reach."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else address)
