//! Distinguishes addresses of public servers from all others.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Networks that are not the public internet, by their first address and length.
///
/// From the special-purpose registries of IANA, without the few exceptions inside them.
const V4: [(Ipv4Addr, u32, &str); 15] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8, "this network"),
    (Ipv4Addr::new(10, 0, 0, 0), 8, "private"),
    (Ipv4Addr::new(100, 64, 0, 0), 10, "shared by a carrier's customers"),
    (Ipv4Addr::new(127, 0, 0, 0), 8, "loopback"),
    (Ipv4Addr::new(169, 254, 0, 0), 16, "link-local"),
    (Ipv4Addr::new(172, 16, 0, 0), 12, "private"),
    (Ipv4Addr::new(192, 0, 0, 0), 24, "reserved for protocols"),
    (Ipv4Addr::new(192, 0, 2, 0), 24, "for documentation"),
    (Ipv4Addr::new(192, 88, 99, 0), 24, "a relay to IPv6"),
    (Ipv4Addr::new(192, 168, 0, 0), 16, "private"),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "for benchmarks"),
    (Ipv4Addr::new(198, 51, 100, 0), 24, "for documentation"),
    (Ipv4Addr::new(203, 0, 113, 0), 24, "for documentation"),
    (Ipv4Addr::new(224, 0, 0, 0), 4, "multicast"),
    (Ipv4Addr::new(240, 0, 0, 0), 4, "reserved"),
];

const V6: [(Ipv6Addr, u32, &str); 14] = [
    (Ipv6Addr::UNSPECIFIED, 128, "unspecified"),
    (Ipv6Addr::LOCALHOST, 128, "loopback"),
    (Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96, "IPv4 in disguise"),
    (Ipv6Addr::new(0, 0, 0, 0, 0, 0, 0, 0), 96, "IPv4 in disguise"),
    (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96, "IPv4 behind NAT64"),
    (Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0), 48, "IPv4 behind NAT64"),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, "reserved for protocols"),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, "for documentation"),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, "IPv4 behind 6to4"),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, "for documentation"),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, "unique local"),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, "link-local"),
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, "site-local"),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, "multicast"),
];

/// The only part of IPv6 that is given out to the public.
const GLOBAL: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// What an address is, if it is not public.
pub(super) fn non_public_reason(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => {
            let inside =
                |net: Ipv4Addr, length| (address.to_bits() ^ net.to_bits()) >> (32 - length) == 0;
            V4.iter().find(|(net, length, _)| inside(*net, *length)).map(|(.., what)| *what)
        }
        IpAddr::V6(address) => {
            let inside =
                |net: Ipv6Addr, length| (address.to_bits() ^ net.to_bits()) >> (128 - length) == 0;
            let known = V6.iter().find(|(net, length, _)| inside(*net, *length));
            let reserved = (!inside(GLOBAL.0, GLOBAL.1)).then_some("reserved");
            known.map(|(.., what)| *what).or(reserved)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(what: Option<&str>, addresses: &[&str]) {
        for address in addresses {
            assert_eq!(non_public_reason(address.parse().expect("an address")), what, "{address}");
        }
    }

    #[test]
    fn public_addresses_are_public() {
        check(None, &["1.1.1.1", "8.8.8.8", "93.184.216.34", "223.255.255.255"]);
        // The neighbours of what is refused.
        check(None, &["9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.0.0.1"]);
        check(None, &["128.0.0.1", "169.253.0.1", "172.15.255.255", "172.32.0.0", "192.0.1.0"]);
        check(None, &["192.167.0.1", "192.169.0.1", "198.17.0.1", "198.20.0.1", "203.0.112.1"]);
        check(None, &["2606:4700::1111", "2a00:1450::1", "2001:200::1", "2001:4860::8888"]);
    }

    #[test]
    fn what_is_not_public_is_named() {
        check(Some("this network"), &["0.0.0.0", "0.1.2.3"]);
        check(Some("private"), &["10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255"]);
        check(Some("private"), &["192.168.0.1", "192.168.255.255"]);
        check(Some("shared by a carrier's customers"), &["100.64.0.1", "100.127.255.255"]);
        check(Some("loopback"), &["127.0.0.1", "127.255.255.255", "::1"]);
        check(Some("link-local"), &["169.254.169.254", "fe80::1", "febf::1"]);
        check(Some("reserved for protocols"), &["192.0.0.8", "2001::1", "2001:10::1"]);
        check(Some("for documentation"), &["192.0.2.1", "198.51.100.7", "203.0.113.9"]);
        check(Some("for documentation"), &["2001:db8::1", "3fff:fff::1"]);
        check(Some("a relay to IPv6"), &["192.88.99.1"]);
        check(Some("for benchmarks"), &["198.18.0.1", "198.19.255.255"]);
        check(Some("multicast"), &["224.0.0.1", "239.255.255.255", "ff02::1"]);
        check(Some("reserved"), &["240.0.0.1", "255.255.255.255", "4000::1", "8000::1", "100::1"]);
        check(Some("unspecified"), &["::"]);
        check(Some("IPv4 in disguise"), &["::ffff:127.0.0.1", "::ffff:8.8.8.8", "::10.0.0.1"]);
        check(Some("IPv4 behind NAT64"), &["64:ff9b::7f00:1", "64:ff9b:1::1"]);
        check(Some("IPv4 behind 6to4"), &["2002:7f00:1::"]);
        check(Some("unique local"), &["fc00::1", "fdff::1"]);
        check(Some("site-local"), &["fec0::1"]);
    }
}
