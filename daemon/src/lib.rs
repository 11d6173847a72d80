//! The daemon: owns sessions, model connections, tools, approvals and their history, and serves them over a Unix socket.
//!
//! A request's way: `api` (socket, methods) → `session` (actor, decisions) → `log` (durable events), and from the state's wishes →
//! `provider` (models) and `tool` → `target` (commands, files). `policy` judges calls, `context` builds what a model is sent,
//! `auth` has the keys, `config` the settings. `startup` makes one daemon of it, `models` chooses who answers.

mod api;
pub mod auth;
pub mod config;
mod context;
pub mod log;
mod models;
pub mod policy;
pub mod provider;
mod session;
pub mod startup;
pub mod target;
pub mod tool;

use api::{Api, SessionDefaults};
use auth::Redactor;
use config::Config;
use protocol::Time;
use session::{Deps, Drain, Presence, Registry, Tuning};
use startup::{Claim, StartError};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Time running turns get when a signal ends the daemon.
const SIGNAL_DRAIN: Duration = Duration::from_secs(30);

/// How often it is looked whether anybody needs the daemon.
const IDLE_CHECK: Duration = Duration::from_secs(10);

/// Time the commands of an earlier life get to be gone.
const GUARDS_WAIT: Duration = Duration::from_secs(5);

/// Lives as the one daemon of its state directory until it is told to stop. Calls `ready` once clients can connect. `redactor`
/// learns every key that is held.
///
/// # Errors
/// A database that cannot be opened, a socket that cannot be made.
pub async fn run(config: Config, claim: Claim, redactor: Redactor, ready: impl FnOnce()) -> Result<(), StartError> {
    outlive_full_files();
    let (log, log_join) = log::EventLog::open(&claim.state_dir)?;
    if let Err(remain) = target::wait_for_guards(&claim.state_dir, GUARDS_WAIT) {
        tracing::warn!(%remain, "commands of an earlier life are still there");
    }
    let answerers = Arc::new(Presence::default());
    let guard = tool::GuardPlan {
        exe: "/proc/self/exe".into(),
        state_dir: claim.state_dir.clone(),
    };
    let support = target::sandbox::probe(&guard).await;
    for check in support.checks() {
        tracing::info!(name = check.name, standing = ?check.standing, detail = check.detail, "what can be enforced");
    }
    let own = std::env::vars().collect();
    let commands =
        auth::GuardedCommands::new(guard.clone(), &own).map_err(|error| StartError::Detached(error.to_string()))?;
    let (http, keyring) = (provider::Http::default(), auth::Keyring::system());
    let token_http = Arc::new(http.clone());
    let logins = auth::Logins::new(&config, &claim.state_dir, keyring.clone(), token_http, &redactor);
    let logins = Arc::new(logins);
    let sources = auth::Sources {
        run: Arc::new(commands),
        keyring,
        logins: Arc::clone(&logins),
    };
    let models = Arc::new(models::ConfiguredModels::new(
        config.clone(),
        sources,
        http,
        redactor.clone(),
        &claim.state_dir,
    ));
    let sandbox = sandbox(&config, &claim, support);
    let doctor = doctor(&sandbox);
    let tools = tools(&config)?;
    let offered = tools.iter().filter(|listed| listed.off.is_none());
    let (extra, keys) = (config.session.env.clone(), config.key_variables());
    let hidden = [Some(claim.state_dir.clone()), config.path.parent().map(Into::into)];
    let drain = Drain::default();
    let registry = Registry::new(Arc::new(Deps {
        log: log.clone(),
        tools: offered.map(|listed| Arc::clone(&listed.tool)).collect(),
        models: Arc::clone(&models) as Arc<dyn session::effect::model::Models>,
        projects: Arc::new(config::Projects::new(
            config.clone(),
            config::trust::Trust::new(&claim.state_dir),
        )),
        rules: Arc::new(config::RuleBook::open(&config.path)?),
        guard,
        redactor,
        answerers: Arc::clone(&answerers),
        tuning: tuning(&config),
        environment: Box::new(move |client| target::command_environment(client, &extra, &keys)),
        sandbox,
        hidden: hidden.into_iter().flatten().collect(),
        drain: drain.clone(),
        clocks: session::Clocks::MACHINE,
    }));
    let api = Arc::new(Api {
        registry: registry.clone(),
        keys: Arc::clone(&models) as Arc<dyn api::KeyDesk>,
        logins,
        token: claim.token.clone(),
        socket: claim.socket.clone(),
        state_dir: claim.state_dir.clone(),
        started_at: Time::now(),
        drain: drain.clone(),
        clients: std::sync::atomic::AtomicU32::new(0),
        answerers,
        tools: tools.iter().map(info).collect(),
        defaults: SessionDefaults {
            settings: settings(&config),
            environment: config.session.env.clone(),
        },
        doctor,
    });
    let bound = api::bind(&claim.socket)?;
    claim.announce()?;
    let stop = CancellationToken::new();
    let serving = tokio::spawn(api::serve(bound, Arc::clone(&api), stop.clone()));
    ready();
    let retention = tokio::spawn(log::take_away(log.clone(), Time::now));
    let resuming = resume(&registry, &log, models.as_ref()).await;
    tokio::select! {
        () = drain.drained(&registry) => tracing::info!("stopping: told to"),
        () = signalled(&drain) => drain.drained(&registry).await,
        () = unneeded(&api, config.daemon.idle_timeout) => tracing::info!("stopping: nobody needs the daemon"),
    }
    resuming.abort();
    retention.abort();
    registry.shutdown().await;
    // Before the first connection is closed: its client looks here why.
    claim.retract();
    stop.cancel();
    if let Ok(Err(error)) = serving.await {
        tracing::error!(%error, "the listener failed");
    }
    log_join.shutdown().await;
    Ok(())
}

/// A tool as clients see it.
fn info(listed: &tool::Listed) -> protocol::method::ToolInfo {
    let spec = listed.tool.spec();
    protocol::method::ToolInfo {
        name: spec.name.to_owned(),
        description: spec.description.clone(),
        writes: spec.writes,
        enabled: listed.off.is_none(),
        why_off: listed.off.map(|off| off.as_str().to_owned()),
        schema: spec.schema.clone(),
    }
}

fn tuning(config: &Config) -> Tuning {
    Tuning {
        retries: config.limits.retries,
        passivate_after: config.limits.passivate_after,
        park_after: config.limits.park_after,
        resume: match config.session.resume {
            config::Resume::Auto => session::Resume::Auto,
            config::Resume::Off => session::Resume::Off,
        },
        ..Tuning::default()
    }
}

/// Every tool, and which are offered.
fn tools(config: &Config) -> Result<Vec<tool::Listed>, StartError> {
    let config::ToolSettings {
        enabled,
        disabled,
        fetch_hosts,
        search_engine,
        search_url,
    } = config.tools.clone();
    let search_engine = match search_engine {
        config::SearchEngine::DuckDuckGo => tool::catalog::SearchEngine::DuckDuckGo,
        config::SearchEngine::Searxng => tool::catalog::SearchEngine::Searxng,
    };
    let settings = tool::Settings {
        enabled,
        disabled,
        fetch_hosts,
        search_engine,
        search_url,
    };
    tool::catalog(&settings).map_err(|unknown| {
        let (path, message) = (config.path.clone(), unknown.to_string());
        config::ConfigError::Wrong {
            path,
            line: None,
            message,
            hint: None,
        }
        .into()
    })
}

/// What commands may reach: what the configuration wants, as far as the machine can enforce it.
fn sandbox(config: &Config, claim: &Claim, support: target::sandbox::Support) -> target::sandbox::Settings {
    use config::{SandboxCaches, SandboxMode, SandboxNetwork};
    use target::sandbox::{Caches, Mode, Network, Settings};
    Settings {
        mode: match config.sandbox.mode {
            SandboxMode::Off => Mode::Off,
            SandboxMode::ReadOnly => Mode::ReadOnly,
            SandboxMode::WorkspaceWrite => Mode::WorkspaceWrite,
        },
        network: match config.sandbox.network {
            SandboxNetwork::On => Network::On,
            SandboxNetwork::Off => Network::Off,
        },
        caches: match config.sandbox.caches {
            SandboxCaches::Shared => Caches::Shared,
            SandboxCaches::Private => Caches::Private,
        },
        support,
        hidden: own_files(config, claim),
    }
}

/// What the sandbox is here, for people.
fn doctor(sandbox: &target::sandbox::Settings) -> protocol::method::DoctorAnswer {
    use protocol::method::{DoctorAnswer, DoctorCheck, Standing};
    let check = |check: target::sandbox::Check| DoctorCheck {
        name: check.name.to_owned(),
        standing: match check.standing {
            target::sandbox::Standing::Good => Standing::Good,
            target::sandbox::Standing::Reduced => Standing::Reduced,
            target::sandbox::Standing::Missing => Standing::Missing,
        },
        detail: check.detail,
    };
    let mode = sandbox.effective_mode();
    DoctorAnswer {
        sandbox: mode.as_str().to_owned(),
        network: mode == target::sandbox::Mode::Off || sandbox.network == target::sandbox::Network::On,
        checks: sandbox.support.checks().into_iter().map(check).collect(),
    }
}

/// What no sandboxed command sees of the daemon: its state, its socket, its configuration.
fn own_files(config: &Config, claim: &Claim) -> Vec<std::path::PathBuf> {
    // The configuration may lie in a directory that is not the daemon's alone.
    let directory = config
        .path
        .parent()
        .filter(|parent| parent.ends_with("agentd"))
        .unwrap_or(&config.path);
    vec![claim.state_dir.clone(), claim.socket.clone(), directory.to_owned()]
}

fn settings(config: &Config) -> protocol::Settings {
    protocol::Settings {
        model: None,
        mode: config.session.mode,
        mode_until: None,
        mode_after: None,
        unattended: config.session.unattended.unwrap_or_default(),
        limits: config.session.limits,
    }
}

/// Goes on with what an earlier life left unfinished.
async fn resume(registry: &Registry, log: &log::EventLog, models: &dyn api::KeyDesk) -> tokio::task::JoinHandle<()> {
    let filter = log::SessionFilter {
        unfinished: true,
        children: true,
        ephemeral: true,
        archived: true,
        ..Default::default()
    };
    let rows = log.sessions(filter).await.unwrap_or_else(|error| {
        tracing::error!(%error, "unfinished sessions cannot be listed");
        Vec::new()
    });
    if !rows.is_empty() {
        // What they were answered by may be a server on this machine.
        models.look_around().await;
    }
    let registry = registry.clone();
    tokio::spawn(async move { registry.resume(rows).await })
}

/// From now on a write beyond the limit of file sizes is an error of that write, as a full disk is, and not the daemon's end. A
/// handler, unlike an ignored signal, is not inherited by commands.
fn outlive_full_files() {
    if let Err(error) = signal(SignalKind::from_raw(libc::SIGXFSZ)) {
        tracing::warn!(%error, "SIGXFSZ cannot be caught");
    }
}

/// Ends when a signal asks the daemon to stop; a second one ends the wait for turns.
async fn signalled(drain: &Drain) {
    let (Ok(mut term), Ok(mut interrupt)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = term.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("stopping: a signal came");
    drain.begin(SIGNAL_DRAIN);
    let drain = drain.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = interrupt.recv() => {}
        }
        drain.begin(Duration::ZERO);
    });
}

/// Ends when nobody has needed the daemon for so long.
async fn unneeded(api: &Api, limit: Option<Duration>) {
    let Some(limit) = limit else {
        return std::future::pending().await;
    };
    let mut since = Instant::now();
    loop {
        tokio::time::sleep(IDLE_CHECK.min(limit)).await;
        if api.needed().await {
            since = Instant::now();
        } else if since.elapsed() >= limit {
            return;
        }
    }
}
