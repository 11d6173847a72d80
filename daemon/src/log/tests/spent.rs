//! Sums of what model calls used.

use super::*;

fn call(kind: &'static str, at_ms: i64, body: &str) -> NewRow {
    NewRow {
        at_ms,
        ..row(kind, body)
    }
}

#[tokio::test]
async fn calls_are_summed_by_day_model_and_session_and_failed_ones_count_what_they_reported() -> anyhow::Result<()> {
    const DAY_MS: i64 = 86_400_000;
    let scene = Scene::open()?;
    let (one, two) = (scene.session("one").await?, scene.session("two").await?);
    let done = |at, profile: &str, input: u64, cost: &str| {
        let usage = format!(r#""usage":{{"input":{input},"output":5,"cached":1}}"#);
        call(
            "step.completed",
            at,
            &format!(r#"{{"model":{{"profile":"{profile}","model":"m"}},{usage}{cost}}}"#),
        )
    };
    let rows = vec![
        done(0, "a", 10, r#","cost":0.25"#),
        done(DAY_MS, "b", 20, ""),
        call("step.failed", DAY_MS, r#"{"usage":{"input":3,"output":0}}"#),
        call("step.failed", DAY_MS, "{}"),
        call("turn.completed", DAY_MS, r#"{"usage":{"input":33},"cost":9}"#),
    ];
    scene.log.append(append(one, 2, rows)).await?;
    scene
        .log
        .append(append(two, 2, vec![done(DAY_MS, "a", 100, r#","cost":1"#)]))
        .await?;

    let total = scene.log.spent(None, SpentBy::Nothing).await?;
    assert_eq!(total.len(), 1);
    let Some(all) = total.first() else {
        anyhow::bail!("no sum")
    };
    assert_eq!((all.calls, all.failed, all.unpriced, all.cost), (5, 2, 2, Some(1.25)));
    assert_eq!((all.usage.input, all.usage.output, all.usage.cached), (133, 15, 3));

    assert!((scene.log.cost_since(DAY_MS).await? - 1.0).abs() < 1e-9);
    assert!((scene.log.cost_since(0).await? - 1.25).abs() < 1e-9);

    let groups = async |session, by| -> anyhow::Result<Vec<(String, u64)>> {
        let sums = scene.log.spent(session, by).await?;
        Ok(sums.into_iter().map(|sum| (sum.group, sum.usage.input)).collect())
    };
    let pairs = |pairs: &[(&str, u64)]| {
        pairs
            .iter()
            .map(|(name, input)| ((*name).to_owned(), *input))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        groups(None, SpentBy::Day).await?,
        pairs(&[("1970-01-02", 123), ("1970-01-01", 10)])
    );
    assert_eq!(
        groups(None, SpentBy::Session).await?,
        pairs(&[("two", 100), ("one", 33)])
    );
    assert_eq!(
        groups(Some(one), SpentBy::Model).await?,
        pairs(&[("", 3), ("b m", 20), ("a m", 10)])
    );
    assert!(
        scene
            .log
            .spent(Some(SessionKey(99)), SpentBy::Nothing)
            .await?
            .iter()
            .all(|sum| sum.calls == 0)
    );
    Ok(())
}
