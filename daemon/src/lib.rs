//! The daemon: owns sessions, model connections, tools, approvals and their history, and serves them over a Unix socket.
//!
//! A request's way: `api` (socket, methods) → `session` (actor, decisions) → `log` (durable events), and from the state's wishes →
//! `provider` (models) and `tool` → `target` (commands, files). `policy` judges calls, `context` builds what a model is sent,
//! `auth` has the keys, `config` the settings, `current` what follows from them. `startup` makes one daemon of it, `models` chooses who
//! answers.

mod api;
pub mod auth;
pub mod config;
mod context;
mod current;
pub mod log;
mod models;
mod notify;
pub mod policy;
pub mod provider;
mod session;
#[cfg(test)]
#[path = "../../tests/src/skip.rs"]
#[expect(unreachable_pub, reason = "it is a module of the tests crate")]
mod skip;
pub mod startup;
pub mod target;
pub mod tool;

use api::Api;
use auth::Redactor;
use config::Book;
use current::Current;
pub use current::check;
use protocol::Time;
use session::{Deps, Drain, Presence, Registry};
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
pub async fn run(book: Book, claim: Claim, redactor: Redactor, ready: impl FnOnce()) -> Result<(), StartError> {
    outlive_full_files();
    let book = Arc::new(book);
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
    let own_place = commands.target().clone();
    let (http, keyring) = (provider::Http::default(), auth::Keyring::system());
    let token_http = Arc::new(http.clone());
    let logins = auth::Logins::new(&book.now(), &claim.state_dir, keyring.clone(), token_http, &redactor);
    let logins = Arc::new(logins);
    let sources = auth::Sources {
        run: Arc::new(commands),
        keyring,
        logins: Arc::clone(&logins),
    };
    let models = Arc::new(models::ConfiguredModels::new(
        Arc::clone(&book),
        sources,
        http,
        redactor.clone(),
        &claim.state_dir,
    ));
    let own = vec![claim.state_dir.clone(), claim.socket.clone()];
    let current = Arc::new(Current::new(Arc::clone(&book), support, own));
    let hidden = [Some(claim.state_dir.clone()), book.path().parent().map(Into::into)];
    let drain = Drain::default();
    let registry = Registry::new(Arc::new(Deps {
        log: log.clone(),
        standing: Arc::clone(&current) as Arc<dyn session::Standing>,
        models: Arc::clone(&models) as Arc<dyn session::effect::model::Models>,
        projects: Arc::new(config::Projects::new(
            Arc::clone(&book),
            config::trust::Trust::new(&claim.state_dir),
        )),
        rules: Arc::new(config::RuleBook::open(book.path())?),
        guard: guard.clone(),
        redactor,
        spending: session::Spending::read(&log, Time::now()).await?,
        answerers: Arc::clone(&answerers),
        hidden: hidden.into_iter().flatten().collect(),
        drain: drain.clone(),
        clocks: session::Clocks::MACHINE,
    }));
    let notifier = notify::Notifier {
        registry: registry.clone(),
        book: Arc::clone(&book),
        target: own_place,
        guard,
    };
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
        desk: current,
    });
    let bound = api::bind(&claim.socket)?;
    claim.announce()?;
    let stop = CancellationToken::new();
    let serving = tokio::spawn(api::serve(bound, Arc::clone(&api), stop.clone()));
    ready();
    let telling = tokio::spawn(notifier.run());
    let retention = tokio::spawn(log::take_away(log.clone(), Time::now));
    let resuming = resume(&registry, &log, models.as_ref()).await;
    tokio::select! {
        () = drain.drained(&registry) => tracing::info!("stopping: told to"),
        () = signalled(&drain) => drain.drained(&registry).await,
        () = unneeded(&api, &book) => tracing::info!("stopping: nobody needs the daemon"),
    }
    resuming.abort();
    telling.abort();
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

/// Ends when nobody has needed the daemon for as long as the configuration says.
async fn unneeded(api: &Api, book: &Book) {
    let mut since = Instant::now();
    loop {
        let limit = book.now().daemon.idle_timeout;
        tokio::time::sleep(limit.map_or(IDLE_CHECK, |limit| IDLE_CHECK.min(limit))).await;
        if limit.is_none() || api.needed().await {
            since = Instant::now();
        } else if limit.is_some_and(|limit| since.elapsed() >= limit) {
            return;
        }
    }
}
