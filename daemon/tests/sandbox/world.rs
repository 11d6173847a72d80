//! A project with what a person has around it, and commands that run in it.

use super::*;

/// All that a machine can have.
pub(crate) const OWN: (Form, Pids) = (Form::Namespaces, Pids::Own);

/// As in a container that covers parts of `/proc`.
pub(crate) const SHARED: (Form, Pids) = (Form::Namespaces, Pids::Shared);

/// Without user namespaces.
pub(crate) const REDUCED: (Form, Pids) = (Form::Landlock, Pids::Shared);

pub(crate) const FORMS: [(Form, Pids); 3] = [OWN, SHARED, REDUCED];

/// A project with a repository, a home with secrets, and a daemon's state beside them.
pub(crate) struct World {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) support: Support,
    pub(crate) mode: Mode,
    pub(crate) network: Network,
    pub(crate) caches: Caches,
    pub(crate) new_repositories: NewRepositories,
}

pub(crate) struct Nowhere;

impl OutputSink for Nowhere {
    fn push(&mut self, text: &str) -> String {
        text.to_owned()
    }

    fn finish(&mut self) -> String {
        String::new()
    }
}

impl World {
    /// None, said aloud, where the machine cannot make this form.
    pub(crate) async fn new((form, pids): (Form, Pids)) -> Option<Self> {
        // Not in a temporary directory, which commands may write.
        let place = std::env::var_os("AGENTD_TEST_HOMES").unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").into());
        let dir = tempfile::Builder::new().prefix("sandbox-").tempdir_in(place).unwrap();
        for name in ["root", "state", "home/.ssh", "home/.cargo/registry", "home/.cache"] {
            std::fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        let mut world = Self {
            dir,
            support: Support::default(),
            mode: Mode::WorkspaceWrite,
            network: Network::On,
            caches: Caches::Shared,
            new_repositories: NewRepositories::Refuse,
        };
        world.write("state/token", "secret-token");
        world.write("home/.ssh/id_rsa", "secret-key");
        let mut support = probe(&world.guard()).await;
        if form == Form::Landlock && support.landlock >= 3 {
            support.form = Some(Form::Landlock);
        }
        if support.form != Some(form) || (pids == Pids::Own && support.pids != pids) {
            skip::note(&format!(
                "{form:?} with {pids:?} processes cannot be made here: {support:?}"
            ));
            return None;
        }
        support.pids = pids;
        world.support = support;
        Some(world)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::create_dir_all(self.path("").join(name).parent().unwrap()).unwrap();
        std::fs::write(self.path("").join(name), text).unwrap();
    }

    pub(crate) fn guard(&self) -> GuardPlan {
        GuardPlan {
            exe: env!("CARGO_BIN_EXE_agentd").into(),
            state_dir: self.path("state"),
        }
    }

    pub(crate) fn place(&self) -> Place {
        let mut client: BTreeMap<String, String> = std::env::vars().filter(|(name, _)| name == "PATH").collect();
        client.insert("HOME".into(), self.path("home").display().to_string());
        let target = Target::open(TargetSpec {
            roots: vec![self.path("root")],
            cwd: self.path("root"),
            environment: command_environment(&client, &[], &[]),
            hidden: vec![],
            sandbox: Settings {
                mode: self.mode,
                network: self.network,
                caches: self.caches,
                new_repositories: self.new_repositories,
                support: self.support.clone(),
                hidden: vec![self.path("state"), self.path("daemon.sock")],
            },
        });
        Place {
            target: target.unwrap(),
            read: ReadSet::default(),
            jobs: daemon::tool::Jobs::default(),
        }
    }

    pub(crate) async fn run_in(&self, confinement: Confinement, command: &str) -> Ended {
        self.call(confinement, json!({"command": command})).await
    }

    pub(crate) async fn call(&self, confinement: Confinement, arguments: serde_json::Value) -> Ended {
        let bash: Arc<dyn Tool> = daemon::tool::all(&daemon::tool::Settings::default())
            .into_iter()
            .find(|tool| tool.spec().name == "bash")
            .unwrap();
        let place = self.place();
        let digest = bash.inspect(&arguments, &place).await.unwrap().digest;
        let (_stop, stop) = watch::channel(StopLevel::Run);
        let run = RunContext {
            place,
            output: Box::new(Nowhere),
            stop,
            call: "c1".into(),
            guard: self.guard(),
            confinement,
        };
        bash.run(&arguments, &digest, run).await
    }

    pub(crate) async fn run(&self, command: &str) -> Ended {
        self.run_in(Confinement::Session, command).await
    }

    pub(crate) async fn works(&self, command: &str) -> String {
        let ended = self.run(command).await;
        assert_eq!(ended.outcome, Outcome::Ok, "{command}: {}", ended.output);
        ended.output
    }

    pub(crate) async fn fails(&self, command: &str) -> String {
        let ended = self.run(command).await;
        assert_eq!(ended.outcome, Outcome::Error, "{command}: {}", ended.output);
        ended.output
    }

    /// Runs git as the person does, outside of any sandbox.
    pub(crate) fn git(&self, at: &str, arguments: &[&str]) {
        let mut command = std::process::Command::new("git");
        command
            .args([
                "-c",
                "protocol.file.allow=always",
                "-c",
                "user.email=a@b",
                "-c",
                "user.name=a",
            ])
            .args(arguments)
            .current_dir(self.path(at))
            .env("HOME", self.path("home"));
        let done = command.output().unwrap();
        assert!(done.status.success(), "git {arguments:?}: {done:?}");
    }

    pub(crate) fn make_repository(&self) {
        self.make_repository_at("root");
    }

    pub(crate) fn make_repository_at(&self, at: &str) {
        std::fs::create_dir_all(self.path(at)).unwrap();
        self.git(at, &["init", "-q"]);
        self.git(at, &["config", "user.email", "a@b"]);
        self.git(at, &["config", "user.name", "a"]);
        self.git(at, &["commit", "-q", "--allow-empty", "-m", "first"]);
    }

    /// All below a directory, with what is in each file.
    pub(crate) fn content(&self, name: &str) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut ahead = vec![self.path(name)];
        while let Some(path) = ahead.pop() {
            if path.is_dir() && !path.is_symlink() {
                ahead.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
                found.insert(path, Vec::new());
            } else {
                let content = std::fs::read(&path).unwrap_or_default();
                found.insert(path, content);
            }
        }
        found
    }
}
