//! Rebuilds the daemon when a migration is added: `include_dir!` alone does not notice new files.

fn main() {
    println!("cargo:rerun-if-changed=../migrations");
}
