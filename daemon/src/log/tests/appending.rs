//! Appending: numbers, conflicts, groups, failures.

use super::super::faults::Faults;
use super::*;

#[tokio::test]
async fn seqs_are_gapless_and_positions_follow_commits() -> anyhow::Result<()> {
    let scene = Scene::open()?;
    let one = scene.session("one").await?;
    let two = scene.session("two").await?;
    let noticed = || row("notice.added", "{}");
    let first = scene.log.append(append(one, 2, vec![noticed(), noticed()])).await?;
    let second = scene.log.append(append(two, 2, vec![noticed()])).await?;
    let third = scene.log.append(append(one, 4, vec![noticed()])).await?;

    assert_eq!(seqs(&scene.log.read(one, 0, 100).await?), [1, 2, 3, 4]);
    assert_eq!(seqs(&scene.log.read(one, 2, 1).await?), [3]);
    assert_eq!(seqs(&scene.log.read_before(one, 4, 2).await?), [3, 2]);
    assert_eq!(second.first_pos, first.first_pos + 2);
    assert_eq!(third.first_pos, second.first_pos + 1);
    assert_eq!(scene.log.head_pos(), third.first_pos);
    Ok(())
}

#[tokio::test]
async fn what_is_appended_is_read_back_byte_for_byte() -> anyhow::Result<()> {
    let scene = Scene::open()?;
    let session = scene.session("one").await?;
    let body = r#"{"text":"naïve \u0000 🦀", "z":1,"a":2}"#;
    let sent = NewRow {
        kind: "item.completed",
        at_ms: -5,
        body: body.to_owned(),
        private: Some(vec![0, 255, 7]),
    };
    let appended = scene.log.append(append(session, 2, vec![sent])).await?;
    let expected = Row {
        seq: 2,
        pos: appended.first_pos,
        at_ms: -5,
        kind: "item.completed".to_owned(),
        body: body.to_owned(),
        private: Some(vec![0, 255, 7]),
    };
    assert_eq!(scene.log.read(session, 1, 10).await?, [expected]);
    Ok(())
}

#[tokio::test]
async fn an_append_for_another_head_is_a_conflict_and_writes_nothing() -> anyhow::Result<()> {
    let scene = Scene::open()?;
    let session = scene.session("one").await?;
    for expected in [0, 1, 3] {
        let mut stale = append(session, expected, vec![row("notice.added", "{}")]);
        stale.columns.title = Some("never".to_owned());
        assert_eq!(
            scene.log.append(stale).await,
            Err(LogError::Conflict { expected, head: 1 })
        );
    }
    assert_eq!(seqs(&scene.log.read(session, 0, 10).await?), [1]);
    let shown = scene.log.session("one").await?;
    assert_eq!(shown.map(|row| (row.head, row.title)), Some((1, None)));
    Ok(())
}

#[tokio::test]
async fn an_input_is_accepted_once_for_each_session() -> anyhow::Result<()> {
    let scene = Scene::open()?;
    let one = scene.session("one").await?;
    let two = scene.session("two").await?;
    let input = || row("input.accepted", r#"{"input_id":"i1","content":[]}"#);
    scene.log.append(append(one, 2, vec![input()])).await?;
    scene.log.append(append(two, 2, vec![input()])).await?;
    // Another kind may name the input as often as it likes.
    scene
        .log
        .append(append(one, 3, vec![row("input.settled", r#"{"input_id":"i1"}"#)]))
        .await?;
    let again = scene
        .log
        .append(append(one, 4, vec![row("turn.started", "{}"), input()]))
        .await;
    assert_eq!(again, Err(LogError::DuplicateInput));
    assert_eq!(seqs(&scene.log.read(one, 0, 10).await?), [1, 2, 3]);
    assert_eq!(scene.log.find_input(one, "i1").await?.map(|row| row.seq), Some(2));
    assert_eq!(scene.log.find_input(one, "i2").await?, None);
    Ok(())
}

#[tokio::test]
async fn a_session_id_is_used_once_and_a_failed_create_leaves_no_session() -> anyhow::Result<()> {
    let scene = Scene::open()?;
    scene.session("one").await?;
    let again = scene.log.create(new_session("one"), first(&["session.created"])).await;
    assert_eq!(again, Err(LogError::Exists));
    let mut late = first(&["session.created"]);
    late.expected_seq = 2;
    let refused = scene.log.create(new_session("two"), late).await;
    assert_eq!(refused, Err(LogError::Conflict { expected: 2, head: 0 }));
    assert_eq!(scene.log.session("two").await?, None);
    let orphan = NewSession {
        parent: Some(SessionKey(99)),
        ..new_session("three")
    };
    assert_eq!(
        scene.log.create(orphan, first(&["session.created"])).await,
        Err(LogError::NoSession)
    );
    assert_eq!(
        scene.log.append(append(SessionKey(99), 1, Vec::new())).await,
        Err(LogError::NoSession)
    );
    Ok(())
}

#[tokio::test]
async fn a_bad_append_of_a_group_fails_alone() -> anyhow::Result<()> {
    let scene = Scene::open()?;
    let (one, two) = (scene.session("one").await?, scene.session("two").await?);
    let (log, dir) = (scene.log, scene.dir);
    scene.join.shutdown().await;
    drop(log);

    // The writer starts when all three wait, so that they are one group.
    let (log, writer) = EventLog::prepare(dir.path())?;
    let notice = || vec![row("notice.added", "{}")];
    let (before, bad, after, thread) = tokio::join!(
        log.append(append(one, 2, notice())),
        log.append(append(one, 9, notice())),
        log.append(append(two, 2, notice())),
        async { writer.spawn() },
    );
    let join = LogJoin {
        log: log.clone(),
        thread: thread?,
    };
    assert_eq!(bad, Err(LogError::Conflict { expected: 9, head: 2 }));
    assert_eq!(after?.first_pos, before?.first_pos + 1);
    assert_eq!(seqs(&log.read(one, 0, 10).await?), [1, 2]);
    assert_eq!(seqs(&log.read(two, 0, 10).await?), [1, 2]);
    join.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn a_failed_commit_fails_its_whole_group_and_shows_nothing_of_it() -> anyhow::Result<()> {
    let scene = Scene::open()?;
    let (one, two) = (scene.session("one").await?, scene.session("two").await?);
    let dir = scene.dir;
    scene.join.shutdown().await;

    let (log, writer) = EventLog::prepare(dir.path())?;
    let faults = Faults::default();
    let writer = writer.with_faults(faults.clone());
    faults.fail_commits(1);
    let head = log.head_pos();
    let watched = log.committed_pos();
    let notice = || vec![row("notice.added", "{}")];
    let (first, second, bad, thread) = tokio::join!(
        log.append(append(one, 2, notice())),
        log.append(append(two, 2, notice())),
        log.append(append(two, 7, notice())),
        async { writer.spawn() },
    );
    let join = LogJoin {
        log: log.clone(),
        thread: thread?,
    };
    assert!(matches!(first, Err(LogError::Storage { .. })), "{first:?}");
    assert!(matches!(second, Err(LogError::Storage { .. })), "{second:?}");
    assert_eq!(bad, Err(LogError::Conflict { expected: 7, head: 2 }));
    assert_eq!(log.head_pos(), head);
    assert!(!watched.has_changed()?);
    assert_eq!(seqs(&log.read(one, 0, 10).await?), [1]);
    assert_eq!(seqs(&log.read(two, 0, 10).await?), [1]);

    // The database is opened again by itself.
    log.probe().await?;
    log.append(append(one, 2, notice())).await?;
    assert_eq!(seqs(&log.read(one, 0, 10).await?), [1, 2]);
    join.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn a_probe_fails_as_long_as_commits_fail() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let (log, writer) = EventLog::prepare(dir.path())?;
    let faults = Faults::default();
    let thread = writer.with_faults(faults.clone()).spawn()?;
    let join = LogJoin {
        log: log.clone(),
        thread,
    };
    faults.fail_commits(2);
    assert!(log.probe().await.is_err());
    assert!(log.probe().await.is_err());
    log.probe().await?;
    join.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn a_full_queue_refuses_and_those_who_may_wait_wait() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let (log, writer) = EventLog::prepare(dir.path())?;
    let creates =
        (0..queue::QUEUED_WRITES).map(|n| log.create(new_session(&n.to_string()), first(&["session.created"])));
    let mut creates = std::pin::pin!(futures::future::join_all(creates));
    assert!(futures::poll!(&mut creates).is_pending());
    let refused = log.create(new_session("late"), first(&["session.created"])).await;
    assert_eq!(refused, Err(LogError::Busy));
    let patient = append(SessionKey(1), 2, vec![row("notice.added", "{}")]);
    let (patient, thread, created) =
        tokio::join!(log.append_when_free(patient), async { writer.spawn() }, &mut creates);
    patient?;
    created.into_iter().collect::<Result<Vec<_>, _>>()?;
    LogJoin {
        log: log.clone(),
        thread: thread?,
    }
    .shutdown()
    .await;
    Ok(())
}

#[tokio::test]
async fn bytes_that_wait_are_bounded_but_one_large_append_passes() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let (log, writer) = EventLog::prepare(dir.path())?;
    let large = || {
        let mut append = first(&["session.created"]);
        append.rows.push(row(
            "item.completed",
            &format!("\"{}\"", "x".repeat(queue::QUEUED_BYTES)),
        ));
        append
    };
    let (passed, refused, thread) = tokio::join!(
        log.create(new_session("one"), large()),
        log.create(new_session("two"), first(&["session.created"])),
        async { writer.spawn() },
    );
    assert_eq!(refused, Err(LogError::Busy));
    let session = passed?.session;
    // A page holds a row of any size, and ends after it.
    assert_eq!(seqs(&log.read(session, 0, 10).await?), [1, 2]);
    assert_eq!(seqs(&log.read_before(session, 3, 10).await?), [2]);
    LogJoin { log, thread: thread? }.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn a_commit_is_announced_before_its_append_is_answered() -> anyhow::Result<()> {
    let scene = Scene::open()?;
    let mut watched = scene.log.committed_pos();
    watched.mark_unchanged();
    let appended = scene
        .log
        .create(new_session("one"), first(&["session.created", "turn.started"]))
        .await?;
    assert!(watched.has_changed()?);
    assert_eq!(*watched.borrow_and_update(), appended.first_pos + 1);
    Ok(())
}

#[tokio::test]
async fn an_append_may_change_columns_alone() -> anyhow::Result<()> {
    let scene = Scene::open()?;
    let session = scene.session("one").await?;
    let mut saved = append(session, 2, Vec::new());
    saved.columns.state = Some(SavedState {
        bytes: vec![1, 2, 3],
        seq: 1,
        version: 4,
    });
    saved.columns.phase = Some("calling");
    let state = saved.columns.state.clone();
    scene.log.append(saved).await?;
    assert_eq!(scene.log.saved_state(session).await?, state);
    let shown = scene.log.session("one").await?;
    assert_eq!(shown.map(|row| (row.head, row.phase)), Some((1, "calling".to_owned())));
    Ok(())
}
