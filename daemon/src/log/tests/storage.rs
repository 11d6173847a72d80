//! Full disks, large logs, blobs, deletion.

use protocol::Time;
use rusqlite::Connection;

use super::*;

/// Forbids the writer's connection to let the database grow by more than `pages`.
async fn limit_growth(log: &EventLog, pages: u64) -> Result<(), LogError> {
    let work = move |connection: &Connection| {
        let used: u64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
        connection.pragma_update_and_check(None, "max_page_count", used + pages, |_| Ok(()))?;
        Ok(())
    };
    log.queue.write(0, WhenFull::Wait, work).await
}

#[tokio::test]
async fn a_full_disk_stops_appends_but_not_reads_and_ends_when_there_is_room() -> anyhow::Result<()> {
    let scene = Scene::open()?;
    let session = scene.session("one").await?;
    limit_growth(&scene.log, 2).await?;
    let large = || {
        append(
            session,
            2,
            vec![row("item.completed", &format!("\"{}\"", "x".repeat(100_000)))],
        )
    };
    let full = scene.log.append(large()).await;
    assert!(
        matches!(
            full,
            Err(LogError::Storage {
                fault: StorageFault::Full,
                ..
            })
        ),
        "{full:?}"
    );
    assert_eq!(seqs(&scene.log.read(session, 0, 10).await?), [1]);

    limit_growth(&scene.log, 1_000).await?;
    scene.log.probe().await?;
    scene.log.append(large()).await?;
    assert_eq!(seqs(&scene.log.read(session, 0, 10).await?), [1, 2]);
    Ok(())
}

#[tokio::test]
async fn pages_end_at_their_number_of_rows() -> anyhow::Result<()> {
    let scene = Scene::open()?;
    let session = scene.session("one").await?;
    let rows = (0..PAGE_ROWS + 50).map(|_| row("notice.added", "{}")).collect();
    scene.log.append(append(session, 2, rows)).await?;
    let forwards = scene.log.read(session, 0, usize::MAX).await?;
    assert_eq!(
        (forwards.len(), forwards.last().map(|row| row.seq)),
        (PAGE_ROWS, Some(200))
    );
    assert_eq!(scene.log.read(session, 200, usize::MAX).await?.len(), 51);
    assert_eq!(
        scene.log.read_before(session, u64::MAX, usize::MAX).await?.len(),
        PAGE_ROWS
    );
    assert_eq!(scene.log.after_pos(0, usize::MAX, &[]).await?.len(), PAGE_ROWS);
    Ok(())
}

#[tokio::test]
async fn the_write_ahead_log_is_written_back_while_the_log_is_open() -> anyhow::Result<()> {
    fn database_bytes(dir: &Path) -> anyhow::Result<u64> {
        Ok(std::fs::metadata(database(dir))?.len())
    }
    let scene = Scene::open()?;
    let session = scene.session("one").await?;
    let body = format!("\"{}\"", "x".repeat(3 * 1024 * 1024));
    scene
        .log
        .append(append(session, 2, vec![row("item.completed", &body)]))
        .await?;
    // The answer comes before the checkpoint, which waits for a moment without writes.
    let written_back = async {
        while database_bytes(scene.dir.path())? < 3 * 1024 * 1024 {
            tokio::task::yield_now().await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), written_back).await??;
    Ok(())
}

#[tokio::test]
async fn a_blob_is_stored_once_and_goes_with_its_last_session() -> anyhow::Result<()> {
    let scene = Scene::open()?;
    let (one, two) = (scene.session("one").await?, scene.session("two").await?);
    let data = vec![7; 100_000];
    let hash = scene.log.put_blob(one, data.clone()).await?;
    assert_eq!(scene.log.put_blob(two, data.clone()).await?, hash);
    assert_eq!(
        scene.log.put_blob(SessionKey(99), data.clone()).await,
        Err(LogError::NoSession)
    );
    assert_eq!(BlobHash::parse(&hash.to_string()), Some(hash));
    let stored = |log: EventLog| async move {
        let count = |connection: &Connection| {
            Ok(connection.query_row("SELECT count(*) FROM blobs", [], |row| row.get::<_, u64>(0))?)
        };
        log.readers.read(count).await
    };
    assert_eq!(stored(scene.log.clone()).await?, 1);
    let none = scene.session("three").await?;
    assert_eq!(scene.log.blob_part(none, hash, 0, 1).await?, None, "it never had it");
    let part = |bytes: u64, size: usize| {
        Some(BlobPart {
            bytes,
            data: vec![7; size],
        })
    };
    for (offset, limit, size) in [
        (0, 100_001, 100_000),
        (99_990, 20, 10),
        (100_000, 5, 0),
        (u64::MAX, u64::MAX, 0),
    ] {
        assert_eq!(
            scene.log.blob_part(two, hash, offset, limit).await?,
            part(100_000, size)
        );
    }

    scene.log.delete(one, Deletion::Hide { at_ms: 5 }).await?;
    scene.log.purge(one).await?;
    assert_eq!(scene.log.blob_part(one, hash, 0, 1).await?, None);
    assert_eq!(scene.log.blob_part(two, hash, 0, 1).await?, part(100_000, 1));
    scene.log.delete(two, Deletion::Hide { at_ms: 5 }).await?;
    scene.log.purge(two).await?;
    assert_eq!(scene.log.blob_part(two, hash, 0, 1).await?, None);
    assert_eq!(stored(scene.log.clone()).await?, 0);
    Ok(())
}

#[test]
fn only_64_hex_digits_are_a_blob_hash() {
    let hash = BlobHash::of(b"");
    assert_eq!(
        hash.to_string(),
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    );
    for wrong in [
        "",
        "e3b0",
        &"+1".repeat(32),
        &"é".repeat(32),
        &"g".repeat(64),
        &"0".repeat(65),
    ] {
        assert_eq!(BlobHash::parse(wrong), None, "{wrong}");
    }
}

#[tokio::test]
async fn a_deleted_session_is_hidden_with_its_descendants_until_restored() -> anyhow::Result<()> {
    let scene = Scene::open()?;
    let parent = scene.session("parent").await?;
    let child = NewSession {
        parent: Some(parent),
        ..new_session("child")
    };
    scene.log.create(child, first(&["session.created"])).await?;
    let all = SessionFilter {
        children: true,
        ..SessionFilter::default()
    };

    scene.log.delete(parent, Deletion::Hide { at_ms: 5 }).await?;
    assert_eq!(scene.log.sessions(all.clone()).await?, []);
    assert_eq!(scene.log.after_pos(0, 10, &[]).await?, []);
    let found = scene.log.session("child").await?;
    assert_eq!(found.and_then(|row| row.deleted_at_ms), Some(5));

    scene.log.delete(parent, Deletion::Restore).await?;
    assert_eq!(scene.log.sessions(all).await?.len(), 2);
    assert_eq!(
        scene.log.delete(SessionKey(99), Deletion::Restore).await,
        Err(LogError::NoSession)
    );
    Ok(())
}

#[tokio::test]
async fn only_a_deleted_session_is_purged_and_then_wholly() -> anyhow::Result<()> {
    let scene = Scene::open()?;
    let (one, two) = (scene.session("one").await?, scene.session("two").await?);
    let rows = || (0..1_200).map(|_| row("notice.added", "{}")).collect();
    scene.log.append(append(one, 2, rows())).await?;
    let last = scene.log.append(append(two, 2, rows())).await?.first_pos + 1_199;
    assert!(matches!(scene.log.purge(one).await, Err(LogError::Refused(_))));
    assert_eq!(scene.log.read(one, 0, 10).await?.len(), 10);

    scene.log.delete(one, Deletion::Hide { at_ms: 5 }).await?;
    scene.log.purge(one).await?;
    assert_eq!(scene.log.session("one").await?, None);
    assert_eq!(scene.log.read(one, 0, 10).await?, []);
    assert_eq!(scene.log.read(two, 1_200, 10).await?.len(), 1);
    assert_eq!(scene.log.head_pos(), last);
    // Done again after a crash it changes nothing.
    scene.log.purge(one).await?;
    Ok(())
}

#[tokio::test]
async fn a_deleted_session_is_taken_away_after_a_week_and_no_sooner() -> anyhow::Result<()> {
    let scene = Scene::open()?;
    let (gone, _kept) = (scene.session("gone").await?, scene.session("kept").await?);
    let deleted_at = 1_000;
    scene.log.delete(gone, Deletion::Hide { at_ms: deleted_at }).await?;
    retention::once(&scene.log, Time(deleted_at + retention::GRACE_MS)).await?;
    assert!(scene.log.session("gone").await?.is_some());
    retention::once(&scene.log, Time(deleted_at + retention::GRACE_MS + 1)).await?;
    assert!(scene.log.session("gone").await?.is_none());
    assert!(scene.log.session("kept").await?.is_some());
    Ok(())
}

#[tokio::test]
async fn a_clock_that_jumps_takes_little_at_once() -> anyhow::Result<()> {
    let scene = Scene::open()?;
    for name in 0..20 {
        let session = scene.session(&format!("s{name}")).await?;
        scene.log.delete(session, Deletion::Hide { at_ms: name }).await?;
    }
    retention::once(&scene.log, Time(i64::MAX)).await?;
    let filter = SessionFilter {
        deleted: true,
        ..SessionFilter::default()
    };
    assert_eq!(scene.log.sessions(filter).await?.len(), 18);
    Ok(())
}
