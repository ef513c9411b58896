//! The calls that no command needs.

use super::Rules;

/// Calls that are not allowed, whatever their arguments.
pub(super) const REFUSED: [i64; 48] = [
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    // Other views of the file system, and ways around paths.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_unshare,
    libc::SYS_setns,
    // The kernel itself.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    KEXEC_FILE_LOAD,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_nfsservctl,
    // The machine.
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
];

/// Calls that change permissions, owners, times and attributes of files by their names.
#[cfg(target_arch = "x86_64")]
pub(super) const ATTRIBUTES: [i64; 16] = [
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    SETXATTRAT,
    REMOVEXATTRAT,
    FILE_SETATTR,
];
#[cfg(not(target_arch = "x86_64"))]
pub(super) const ATTRIBUTES: [i64; 10] = [
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    SETXATTRAT,
    REMOVEXATTRAT,
    FILE_SETATTR,
];

// These have one number on every machine.
const FCHMODAT2: i64 = 452;
const SETXATTRAT: i64 = 463;
const REMOVEXATTRAT: i64 = 466;
const FILE_SETATTR: i64 = 469;

/// Calls that send signals, or open a process to do so, by its number in the first argument.
pub(super) const SIGNALS: [i64; 6] = [
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_open,
];

/// Calls that a filter cannot look into; programs do without them.
pub(super) const UNKNOWN: [i64; 4] = [
    libc::SYS_clone3,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

#[cfg(target_arch = "x86_64")]
const KEXEC_FILE_LOAD: i64 = 320;
#[cfg(not(target_arch = "x86_64"))]
const KEXEC_FILE_LOAD: i64 = 294;

/// On this machine a call may have further numbers: those of x32 carry a bit of their own, and
/// some calls have a second number there. A few more calls exist nowhere else.
#[cfg(target_arch = "x86_64")]
pub(super) fn with_other_numbers(rules: &mut Rules) {
    const X32: i64 = 0x4000_0000;
    /// `ioctl`, `ptrace`, `kexec_load`, `process_vm_readv`, `process_vm_writev`, and two for signals.
    const TWICE: [(i64, i64); 7] = [
        (libc::SYS_ioctl, 514),
        (libc::SYS_ptrace, 521),
        (libc::SYS_kexec_load, 528),
        (libc::SYS_process_vm_readv, 539),
        (libc::SYS_process_vm_writev, 540),
        (libc::SYS_rt_sigqueueinfo, 524),
        (libc::SYS_rt_tgsigqueueinfo, 536),
    ];
    if rules.contains_key(&libc::SYS_reboot) {
        rules.extend([libc::SYS_iopl, libc::SYS_ioperm].map(|call| (call, Vec::new())));
    }
    let second: Vec<_> = TWICE
        .iter()
        .filter_map(|(call, number)| Some((*number, rules.get(call)?.clone())))
        .collect();
    let x32: Vec<_> = rules
        .iter()
        .chain(second.iter().map(|(call, rules)| (call, rules)))
        .map(|(call, rules)| (call | X32, rules.clone()))
        .collect();
    rules.extend(x32);
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn with_other_numbers(_rules: &mut Rules) {}
