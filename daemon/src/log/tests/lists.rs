//! Lists, references, approvals, the cursor over all sessions.

use super::*;

fn ids(rows: &[SessionRow]) -> Vec<&str> {
    rows.iter().map(|row| row.id.as_str()).collect()
}

#[tokio::test]
async fn a_list_shows_this_project_newest_use_first() -> anyhow::Result<()> {
    let scene = Scene::open()?;
    let one = scene.session("one").await?;
    scene.session("two").await?;
    let elsewhere = NewSession {
        root_path: "/other".to_owned(),
        ..new_session("elsewhere")
    };
    scene.log.create(elsewhere, first(&["session.created"])).await?;
    let throw_away = NewSession {
        lifetime: Lifetime::Ephemeral,
        ..new_session("throw-away")
    };
    scene.log.create(throw_away, first(&["session.created"])).await?;
    let child = NewSession {
        parent: Some(one),
        ..new_session("child")
    };
    scene.log.create(child, first(&["session.created"])).await?;
    let archived = scene.session("archived").await?;
    let mut archive = append(archived, 2, vec![row("session.changed", "{}")]);
    archive.columns.archived = Some(true);
    scene.log.append(archive).await?;
    scene
        .log
        .append(append(one, 2, vec![row("notice.added", "{}")]))
        .await?;

    let here = SessionFilter {
        root_path: Some("/project".to_owned()),
        ..SessionFilter::default()
    };
    assert_eq!(ids(&scene.log.sessions(here).await?), ["one", "two"]);
    let all = scene.log.sessions(SessionFilter::default()).await?;
    assert_eq!(ids(&all), ["one", "elsewhere", "two"]);
    let after_first = all.first().map(|row| row.changed_pos);
    let page = SessionFilter {
        before_pos: after_first,
        limit: 1,
        ..SessionFilter::default()
    };
    assert_eq!(ids(&scene.log.sessions(page).await?), ["elsewhere"]);
    let every = SessionFilter {
        children: true,
        ephemeral: true,
        archived: true,
        ..SessionFilter::default()
    };
    assert_eq!(scene.log.sessions(every).await?.len(), 6);
    Ok(())
}

#[tokio::test]
async fn a_list_shows_what_appends_said() -> anyhow::Result<()> {
    let scene = Scene::open()?;
    let session = scene.session("one").await?;
    let mut said = append(session, 2, vec![row("turn.completed", "{}")]);
    said.columns = Columns {
        phase: Some("idle"),
        queued: Some(3),
        name: Some("fix-it".to_owned()),
        title: Some("Fix it".to_owned()),
        model: Some("sonnet".to_owned()),
        mode: Some("ask".to_owned()),
        outcome: Some("completed".to_owned()),
        cwd: Some("/project/b".to_owned()),
        added_roots: Some("[\"/other\"]".to_owned()),
        ..Columns::default()
    };
    let appended = scene.log.append(said).await?;
    let expected = SessionRow {
        key: session,
        id: "one".to_owned(),
        name: Some("fix-it".to_owned()),
        root: session,
        parent: None,
        phase: "idle".to_owned(),
        head: 2,
        changed_pos: appended.first_pos,
        queued: 3,
        title: Some("Fix it".to_owned()),
        model: Some("sonnet".to_owned()),
        mode: Some("ask".to_owned()),
        outcome: Some("completed".to_owned()),
        root_path: "/project".to_owned(),
        cwd: "/project/b".to_owned(),
        created_at_ms: 1_000,
        updated_at_ms: 2_000,
        lifetime: Lifetime::Kept,
        archived: false,
        deleted_at_ms: None,
        waiting_approvals: 0,
        added_roots: Some("[\"/other\"]".to_owned()),
    };
    assert_eq!(scene.log.session("one").await?.as_ref(), Some(&expected));
    assert_eq!(scene.log.session_by_key(session).await?.as_ref(), Some(&expected));
    let unfinished = SessionFilter {
        unfinished: true,
        ..SessionFilter::default()
    };
    assert_eq!(scene.log.sessions(unfinished.clone()).await?, [expected]);
    let mut done = append(session, 3, Vec::new());
    done.columns.queued = Some(0);
    scene.log.append(done).await?;
    assert_eq!(scene.log.sessions(unfinished).await?, []);
    Ok(())
}

#[tokio::test]
async fn a_name_belongs_to_one_living_session() -> anyhow::Result<()> {
    let scene = Scene::open()?;
    let named = |id: &str| NewSession {
        name: Some("fix".to_owned()),
        ..new_session(id)
    };
    let one = scene
        .log
        .create(named("one"), first(&["session.created"]))
        .await?
        .session;
    assert_eq!(
        scene.log.create(named("two"), first(&["session.created"])).await,
        Err(LogError::NameTaken)
    );
    scene.log.delete(one, Deletion::Hide { at_ms: 5 }).await?;
    scene.log.create(named("two"), first(&["session.created"])).await?;
    assert_eq!(scene.log.delete(one, Deletion::Restore).await, Err(LogError::NameTaken));
    Ok(())
}

#[tokio::test]
async fn a_session_is_found_by_id_name_part_and_last() -> anyhow::Result<()> {
    let scene = Scene::open()?;
    let first_id = "0198a3b2-0000-7000-8000-0000000cafe1";
    let second_id = "0198a3b2-1111-7000-8000-0000000beef2";
    scene.session(first_id).await?;
    let second = NewSession {
        name: Some("cafe1".to_owned()),
        ..new_session(second_id)
    };
    scene.log.create(second, first(&["session.created"])).await?;

    let found = async |text: &str| -> anyhow::Result<String> {
        Ok(match scene.log.resolve(text, Some("/project")).await? {
            Resolved::One(row) => row.id,
            Resolved::Ambiguous(rows) => format!("{} of them, newest {}", rows.len(), rows[0].id),
            Resolved::None { elsewhere } => format!("none, {} elsewhere", elsewhere.len()),
        })
    };
    assert_eq!(found(first_id).await?, first_id);
    assert_eq!(found("cafe1").await?, second_id, "a name goes before a part of an id");
    assert_eq!(found("0cafe1").await?, first_id);
    assert_eq!(found("BEEF2").await?, second_id);
    assert_eq!(found("0198a3b2-1").await?, second_id);
    assert_eq!(found("0198").await?, format!("2 of them, newest {second_id}"));
    assert_eq!(found("ef2").await?, "none, 0 elsewhere", "three letters are too few");
    assert_eq!(
        found("a3b2").await?,
        "none, 0 elsewhere",
        "neither the beginning nor the end"
    );
    assert_eq!(found("%%%%").await?, "none, 0 elsewhere");
    assert_eq!(found("last").await?, second_id);
    assert_eq!(
        scene.log.resolve("last", Some("/nowhere")).await?,
        Resolved::None {
            elsewhere: scene.log.sessions(SessionFilter::default()).await?
        }
    );
    Ok(())
}

#[tokio::test]
async fn approvals_are_listed_until_settled_and_at_every_ancestor() -> anyhow::Result<()> {
    let scene = Scene::open()?;
    let parent = scene.session("parent").await?;
    let child = NewSession {
        parent: Some(parent),
        ..new_session("child")
    };
    let child = scene.log.create(child, first(&["session.created"])).await?.session;
    let other = scene.session("other").await?;
    let ask = |session, seq, id: &str| {
        let mut ask = append(
            session,
            seq,
            vec![row("turn.started", "{}"), row("approval.requested", "{\"a\":1}")],
        );
        ask.approvals = vec![ApprovalChange::Requested {
            id: id.to_owned(),
            row: 1,
        }];
        ask
    };
    let asked = scene.log.append(ask(child, 2, "a1")).await?;
    scene.log.append(ask(other, 2, "a2")).await?;
    scene.log.append(ask(parent, 2, "a3")).await?;

    let list = async |filter: ApprovalFilter| -> anyhow::Result<Vec<String>> {
        Ok(scene
            .log
            .list_approvals(filter)
            .await?
            .into_iter()
            .map(|row| row.id)
            .collect())
    };
    let below = |session| ApprovalFilter {
        below: Some(session),
        ..ApprovalFilter::default()
    };
    assert_eq!(list(ApprovalFilter::default()).await?, ["a1", "a2", "a3"]);
    assert_eq!(list(below(parent)).await?, ["a1", "a3"]);
    assert_eq!(list(below(child)).await?, ["a1"]);
    let waiting = |id: &'static str| {
        let log = scene.log.clone();
        async move { anyhow::Ok(log.session(id).await?.map(|row| row.waiting_approvals)) }
    };
    assert_eq!(
        (
            waiting("parent").await?,
            waiting("child").await?,
            waiting("other").await?
        ),
        (Some(2), Some(1), Some(1))
    );

    let found = scene
        .log
        .approval("a1")
        .await?
        .ok_or_else(|| anyhow::anyhow!("a1 is lost"))?;
    assert_eq!(
        (found.path, found.session_id),
        (vec!["parent".to_owned(), "child".to_owned()], "child".to_owned())
    );
    assert_eq!(
        (found.requested.pos, found.requested.body.as_str()),
        (asked.first_pos + 1, "{\"a\":1}")
    );

    let settle = |session, seq| {
        let mut settle = append(session, seq, vec![row("approval.resolved", "{}")]);
        settle.approvals = vec![ApprovalChange::Resolved {
            id: "a1".to_owned(),
            row: 0,
        }];
        settle
    };
    let stranger = scene.log.append(settle(other, 4)).await;
    assert!(matches!(stranger, Err(LogError::Refused(_))), "{stranger:?}");
    let settled = scene.log.append(settle(child, 4)).await?;
    assert_eq!(list(ApprovalFilter::default()).await?, ["a2", "a3"]);
    assert_eq!(waiting("parent").await?, Some(1));
    let with = ApprovalFilter {
        settled: Settled::With,
        after_pos: asked.first_pos,
        ..below(parent)
    };
    assert_eq!(list(with).await?, ["a1", "a3"]);
    assert_eq!(
        scene.log.approval("a1").await?.and_then(|row| row.resolved_pos),
        Some(settled.first_pos)
    );
    let twice = scene.log.append(settle(child, 5)).await;
    assert!(matches!(twice, Err(LogError::Refused(_))), "{twice:?}");
    Ok(())
}

#[tokio::test]
async fn the_cursor_over_all_sessions_takes_kinds_and_goes_on_where_it_was() -> anyhow::Result<()> {
    let scene = Scene::open()?;
    let (one, two) = (scene.session("one").await?, scene.session("two").await?);
    scene
        .log
        .append(append(
            one,
            2,
            vec![row("turn.started", "{}"), row("turn.completed", "{}")],
        ))
        .await?;
    let last = scene
        .log
        .append(append(two, 2, vec![row("turn.started", "{}")]))
        .await?;

    let shown = async |pos, limit, kinds: &[&str]| -> anyhow::Result<Vec<(String, u64)>> {
        let rows = scene.log.after_pos(pos, limit, kinds).await?;
        Ok(rows.into_iter().map(|(_, id, row)| (id, row.seq)).collect())
    };
    let turns = [("one".to_owned(), 2), ("two".to_owned(), 2)];
    assert_eq!(shown(0, 10, &["turn.started"]).await?, turns);
    assert_eq!(shown(0, 1, &["turn.started"]).await?, turns[..1]);
    assert_eq!(shown(last.first_pos - 1, 10, &[]).await?, turns[1..]);
    assert_eq!(shown(last.first_pos, 10, &[]).await?, []);
    assert_eq!(shown(0, 10, &["no.such"]).await?, []);
    Ok(())
}

#[tokio::test]
async fn the_beginning_of_the_last_turns_is_found() -> anyhow::Result<()> {
    let scene = Scene::open()?;
    let session = scene.session("one").await?;
    let turn = || [row("turn.started", "{}"), row("turn.completed", "{}")];
    let rows = turn().into_iter().chain(turn()).chain(turn()).collect();
    scene.log.append(append(session, 2, rows)).await?;
    assert_eq!(scene.log.seq_of_nth_last(session, "turn.started", 1).await?, Some(6));
    assert_eq!(scene.log.seq_of_nth_last(session, "turn.started", 3).await?, Some(2));
    assert_eq!(scene.log.seq_of_nth_last(session, "turn.started", 4).await?, None);
    Ok(())
}
