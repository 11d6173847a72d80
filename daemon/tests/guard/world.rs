//! A work tree with a session in it, and calls of `bash` that run there.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use daemon::target::{Target, TargetSpec, command_environment, wait_for_guards};
use daemon::tool::{Confinement, Ended, GuardPlan, OutputSink, Place, ReadSet, RunContext, StopLevel, Tool};
use serde_json::{Value, json};
use tokio::sync::watch;

/// The longest any fact is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct World {
    dir: tempfile::TempDir,
    pub(crate) place: Place,
    pub(crate) bash: Arc<dyn Tool>,
}

/// A call that runs, with its output so far.
pub(crate) struct Call {
    pub(crate) task: tokio::task::JoinHandle<Ended>,
    output: watch::Receiver<String>,
    pub(crate) stop: watch::Sender<StopLevel>,
}

struct Shown(watch::Sender<String>);

impl OutputSink for Shown {
    fn push(&mut self, text: &str) {
        self.0.send_modify(|shown| shown.push_str(text));
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with_variables(&[])
    }

    pub(crate) fn with_variables(extra: &[(&str, &str)]) -> Self {
        Self::in_dir(tempfile::tempdir().unwrap(), extra)
    }

    pub(crate) fn in_dir(dir: tempfile::TempDir, extra: &[(&str, &str)]) -> Self {
        let root = dir.path().join("root");
        std::fs::create_dir(&root).unwrap();
        std::fs::create_dir(dir.path().join("state")).unwrap();
        let mut client = BTreeMap::from([("PATH".to_string(), std::env::var("PATH").unwrap())]);
        client.insert("HOME".into(), dir.path().display().to_string());
        client.extend(extra.iter().map(|(name, value)| (name.to_string(), value.to_string())));
        let environment = command_environment(&client, &[], &[]);
        let target = Target::open(TargetSpec {
            roots: vec![root.clone()],
            cwd: root,
            environment,
            hidden: vec![],
            sandbox: Default::default(),
        });
        let bash = daemon::tool::all(&daemon::tool::Settings::default())
            .into_iter()
            .find(|tool| tool.spec().name == "bash")
            .unwrap();
        Self {
            dir,
            place: Place {
                target: target.unwrap(),
                read: ReadSet::default(),
                jobs: daemon::tool::Jobs::default(),
            },
            bash,
        }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().join("root")
    }

    pub(crate) fn guard(&self) -> GuardPlan {
        GuardPlan {
            exe: env!("CARGO_BIN_EXE_agentd").into(),
            state_dir: self.dir.path().join("state"),
        }
    }

    pub(crate) async fn digest(&self, arguments: &Value) -> String {
        self.bash.inspect(arguments, &self.place).await.unwrap().digest
    }

    pub(crate) async fn start(&self, arguments: Value) -> Call {
        let digest = self.digest(&arguments).await;
        self.start_as(arguments, digest)
    }

    pub(crate) fn start_as(&self, arguments: Value, digest: String) -> Call {
        let (sender, output) = watch::channel(String::new());
        let (stop, stopped) = watch::channel(StopLevel::Run);
        let (bash, place, guard) = (Arc::clone(&self.bash), self.place.clone(), self.guard());
        let task = tokio::spawn(async move {
            let run = RunContext {
                place,
                output: Box::new(Shown(sender)),
                stop: stopped,
                call: "c1".into(),
                guard,
                confinement: Confinement::Session,
            };
            bash.run(&arguments, &digest, run).await
        });
        Call { task, output, stop }
    }

    pub(crate) async fn run(&self, command: &str) -> Ended {
        self.start(json!({"command": command})).await.ended().await
    }

    pub(crate) async fn no_guard_is_left(&self) {
        let state = self.guard().state_dir;
        tokio::task::spawn_blocking(move || wait_for_guards(&state, PATIENCE).unwrap())
            .await
            .unwrap();
    }
}

impl Call {
    /// Waits until the output so far contains `text`, and gives all of it.
    pub(crate) async fn says(&mut self, text: &str) -> String {
        let said = tokio::time::timeout(PATIENCE, self.output.wait_for(|said| said.contains(text))).await;
        let said = said.unwrap_or_else(|_| panic!("nothing said {text:?}"));
        said.unwrap_or_else(|_| panic!("ended without saying {text:?}")).clone()
    }

    pub(crate) async fn ended(&mut self) -> Ended {
        tokio::time::timeout(PATIENCE, &mut self.task).await.unwrap().unwrap()
    }
}
