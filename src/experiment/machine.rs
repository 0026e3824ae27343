//! The machine results come from.

use std::path::Path;

/// The processor's own name, as Linux reports it; else the architecture.
pub(super) fn cpu() -> String {
    let info = std::fs::read_to_string(Path::new("/proc/cpuinfo")).unwrap_or_default();
    cpu_in(&info).unwrap_or_else(|| format!("unnamed {} processor", std::env::consts::ARCH))
}

/// The first `model name` of a `/proc/cpuinfo`.
fn cpu_in(info: &str) -> Option<String> {
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    let name = line.split_once(':')?.1.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(name).filter(|name| !name.is_empty())
}

/// Logical cores this process may use.
pub(super) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_is_named() {
        assert_eq!(cpu_in("processor : 0\nmodel name\t: Some  CPU @ 2.5GHz\n").as_deref(), Some("Some CPU @ 2.5GHz"));
        assert_eq!(cpu_in("processor : 0\nBogoMIPS : 50\n"), None);
        assert!(!cpu().is_empty() && cores() > 0);
    }
}
