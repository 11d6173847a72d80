//! `session.*` but for subscriptions.

use super::client::Client;
use super::rule::directory;
use super::{Api, blocking, roots};
use crate::log::{
    Append, Columns, Deletion, Lifetime, LogError, NewRow, NewSession, SessionFilter, SessionKey, SessionRow,
};
use crate::session::{Change, Message, Send, Sending, draining, name_taken, project, storage};
use crate::target::{not_within, project_root};
use protocol::event::{Event, SessionChanged, SessionCreated, TurnOutcome};
use protocol::frame::Phase;
use protocol::method::{
    CreateParams, DeleteParams, Empty, GetParams, ListParams, SendParams, Sent, SessionInfo, SessionPage, ToolInfo,
    UpdateParams,
};
use protocol::{By, Content, ErrorKind, InputId, Limits, Mode, RpcError, Seq, SessionId, Settings, Time};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Sessions on a page when the client does not say.
const PAGE: u32 = 20;

/// Longest `input_id`.
const INPUT_ID_BYTES: usize = 128;

/// Longest name of a session.
const NAME_BYTES: usize = 64;

/// Longest time a mode may be set for: a year.
const MODE_FOR_MS: u64 = 366 * 24 * 3_600 * 1_000;

/// Time a forced delete waits for the turn's tools to end.
const DELETE_WAIT: Duration = Duration::from_secs(10);

pub(super) async fn create(api: Arc<Api>, client: Arc<Client>, params: CreateParams) -> Result<SessionInfo, RpcError> {
    if api.draining() {
        return Err(draining());
    }
    let session = session_id(params.session.as_ref())?;
    if params.session.is_some()
        && let Some(made) = made_before(&api, &session, &params).await?
    {
        return Ok(made);
    }
    params.name.as_deref().map(check_name).transpose()?;
    params
        .model
        .as_deref()
        .map(|model| check_model(&api, model))
        .transpose()?;
    let cwd = params.cwd.clone();
    let root = blocking(move || directory(&cwd).map(project_root))
        .await??
        .display()
        .to_string();
    let added_roots = not_within(
        std::iter::once(root.as_str()),
        roots::added(&api, &client, &params.add_roots).await?,
    );
    let project = project(api.registry.deps(), &root).await?;
    let defaults = api.desk.defaults();
    let limits = project
        .max_steps
        .map_or(defaults.limits, |max_steps| Limits { max_steps });
    let usual = project.mode.unwrap_or(defaults.mode);
    check_mode_for(params.mode, params.mode_for_ms)?;
    let at = Time::now();
    let mode_until = params.mode_for_ms.map(|ms| at.plus_ms(ms));
    let settings = Settings {
        model: params
            .model
            .clone()
            .or(project.default_model)
            .or_else(|| defaults.model.clone()),
        mode: params.mode.unwrap_or(usual),
        mode_until,
        mode_after: mode_until.map(|_| usual),
        unattended: params.unattended.or(project.unattended).unwrap_or(defaults.unattended),
        limits: params.limits.unwrap_or(limits),
    };
    api.keys.look_around().await;
    if let Some(error) = api.keys.unfit(settings.model.as_deref(), settings.mode) {
        return Err(error);
    }
    api.keys.warm(settings.model.as_deref());
    let environment = api
        .registry
        .deps()
        .standing
        .environment(&client.introduced().environment);
    let created = Event::from(SessionCreated {
        session: session.clone(),
        cwd: params.cwd.clone(),
        root: root.clone(),
        added_roots: added_roots.clone(),
        settings: settings.clone(),
        name: params.name.clone(),
        by: client.by(),
    });
    let unwritable = |error: serde_json::Error| RpcError::new(ErrorKind::Internal, error.to_string());
    let private = serde_json::to_vec(&serde_json::json!({ "environment": environment })).map_err(unwritable)?;
    let body = created.body().map_err(unwritable)?;
    let row = NewRow {
        kind: created.kind(),
        at_ms: at.0,
        body,
        private: Some(private),
    };
    let new = NewSession {
        id: session.0.clone(),
        name: params.name.clone(),
        parent: None,
        root_path: root,
        cwd: params.cwd.clone(),
        created_at_ms: at.0,
        lifetime: Lifetime::Kept,
    };
    let columns = Columns {
        phase: Some(Phase::Idle.as_str()),
        model: settings.model,
        mode: Some(settings.mode.to_string()),
        added_roots: Some(added_roots)
            .filter(|added| !added.is_empty())
            .map(|added| serde_json::to_string(&added))
            .transpose()
            .map_err(unwritable)?,
        ..Columns::default()
    };
    let append = Append {
        session: SessionKey(0),
        expected_seq: 1,
        rows: vec![row],
        columns,
        approvals: Vec::new(),
    };
    let log = &api.registry.deps().log;
    match log.create(new, append).await {
        Ok(_) => {}
        // Of two requests with one id at once, both get what the first made.
        Err(LogError::Exists) => {
            let made = made_before(&api, &session, &params).await?;
            return made.ok_or_else(|| id_taken("another session"));
        }
        Err(LogError::NameTaken) => return Err(name_taken()),
        Err(LogError::Busy) => return Err(crate::session::busy()),
        Err(error) => return Err(storage(&error)),
    }
    info_of(&api, &session).await
}

/// The session that a client made with this id before: one that retries gets what it made the first time.
///
/// # Errors
/// The id is that of a session that was made otherwise, or is deleted.
async fn made_before(api: &Api, id: &SessionId, asked: &CreateParams) -> Result<Option<SessionInfo>, RpcError> {
    let log = &api.registry.deps().log;
    let Some(row) = log.session(&id.0).await.map_err(|error| storage(&error))? else {
        return Ok(None);
    };
    if row.deleted_at_ms.is_some() {
        return Err(id_taken("a deleted session"));
    }
    let first = log.read(row.key, 0, 1).await.map_err(|error| storage(&error))?;
    let roots = roots::meant(&asked.add_roots).await?;
    match first.first().map(|first| Event::parse(&first.kind, &first.body)) {
        Some(Ok(Some(Event::SessionCreated(created)))) if !is_as_asked(&created, row.created_at_ms, asked, roots) => {
            Err(id_taken("a session that was made otherwise"))
        }
        _ => Ok(Some(info(api, row))),
    }
}

/// Whether a session was made by this very request. What it does not say may have come from elsewhere.
fn is_as_asked(created: &SessionCreated, at_ms: i64, asked: &CreateParams, roots: Vec<String>) -> bool {
    let settings = &created.settings;
    created.cwd == asked.cwd
        && created.name == asked.name
        && created.added_roots == not_within(std::iter::once(created.root.as_str()), roots)
        && settings.mode_until == asked.mode_for_ms.map(|ms| Time(at_ms).plus_ms(ms))
        && asked.mode.is_none_or(|mode| mode == settings.mode)
        && asked
            .model
            .as_ref()
            .is_none_or(|model| settings.model.as_ref() == Some(model))
        && asked
            .unattended
            .is_none_or(|unattended| unattended == settings.unattended)
        && asked.limits.is_none_or(|limits| limits == settings.limits)
}

fn id_taken(by: &str) -> RpcError {
    RpcError::new(ErrorKind::SessionExists, format!("{by} has this id")).hint("use a new id")
}

/// The root of the project that a directory belongs to.
async fn root_of(cwd: Option<String>) -> Result<Option<String>, RpcError> {
    let Some(cwd) = cwd else { return Ok(None) };
    let root = blocking(move || project_root(Path::new(&cwd))).await?;
    Ok(Some(root.display().to_string()))
}

fn session_id(asked: Option<&SessionId>) -> Result<SessionId, RpcError> {
    match asked {
        None => Ok(SessionId(uuid::Uuid::now_v7().to_string())),
        Some(id) => match uuid::Uuid::parse_str(&id.0) {
            Ok(uuid) if uuid.get_version_num() == 7 && uuid.to_string() == id.0 => Ok(id.clone()),
            _ => Err(RpcError::new(
                ErrorKind::InvalidParams,
                "`session` must be a UUIDv7 in lower case",
            )),
        },
    }
}

fn check_name(name: &str) -> Result<(), RpcError> {
    let mut letters = name.chars();
    let first = letters.next().is_some_and(|letter| letter.is_ascii_alphabetic());
    let rest = letters.all(|letter| letter.is_ascii_alphanumeric() || "._-".contains(letter));
    if first && rest && name.len() <= NAME_BYTES && name != "last" {
        return Ok(());
    }
    let message = format!("{name:?} cannot be a session's name");
    Err(RpcError::new(ErrorKind::InvalidParams, message).hint(format!(
        "a letter, then letters, digits, dots, dashes, underscores, {NAME_BYTES} at most; not `last`"
    )))
}

/// Whether a mode may hold for so long.
fn check_mode_for(mode: Option<Mode>, for_ms: Option<u64>) -> Result<(), RpcError> {
    match (mode, for_ms) {
        (_, None) => Ok(()),
        (Some(_), Some(ms)) if (1..=MODE_FOR_MS).contains(&ms) => Ok(()),
        _ => Err(RpcError::new(
            ErrorKind::InvalidParams,
            "`mode_for_ms` belongs to a `mode` and is at most a year",
        )),
    }
}

fn check_model(api: &Api, model: &str) -> Result<(), RpcError> {
    if api.keys.knows(model) {
        return Ok(());
    }
    Err(RpcError::new(ErrorKind::UnknownModel, format!("there is no model profile {model}"))
        .hint("name a profile of the config file, or PROVIDER/MODEL where that provider's key is known: agentctl model list"))
}

/// Tools by name, each of which models are offered.
fn check_tools(api: &Api, names: &[String]) -> Result<(), RpcError> {
    let tools = api.desk.tools();
    for name in names {
        let wrong = |message| RpcError::new(ErrorKind::InvalidParams, message);
        match tools.iter().find(|tool| tool.name == *name) {
            None => return Err(wrong(format!("there is no tool {name}")).hint("agentctl tools lists them")),
            Some(ToolInfo { why_off: Some(why), .. }) => return Err(wrong(format!("the tool {name} is {why}"))),
            Some(_) => {}
        }
    }
    Ok(())
}

async fn info_of(api: &Api, session: &SessionId) -> Result<SessionInfo, RpcError> {
    let row = api
        .registry
        .deps()
        .log
        .session(&session.0)
        .await
        .map_err(|error| storage(&error))?;
    row.map(|row| info(api, row))
        .ok_or_else(|| crate::session::not_found(&session.0))
}

/// A row of the log as clients see it.
fn info(api: &Api, row: SessionRow) -> SessionInfo {
    let id = SessionId(row.id);
    let living = api
        .registry
        .living_one(&id)
        .map(|handle| Arc::clone(&handle.live().borrow().snapshot));
    let mode_until = living.as_ref().and_then(|living| living.settings.mode_until);
    let parsed = |text: Option<String>| text.and_then(|text| serde_json::from_value(text.into()).ok());
    let phase = match row.phase.as_str() {
        "idle" | crate::session::BACKGROUND => Phase::Idle,
        _ => living.map_or(Phase::Parked, |living| living.phase),
    };
    SessionInfo {
        name: row.name,
        title: row.title,
        cwd: row.cwd,
        root: row.root_path,
        added_roots: row
            .added_roots
            .and_then(|list| serde_json::from_str(&list).ok())
            .unwrap_or_default(),
        model: row.model,
        mode: parsed(row.mode).unwrap_or_default(),
        mode_until,
        phase,
        head: Seq(row.head),
        created_at: Time(row.created_at_ms),
        updated_at: Time(row.updated_at_ms),
        approvals: row.waiting_approvals,
        outcome: row
            .outcome
            .and_then(|text| serde_json::from_value::<TurnOutcome>(text.into()).ok()),
        archived: row.archived,
        id,
    }
}

pub(super) async fn list(api: Arc<Api>, _: Arc<Client>, params: ListParams) -> Result<SessionPage, RpcError> {
    let limit = params.limit.unwrap_or(PAGE).clamp(1, crate::log::SESSION_PAGE as u32) as usize;
    let cursor = params.cursor.map(|cursor| cursor.parse()).transpose();
    let before_pos =
        cursor.map_err(|_| RpcError::new(ErrorKind::InvalidParams, "`cursor` is not one that a page answered"))?;
    let filter = SessionFilter {
        root_path: root_of(params.cwd).await?,
        before_pos,
        limit,
        ..SessionFilter::default()
    };
    let rows = api
        .registry
        .deps()
        .log
        .sessions(filter)
        .await
        .map_err(|error| storage(&error))?;
    let next = (rows.len() == limit)
        .then(|| rows.last().map(|row| row.changed_pos.to_string()))
        .flatten();
    Ok(SessionPage {
        sessions: rows.into_iter().map(|row| info(&api, row)).collect(),
        next,
    })
}

pub(super) async fn get(api: Arc<Api>, _: Arc<Client>, params: GetParams) -> Result<SessionInfo, RpcError> {
    let root = root_of(params.cwd).await?;
    let row = api.find(&params.session, root.as_deref()).await?;
    Ok(info(&api, row))
}

pub(super) async fn update(api: Arc<Api>, client: Arc<Client>, params: UpdateParams) -> Result<SessionInfo, RpcError> {
    params.name.as_deref().map(check_name).transpose()?;
    check_mode_for(params.mode, params.mode_for_ms)?;
    params
        .model
        .as_deref()
        .map(|model| check_model(&api, model))
        .transpose()?;
    let session = api.session_id(&params.session).await?;
    if let Some(mode) = params.mode {
        let model = match &params.model {
            Some(model) => Some(model.clone()),
            None => info_of(&api, &session).await?.model,
        };
        if let Some(error) = api.keys.unfit(model.as_deref(), mode) {
            return Err(error);
        }
    }
    let added_roots = roots::added(&api, &client, &params.add_roots).await?;
    let changed = SessionChanged {
        name: params.name,
        title: None,
        model: params.model,
        mode: params.mode,
        mode_until: None,
        unattended: params.unattended,
        archived: params.archived,
        limits: None,
        added_roots,
        by: client.by(),
    };
    let change = Change {
        changed,
        mode_for_ms: params.mode_for_ms,
    };
    api.registry
        .ask(&session, |reply| Message::Change(Box::new(change.clone()), reply))
        .await?;
    info_of(&api, &session).await
}

pub(super) async fn delete(api: Arc<Api>, client: Arc<Client>, params: DeleteParams) -> Result<Empty, RpcError> {
    let row = api.find(&params.session, None).await?;
    let session = SessionId(row.id.clone());
    if row.phase != Phase::Idle.as_str() && row.phase != crate::session::BACKGROUND {
        if !params.force {
            return Err(RpcError::new(ErrorKind::TurnRunning, "the session has an open turn")
                .hint("interrupt it first (agentctl interrupt), or force: agentctl rm --force"));
        }
        match end_turn(&api, &session, client.by()).await {
            // Nothing of it can run, and it is to go.
            Err(error) if error.kind == ErrorKind::SessionUnreadable => {}
            ended => ended?,
        }
    }
    // Marked first: whoever opens it from now on finds it gone.
    let deletion = Deletion::Hide { at_ms: Time::now().0 };
    api.registry
        .deps()
        .log
        .delete(row.key, deletion)
        .await
        .map_err(|error| storage(&error))?;
    api.registry.close(&session).await;
    if params.now {
        let purged = api.registry.deps().log.purge(row.key).await;
        purged.map_err(|error| storage(&error))?;
    }
    Ok(Empty {})
}

/// Interrupts the session's turn and waits for its end.
async fn end_turn(api: &Api, session: &SessionId, by: By) -> Result<(), RpcError> {
    api.registry
        .ask(session, |reply| Message::Interrupt(None, by.clone(), reply))
        .await?;
    let mut live = api.registry.open(session).await?.live();
    // What does not end in time is ended with its actor.
    let _ = tokio::time::timeout(DELETE_WAIT, live.wait_for(|live| live.snapshot.turn.is_none())).await;
    Ok(())
}

pub(super) async fn send(api: Arc<Api>, client: Arc<Client>, params: SendParams) -> Result<Sent, RpcError> {
    if api.draining() {
        return Err(draining());
    }
    if params.content.is_empty() {
        return Err(RpcError::new(ErrorKind::InvalidParams, "`content` is empty").hint("say something"));
    }
    let input_id = params
        .input_id
        .unwrap_or_else(|| InputId(uuid::Uuid::now_v7().to_string()));
    if input_id.0.is_empty() || input_id.0.len() > INPUT_ID_BYTES {
        return Err(RpcError::new(
            ErrorKind::InvalidParams,
            format!("`input_id` is 1 to {INPUT_ID_BYTES} bytes"),
        ));
    }
    params
        .tools
        .as_deref()
        .map(|names| check_tools(&api, names))
        .transpose()?;
    check_mode_for(params.mode, params.mode_for_ms)?;
    let row = api.find(&params.session, None).await?;
    api.keys.look_around().await;
    let redactor = &api.registry.deps().redactor;
    let without_keys = |content| match content {
        Content::Text { text } => Content::Text {
            text: redactor.clean_text(text),
        },
        other => other,
    };
    let send = Send {
        input_id,
        // A key that a person pastes is one that must not leave, too.
        content: params.content.into_iter().map(without_keys).collect(),
        delivery: params.delivery,
        mode: params.mode,
        mode_for_ms: params.mode_for_ms,
        unattended: params.unattended,
        tools: params.tools,
        timeout_ms: params.timeout_ms,
        interactive: params.interactive,
        by: client.by(),
    };
    let project = project(api.registry.deps(), &row.root_path).await;
    let sending = Sending { send, project };
    api.registry
        .ask(&SessionId(row.id), |reply| {
            Message::Send(Box::new(sending.clone()), reply)
        })
        .await
}
