//! `job_output`: what a command in the background has printed since the last look, and how it ended.

use std::sync::LazyLock;
use std::time::Duration;

use async_trait::async_trait;
use protocol::JobId;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::digest::{CallDigest, agrees};
use super::{ArgumentError, Ended, Inspected, Outcome, Place, RunContext, Spec, StopLevel, Tool, arguments, duration};

/// Looks at jobs.
pub(super) struct JobOutput;

/// Arguments of `job_output`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The job, as bash named it.
    job: String,
    /// How long to wait for its end at most, such as "30s", up to "10m"; do not wait if left out.
    wait: Option<String>,
}

static SPEC: LazyLock<Spec> = LazyLock::new(|| {
    Spec {
    name: "job_output",
    description: "Shows what a background job has printed since you last looked, or, when it is over, its whole output (of a \
                  long one the beginning and the end) and how it ended. With `wait` it answers as soon as the job is over or \
                  that time has passed."
        .into(),
    schema: arguments::schema::<Arguments>(),
    writes: false,
}
});

fn parsed(arguments: &Value) -> Result<(JobId, Duration), ArgumentError> {
    let Arguments { job, wait } = arguments::parse(arguments)?;
    let wait = wait.as_deref().map_or(Ok(Duration::ZERO), duration::parse);
    Ok((JobId(job), wait.map_err(|why| ArgumentError::at("wait", why))?))
}

#[async_trait]
impl Tool for JobOutput {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    async fn inspect(&self, arguments: &Value, _place: &Place) -> Result<Inspected, ArgumentError> {
        parsed(arguments)?;
        Ok(Inspected::nowhere(SPEC.name, arguments))
    }

    async fn run(&self, arguments: &Value, digest: &str, mut run: RunContext) -> Ended {
        let (job, wait) = match parsed(arguments) {
            Ok(parsed) => parsed,
            Err(error) => return Ended::new(Outcome::NotRun, error.to_string()),
        };
        if !agrees(&CallDigest::nowhere(SPEC.name, arguments).finish(), digest) {
            return Ended::changed_since_approved();
        }
        let jobs = &run.place.jobs;
        tokio::select! {
            () = jobs.over(&job) => {}
            () = tokio::time::sleep(wait) => {}
            // A closed channel means that nobody wants the call any more.
            _ = run.stop.wait_for(|level| *level > StopLevel::Run) => {}
        }
        jobs.told(&job)
    }
}

#[cfg(test)]
mod tests {
    use protocol::event::ToolOutcome;
    use serde_json::json;

    use super::super::jobs::JobResult;
    use super::super::world::World;
    use super::*;

    #[tokio::test]
    async fn an_ended_job_tells_its_result_and_an_unknown_one_names_the_others() {
        let world = World::new();
        let result = JobResult {
            outcome: ToolOutcome::Error,
            output: "boom\n[exit code 2, 0.1 s]".into(),
        };
        world.place.jobs.ended(JobId("j7".into()), result);
        let ended = world.run(&JobOutput, json!({"job": "j7", "wait": "10m"})).await;
        assert_eq!(ended.output, "boom\n[exit code 2, 0.1 s]\n[job j7 is over: error]");
        let ended = world.run(&JobOutput, json!({"job": "j8"})).await;
        assert!(
            ended.outcome == Outcome::Error && ended.output.ends_with("there are: j7"),
            "{}",
            ended.output
        );
        let ended = world.run(&JobOutput, json!({"job": "j7", "wait": "2h"})).await;
        assert!(
            ended.outcome == Outcome::NotRun && ended.output.starts_with("`wait`"),
            "{}",
            ended.output
        );
    }
}
