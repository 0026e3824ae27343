//! Embeds in the programs what they need outside their source tree: the shipped feature sets, the commit and, in
//! `fsbench-tch`, the path of libtorch, so that LD_LIBRARY_PATH is not needed.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("shipped_sets.rs"), shipped_sets(&root)?)?;
    println!("cargo:rustc-env=FSBENCH_COMMIT={}", commit(&root).unwrap_or_default());
    // As large as on other systems, where Windows gives the first thread 1 MB.
    let target = |name: &str| env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    if target("OS") == "windows" {
        let option = if target("ENV") == "msvc" { "/STACK:" } else { "-Wl,--stack," };
        println!("cargo:rustc-link-arg-bins={option}{}", 8 << 20);
    }
    // torch-sys passes its library folder to packages that depend on it directly.
    println!("cargo:rerun-if-env-changed=DEP_TCH_LIBTORCH_LIB");
    if let Some(folder) = env::var_os("DEP_TCH_LIBTORCH_LIB") {
        println!("cargo:rustc-link-arg-bin=fsbench-tch=-Wl,-rpath,{}", folder.display());
    }
    Ok(())
}

/// The files of `feature_sets/` as Rust source: pairs of name and content, sorted by name.
fn shipped_sets(root: &Path) -> io::Result<String> {
    let folder = root.join("feature_sets");
    println!("cargo:rerun-if-changed={}", folder.display());
    let paths: io::Result<Vec<PathBuf>> = fs::read_dir(&folder)?.map(|entry| Ok(entry?.path())).collect();
    let mut paths = paths?;
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "toml" || ending == "idx"));
    paths.sort();
    let file = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default();
        format!("    ({:?}, include_str!({:?})),\n", name.to_string_lossy(), path.display().to_string())
    };
    Ok(format!("&[\n{}]\n", paths.iter().map(file).collect::<String>()))
}

/// The checked-out commit by `git describe`; `None` outside a checkout of fsbench or without git. Runs again only when
/// another commit is checked out, so uncommitted changes are not marked.
fn commit(root: &Path) -> Option<String> {
    let top = git(root, &["rev-parse", "--show-toplevel"])?;
    if Path::new(&top).canonicalize().ok()? != root.canonicalize().ok()? {
        return None;
    }
    let branch = git(root, &["symbolic-ref", "--quiet", "HEAD"]);
    for name in ["HEAD", "packed-refs"].into_iter().chain(branch.as_deref()) {
        let path = root.join(git(root, &["rev-parse", "--git-path", name])?);
        // With a missing file, cargo would run this script every time.
        if path.exists() {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
    git(root, &["describe", "--always", "--tags", "--abbrev=10"])
}

fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(root).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim();
    (output.status.success() && !text.is_empty()).then(|| text.to_owned())
}
