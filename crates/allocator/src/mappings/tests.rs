//! Tests of mappings of the program's file, from text and from the kernel.

use super::*;

const SMAPS: &str = "\
55d0a000-55d0b000 r--p 00000000 fe:00 12                     /bin/some program
Rss:                   4 kB
Anonymous:             0 kB
55d0b000-55d0e000 r-xp 00001000 fe:00 12                     /bin/some program
Anonymous:             0 kB
55d0e000-55d0f000 r--p 00004000 fe:00 12                     /bin/some program
Anonymous:             4 kB
55d0f000-55d10000 rw-p 00005000 fe:00 12                     /bin/some program
Anonymous:             0 kB
7f000000-7f001000 r-xp 00000000 fe:00 13                     /lib/libc.so.6
Anonymous:             0 kB
7f001000-7f002000 r--p 00000000 00:00 0 
Anonymous:             0 kB
";

#[test]
fn only_unchanged_mappings_are_released() {
    let found = unchanged_in(SMAPS, Path::new("/bin/some program"));
    assert_eq!(found, [(0x55d0_a000, 0x1000), (0x55d0_b000, 0x3000)]);
    assert_eq!(unchanged_in("", Path::new("/bin/x")), []);
}

fn pages_of_files() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssFile:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn the_program_continues_after_releasing_its_pages() {
    assert!(!unchanged().is_empty());
    let before = pages_of_files();
    crate::release_program_pages();
    let after = pages_of_files();
    assert!(after < before, "{after} kB of {before} kB are left");
    assert_eq!(unchanged_in(SMAPS, Path::new("/lib/libc.so.6")).len(), 1);
}
