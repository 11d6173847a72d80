//! Opening: modes, whose file it is, migrations, crashes, the end.

use std::os::unix::fs::PermissionsExt;

use rusqlite::Connection;

use super::*;

fn mode(path: &Path) -> anyhow::Result<u32> {
    Ok(std::fs::metadata(path)?.permissions().mode() & 0o7777)
}

/// What is open in SQLite lies in these files.
fn companions(dir: &Path) -> [PathBuf; 3] {
    ["", "-wal", "-shm"].map(|suffix| dir.join(format!("{DATABASE}{suffix}")))
}

#[tokio::test]
async fn every_file_is_for_the_owner_alone() -> anyhow::Result<()> {
    let above = tempfile::tempdir()?;
    let dir = above.path().join("state/agentd");
    let (log, _join) = EventLog::open(&dir)?;
    log.create(new_session("one"), first(&["session.created"])).await?;
    assert_eq!(mode(&dir)?, 0o700);
    for file in companions(&dir) {
        assert_eq!(mode(&file)?, 0o600, "{}", file.display());
    }
    Ok(())
}

#[tokio::test]
async fn a_mode_that_someone_widened_is_narrowed() -> anyhow::Result<()> {
    let scene = Scene::open()?;
    let file = database(scene.dir.path());
    scene.join.shutdown().await;
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644))?;
    let (_log, _join) = EventLog::open(scene.dir.path())?;
    assert_eq!(mode(&file)?, 0o600);
    Ok(())
}

#[tokio::test]
async fn what_was_answered_survives_a_crash() -> anyhow::Result<()> {
    let scene = Scene::open()?;
    let session = scene.session("one").await?;
    let appended = scene
        .log
        .append(append(session, 2, vec![row("turn.started", r#"{"turn":"t2"}"#)]))
        .await?;

    // The files as they are while the log is open: what a killed daemon leaves.
    let left = tempfile::tempdir()?;
    for file in companions(scene.dir.path()).iter().take(2) {
        let name = file.file_name().ok_or_else(|| anyhow::anyhow!("a name"))?;
        std::fs::copy(file, left.path().join(name))?;
    }
    let (log, _join) = EventLog::open(left.path())?;
    assert_eq!(log.head_pos(), appended.first_pos);
    assert_eq!(log.read(session, 0, 10).await?, scene.log.read(session, 0, 10).await?);
    assert_eq!(log.session("one").await?.map(|row| row.head), Some(2));
    Ok(())
}

#[tokio::test]
async fn a_shut_down_log_is_one_file_and_takes_nothing_more() -> anyhow::Result<()> {
    let scene = Scene::open()?;
    let session = scene.session("one").await?;
    assert!(std::fs::metadata(&companions(scene.dir.path())[1])?.len() > 0);
    scene.log.read(session, 0, 10).await?;
    scene.join.shutdown().await;

    let [_, wal, shm] = companions(scene.dir.path());
    assert!(!wal.exists() && !shm.exists());
    assert_eq!(
        scene.log.append(append(session, 2, Vec::new())).await,
        Err(LogError::Closed)
    );
    assert_eq!(scene.log.read(session, 0, 10).await, Err(LogError::Closed));
    let (log, _join) = EventLog::open(scene.dir.path())?;
    assert_eq!(seqs(&log.read(session, 0, 10).await?), [1]);
    Ok(())
}

#[tokio::test]
async fn the_writer_ends_when_all_handles_are_gone() -> anyhow::Result<()> {
    let Scene { dir, log, join } = Scene::open()?;
    let LogJoin { log: other, thread } = join;
    drop((log, other));
    assert!(tokio::task::spawn_blocking(move || thread.join()).await?.is_ok());
    assert!(!companions(dir.path())[1].exists());
    Ok(())
}

#[test]
fn a_newer_schema_is_refused_and_left_alone() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    drop(EventLog::prepare(dir.path())?);
    let known = schema::latest();
    Connection::open(database(dir.path()))?.pragma_update(None, "user_version", known + 1)?;
    let refused = EventLog::open(dir.path()).err();
    let path = database(dir.path());
    assert_eq!(
        refused,
        Some(LogError::NewerSchema {
            path: path.clone(),
            found: known + 1,
            known
        })
    );
    assert_eq!(schema::version(&Connection::open(path)?)?, known + 1);
    Ok(())
}

#[test]
fn a_file_that_is_not_ours_is_refused_and_left_alone() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let path = database(dir.path());
    std::fs::write(
        &path,
        "this is a letter to my aunt, and it is long enough to be a page of it. ".repeat(99),
    )?;
    assert_eq!(
        EventLog::open(dir.path()).err(),
        Some(LogError::NotOurs { path: path.clone() })
    );
    assert!(std::fs::read_to_string(&path)?.starts_with("this is a letter"));

    std::fs::remove_file(&path)?;
    Connection::open(&path)?.execute_batch("CREATE TABLE recipes(name TEXT)")?;
    assert_eq!(EventLog::open(dir.path()).err(), Some(LogError::NotOurs { path }));
    Ok(())
}

#[test]
fn a_link_in_place_of_the_database_is_not_followed() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let target = dir.path().join("elsewhere");
    std::os::unix::fs::symlink(&target, database(dir.path()))?;
    assert!(matches!(EventLog::open(dir.path()), Err(LogError::Open { .. })));
    assert!(!target.exists());
    Ok(())
}

#[test]
fn the_migrations_are_sound() -> anyhow::Result<()> {
    schema::migrations()?.validate()?;
    Ok(())
}

/// A database as an agentd of schema `version` left it: one session with one event.
fn make_old(dir: &Path, version: usize) -> anyhow::Result<()> {
    let mut connection = Connection::open(database(dir))?;
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    connection.pragma_update(None, "application_id", 0x6167_6e74)?;
    schema::migrations()?.to_version(&mut connection, version)?;
    connection.execute_batch(
        "INSERT INTO sessions (id, root, phase, head, changed_pos, root_path, cwd, created_at, updated_at)
           VALUES ('old', 1, 'idle', 1, 1, '/project', '/project', 1, 1);
         INSERT INTO events (session, seq, at, kind, body) VALUES (1, 1, 1, 'session.created', '{}');",
    )?;
    Ok(())
}

#[tokio::test]
async fn every_earlier_schema_is_migrated_after_a_backup() -> anyhow::Result<()> {
    let latest = schema::latest();
    assert!(latest > 1, "there is no earlier schema to start from");
    for version in 1..latest {
        let dir = tempfile::tempdir()?;
        make_old(dir.path(), usize::try_from(version)?)?;
        let (log, join) = EventLog::open(dir.path())?;
        let old = log
            .session("old")
            .await?
            .ok_or_else(|| anyhow::anyhow!("the session is lost"))?;
        assert_eq!(seqs(&log.read(old.key, 0, 10).await?), [1]);
        log.append(append(old.key, 2, vec![row("notice.added", "{}")])).await?;
        assert_eq!(log.list_approvals(ApprovalFilter::default()).await?, []);
        log.put_blob(old.key, b"new".to_vec()).await?;
        join.shutdown().await;

        let backup = schema::backup_path(&database(dir.path()), version);
        assert_eq!(mode(&backup)?, 0o600);
        let backup = Connection::open(&backup)?;
        assert_eq!(schema::version(&backup)?, version);
        let events: u64 = backup.query_row("SELECT count(*) FROM events", [], |row| row.get(0))?;
        assert_eq!(events, 1);
    }
    Ok(())
}

#[tokio::test]
async fn a_database_of_this_schema_is_not_copied() -> anyhow::Result<()> {
    let scene = Scene::open()?;
    scene.join.shutdown().await;
    let (_log, join) = EventLog::open(scene.dir.path())?;
    join.shutdown().await;
    let names: Vec<_> = std::fs::read_dir(scene.dir.path())?.collect::<Result<_, _>>()?;
    assert_eq!(names.len(), 1, "{names:?}");
    Ok(())
}

#[tokio::test]
async fn connections_are_durable_and_readers_cannot_write() -> anyhow::Result<()> {
    fn number(connection: &Connection, pragma: &str) -> Result<i64, LogError> {
        Ok(connection.pragma_query_value(None, pragma, |row| row.get(0))?)
    }
    fn settings(connection: &Connection) -> Result<Vec<i64>, LogError> {
        let names = [
            "synchronous",
            "fullfsync",
            "foreign_keys",
            "trusted_schema",
            "busy_timeout",
            "auto_vacuum",
            "query_only",
        ];
        names.into_iter().map(|name| number(connection, name)).collect()
    }
    let scene = Scene::open()?;
    let writer = scene.log.queue.write(0, WhenFull::Wait, settings).await?;
    let reader = scene.log.readers.read(settings).await?;
    assert_eq!(writer, [2, 1, 1, 0, 5000, 2, 0]);
    assert_eq!(reader, [2, 1, 1, 0, 5000, 2, 1]);
    let auto = scene
        .log
        .queue
        .write(0, WhenFull::Wait, |connection| number(connection, "wal_autocheckpoint"))
        .await?;
    assert_eq!(auto, 0);
    let written = scene
        .log
        .readers
        .read(|connection| Ok(connection.execute_batch("DELETE FROM events")?))
        .await;
    assert!(
        matches!(
            written,
            Err(LogError::Storage {
                fault: StorageFault::ReadOnly,
                ..
            })
        ),
        "{written:?}"
    );
    Ok(())
}
