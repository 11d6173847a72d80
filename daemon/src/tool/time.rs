//! `time`: what the clock says. Off unless the user switches it on, since the date stands in the prompt.

use std::sync::LazyLock;

use async_trait::async_trait;
use jiff::{Timestamp, Zoned};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::digest::{CallDigest, agrees};
use super::{ArgumentError, Ended, Inspected, Outcome, Place, RunContext, Spec, Tool, arguments};

/// Tells the time.
pub(super) struct Time;

/// `time` takes no arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {}

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    name: "time",
    description: "Tells the time: UTC, local with its zone, and seconds since 1970.".into(),
    schema: arguments::schema::<Arguments>(),
    writes: false,
});

fn told(now: &Zoned) -> String {
    let utc = Timestamp::from_second(now.timestamp().as_second()).unwrap_or(now.timestamp());
    let local = now.strftime("%Y-%m-%dT%H:%M:%S%:z");
    let zone = now.time_zone().iana_name().unwrap_or("unnamed zone");
    format!(
        "utc: {utc}\nlocal: {local} ({zone}, {})\nepoch: {}",
        now.strftime("%A"),
        utc.as_second()
    )
}

#[async_trait]
impl Tool for Time {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    async fn inspect(&self, arguments: &Value, _place: &Place) -> Result<Inspected, ArgumentError> {
        let Arguments {} = arguments::parse(arguments)?;
        Ok(Inspected::nowhere(SPEC.name, arguments))
    }

    async fn run(&self, arguments: &Value, digest: &str, _run: RunContext) -> Ended {
        if !agrees(&CallDigest::nowhere(SPEC.name, arguments).finish(), digest) {
            return Ended::changed_since_approved();
        }
        Ended::new(Outcome::Ok, told(&Zoned::now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_forms_are_of_one_moment() -> anyhow::Result<()> {
        let now: Zoned = "2026-02-03T04:05:06+01:00[Europe/Berlin]".parse()?;
        let expected =
            "utc: 2026-02-03T03:05:06Z\nlocal: 2026-02-03T04:05:06+01:00 (Europe/Berlin, Tuesday)\nepoch: 1770087906";
        assert_eq!(told(&now), expected);
        Ok(())
    }
}
