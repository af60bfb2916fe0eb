//! Amount of memory a run can have on this computer. Bytes.
//!
//! The least of what the system says that programs can still have without swapping, of what is left
//! to each control group of this process (a container's, a batch job's), and of what `ulimit -v`
//! leaves of its address space. All are of Linux; elsewhere it is not known. Called by
//! [`super::memory::available`].

use std::fs;
use std::path::Path;

/// Memory a run can have; `None` where the system does not say.
pub fn here() -> Option<u64> {
    let system = Path::new("/");
    let sources = [in_all(system), in_groups(system), of_addresses(system)];
    sources.into_iter().flatten().min()
}

/// Memory that programs can still have without swapping, below `/` at `root`.
fn in_all(root: &Path) -> Option<u64> {
    kibibytes_of("MemAvailable", &read(&root.join("proc/meminfo"))?)
}

/// Memory left to the control groups of this process: the least of any, enclosing ones included.
fn in_groups(root: &Path) -> Option<u64> {
    let groups = read(&root.join("proc/self/cgroup"))?;
    let left = groups.lines().filter_map(|line| {
        // Hierarchy, its controllers, the group's path.
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let files = match controllers {
            "" => &UNIFIED,
            _ if controllers.split(',').any(|name| name == "memory") => &LEGACY,
            _ => return None,
        };
        let top = root.join(files.top);
        // What a container sees at the top may be its own group, whose path is the host's and leads
        // nowhere.
        let group = top.join(path.trim_start_matches('/'));
        let around = group
            .ancestors()
            .take_while(|group| group.starts_with(&top));
        around.filter_map(|group| files.left(group)).min()
    });
    left.min()
}

/// The files of a control group that limit its memory.
struct GroupFiles {
    /// The directory of all groups.
    top: &'static str,
    limit: &'static str,
    used: &'static str,
    /// In `memory.stat`: of what is used, files that were read and can be read again.
    forgettable: &'static str,
}

/// Version 2.
const UNIFIED: GroupFiles = GroupFiles {
    top: "sys/fs/cgroup",
    limit: "memory.max",
    used: "memory.current",
    forgettable: "inactive_file",
};

/// Version 1.
const LEGACY: GroupFiles = GroupFiles {
    top: "sys/fs/cgroup/memory",
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    forgettable: "total_inactive_file",
};

impl GroupFiles {
    /// Memory `group` can still have; `None` if it has no limit.
    fn left(&self, group: &Path) -> Option<u64> {
        let number = |file| read(&group.join(file))?.trim().parse::<u64>().ok();
        let (limit, used) = (number(self.limit)?, number(self.used)?);
        let counts = read(&group.join("memory.stat")).unwrap_or_default();
        let forgettable = counts.lines().find_map(|line| {
            let (name, bytes) = line.split_once(' ')?;
            (name == self.forgettable).then(|| bytes.trim().parse::<u64>().ok())?
        });
        Some(limit.saturating_sub(used.saturating_sub(forgettable.unwrap_or(0))))
    }
}

/// The rest of the address space, where that is limited.
#[cfg(target_os = "linux")]
fn of_addresses(root: &Path) -> Option<u64> {
    use rustix::process::{Resource, getrlimit};
    let limit = getrlimit(Resource::As).current?;
    let used = kibibytes_of("VmSize", &read(&root.join("proc/self/status"))?)?;
    Some(limit.saturating_sub(used))
}

/// Not known.
#[cfg(not(target_os = "linux"))]
fn of_addresses(_: &Path) -> Option<u64> {
    None
}

/// Bytes, of the line `name: 12 kB` of a file in `/proc`.
fn kibibytes_of(name: &str, text: &str) -> Option<u64> {
    let mut lines = text.lines();
    let kibibytes = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kibibytes: u64 = kibibytes.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what [`in_groups`] finds in a tree of these files.
    fn groups(files: &[(&str, &str)]) -> Option<u64> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        in_groups(root.path())
    }

    #[test]
    fn the_tightest_of_the_groups_around_counts() {
        let job = [
            ("proc/self/cgroup", "0::/jobs/7\n"),
            ("sys/fs/cgroup/jobs/7/memory.max", "max\n"),
            ("sys/fs/cgroup/jobs/7/memory.current", "100\n"),
            ("sys/fs/cgroup/jobs/memory.max", "1000\n"),
            ("sys/fs/cgroup/jobs/memory.current", "700\n"),
            (
                "sys/fs/cgroup/jobs/memory.stat",
                "active_file 9\ninactive_file 50\n",
            ),
        ];
        assert_eq!(groups(&job), Some(350));
        // With less than what is used as a limit, nothing is left.
        let mut full = job;
        full[3].1 = "600\n";
        assert_eq!(groups(&full), Some(0));
        // Without a limit, nothing is known.
        assert_eq!(groups(&job[..3]), None);
    }

    #[test]
    fn groups_of_version_1_and_containers_are_found() {
        let limit = |directory: &'static str| {
            let path = |file| format!("{directory}/{file}");
            [
                (path("memory.limit_in_bytes"), "2000\n"),
                (path("memory.usage_in_bytes"), "500\n"),
                (
                    path("memory.stat"),
                    "inactive_file 1\ntotal_inactive_file 100\n",
                ),
            ]
        };
        for directory in ["sys/fs/cgroup/memory/docker/ab", "sys/fs/cgroup/memory"] {
            let files = limit(directory);
            let mut files: Vec<_> = files.iter().map(|(path, text)| (&**path, *text)).collect();
            files.push((
                "proc/self/cgroup",
                "5:cpu,cpuacct:/docker/ab\n4:memory:/docker/ab\n0::/\n",
            ));
            assert_eq!(groups(&files), Some(1600), "{directory}");
        }
        assert_eq!(groups(&[]), None);
        assert_eq!(
            groups(&[("proc/self/cgroup", "\n:\n4:memory\n0::/../../x\n")]),
            None
        );
    }

    #[test]
    fn what_the_system_says_is_read() {
        let text = "MemTotal:       24683600 kB\nMemAvailable:   23404544 kB\n";
        let available = |text| kibibytes_of("MemAvailable", text);
        assert_eq!(available(text), Some(23_404_544 << 10));
        for text in [
            "",
            "MemAvailable: x kB\n",
            "MemAvailable: 5\n",
            "MemAvailable 5 kB\n",
            "MemAvailable: 99999999999999999999 kB",
        ] {
            assert_eq!(available(text), None, "{text}");
        }
        if cfg!(target_os = "linux") {
            assert!(here().unwrap() > 1 << 20);
        }
    }
}
