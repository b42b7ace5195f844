//! Whether a file lies on a file system that other machines may write to as well.

use std::fs::File;

/// What `statfs` calls them. FUSE is among them because one cannot see what is behind it.
const NETWORKS: [u64; 15] = [
    0x6969,      // NFS
    0x517b,      // SMB
    0xfe53_4d42, // SMB 2
    0xff53_4d42, // CIFS
    0x0102_1997, // 9P
    0x5346_414f, // AFS
    0x6b41_4653, // AFS, the kernel's own
    0x7375_7245, // Coda
    0x00c3_6400, // Ceph
    0x0bd0_0bd0, // Lustre
    0x0116_1970, // GFS2
    0x7461_636f, // OCFS2
    0x4750_4653, // GPFS
    0x1983_0326, // BeeGFS
    0x6573_5546, // FUSE
];

pub(super) fn is_on_network(file: &File) -> bool {
    // Where it cannot be told, the kernel is believed, as on every local disk.
    rustix::fs::fstatfs(file).is_ok_and(|found| is_network(found.f_type))
}

/// The kernel's type is signed on some machines and short on others.
fn is_network(kind: impl TryInto<i128>) -> bool {
    let Ok(kind) = kind.try_into() else { return false };
    NETWORKS.iter().any(|it| i128::from(*it) == kind & 0xffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_of_this_machine_are_not_on_a_network() {
        for (kind, wanted) in [
            (0xef53_i64, false),  // ext4
            (0x9123_683e, false), // btrfs
            (0x0102_1994, false), // tmpfs
            (0x5846_5342, false), // XFS
            (0x6969, true),       // NFS
            (0xff53_4d42, true),  // CIFS
            (-0x00ac_b2be, true), // CIFS, where the number is signed and short
        ] {
            assert_eq!(is_network(kind), wanted, "{kind:x}");
        }
        assert!(!is_on_network(&File::open("/proc/self/stat").unwrap()));
    }
}
