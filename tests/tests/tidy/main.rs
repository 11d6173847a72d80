//! The house rules that a machine can check: which module may know which, what files are called and how long they are, and
//! whether the documents still speak of this tree.

mod documents;
mod edges;
mod files;
mod source;

/// Fails with every fault at once, a line each.
fn none(faults: Vec<String>) {
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}
