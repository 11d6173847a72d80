//! `job_kill`: ends a command in the background, with all it started.

use std::sync::LazyLock;
use std::time::Duration;

use async_trait::async_trait;
use protocol::JobId;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::digest::{CallDigest, agrees};
use super::{ArgumentError, Ended, Inspected, Outcome, Place, RunContext, Spec, StopLevel, Tool, arguments};

/// From the request to end to the kill.
const KILL_AFTER: Duration = Duration::from_secs(2);

/// From the kill until the answer is that it does not end.
const GIVE_UP_AFTER: Duration = Duration::from_secs(5);

/// Ends jobs.
pub(super) struct JobKill;

/// Arguments of `job_kill`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The job, as bash named it.
    job: String,
}

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    name: "job_kill",
    description: "Ends a background job and everything it started (SIGTERM, after 2 s SIGKILL), and shows its output."
        .into(),
    schema: arguments::schema::<Arguments>(),
    writes: true,
});

#[async_trait]
impl Tool for JobKill {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    /// It ends only what this session was allowed to start, so nobody is asked; its order among other calls counts.
    async fn inspect(&self, arguments: &Value, _place: &Place) -> Result<Inspected, ArgumentError> {
        let Arguments { job: _ } = arguments::parse(arguments)?;
        Ok(Inspected {
            writes: true,
            ..Inspected::nowhere(SPEC.name, arguments)
        })
    }

    async fn run(&self, arguments: &Value, digest: &str, run: RunContext) -> Ended {
        let job = match arguments::parse::<Arguments>(arguments) {
            Ok(Arguments { job }) => JobId(job),
            Err(error) => return Ended::new(Outcome::NotRun, error.to_string()),
        };
        if !agrees(&CallDigest::nowhere(SPEC.name, arguments).finish(), digest) {
            return Ended::changed_since_approved();
        }
        let jobs = &run.place.jobs;
        for (level, patience) in [(StopLevel::Stop, KILL_AFTER), (StopLevel::Kill, GIVE_UP_AFTER)] {
            jobs.stop(&job, level);
            if tokio::time::timeout(patience, jobs.over(&job)).await.is_ok() {
                return jobs.told(&job);
            }
        }
        Ended::new(
            Outcome::Error,
            format!("job {job} was killed and has not ended yet; look again with job_output"),
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::world::World;
    use super::*;

    #[tokio::test]
    async fn a_job_that_is_not_there_is_said_to_be_none() {
        let ended = World::new().run(&JobKill, json!({"job": "j1"})).await;
        assert!(
            ended.outcome == Outcome::Error && ended.output.contains("no job j1"),
            "{}",
            ended.output
        );
    }
}
