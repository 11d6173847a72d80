//! A work tree and a session in it, for the tests of file tools.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokio::sync::watch;

use super::{Ended, GuardPlan, Outcome, OutputSink, Place, ReadSet, RunContext, StopLevel, Tool};
use crate::target::{Target, TargetSpec};

pub(super) struct World {
    _dir: tempfile::TempDir,
    root: PathBuf,
    pub(super) place: Place,
}

struct Nowhere;

impl OutputSink for Nowhere {
    fn push(&mut self, _text: &str) {}
}

impl World {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("root");
        std::fs::create_dir(&root).unwrap();
        let target = Target::open(TargetSpec {
            roots: vec![root.clone()],
            cwd: root.clone(),
            ..TargetSpec::default()
        });
        Self {
            _dir: dir,
            root,
            place: Place {
                target: target.unwrap(),
                read: ReadSet::default(),
                jobs: super::Jobs::default(),
            },
        }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(super) fn write(&self, name: &str, content: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(super) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Has the model read the file.
    pub(super) async fn see(&self, name: &str) {
        let ended = self.run(&super::read_file::ReadFile, json!({"path": name})).await;
        assert_eq!(ended.outcome, Outcome::Ok, "{}", ended.output);
    }

    /// Inspects and runs; a call that cannot be inspected ends as not run, as in a session.
    pub(super) async fn run(&self, tool: &dyn Tool, arguments: Value) -> Ended {
        match tool.inspect(&arguments, &self.place).await {
            Ok(inspected) => self.run_as(tool, arguments, &inspected.digest).await,
            Err(error) => Ended::new(Outcome::NotRun, error.to_string()),
        }
    }

    pub(super) async fn run_as(&self, tool: &dyn Tool, arguments: Value, digest: &str) -> Ended {
        let (_stop, stop) = watch::channel(StopLevel::Run);
        let guard = GuardPlan {
            exe: "/nonexistent".into(),
            state_dir: "/nonexistent".into(),
        };
        let run = RunContext {
            place: self.place.clone(),
            output: Box::new(Nowhere),
            stop,
            call: "c1".into(),
            guard,
            confinement: super::Confinement::Outside,
        };
        tool.run(&arguments, digest, run).await
    }
}
