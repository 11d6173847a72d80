//! `agentctl usage`: tokens and cost by day, model and session, or by the turns of one session.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::table;
use protocol::method::{SessionSpent, SessionUsage, Spent, TurnSpent, UsageAnswer, UsageParams};
use protocol::{Usage, short};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Session; without one, all of them together
    session: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(invocation: &Invocation, arguments: Arguments) -> Result<Exit, Failure> {
    let mut client = invocation.connect().await?;
    let session = match arguments.session {
        Some(text) => Some(invocation.session(&mut client, &text).await?.id.to_string()),
        None => None,
    };
    let answer = client.call::<SessionUsage>(&UsageParams { session }).await?;
    if arguments.json {
        invocation.output.json(&answer)?;
    } else {
        print(invocation, &answer)?;
    }
    Ok(Exit::Completed)
}

fn print(invocation: &Invocation, answer: &UsageAnswer) -> Result<(), Failure> {
    let output = &invocation.output;
    let shown = |text: &str| output.inline(text).into_owned();
    let mut rows = vec![row("total", String::new(), &answer.total)];
    rows.extend(answer.days.iter().map(|day| row("day", shown(&day.day), &day.spent)));
    rows.extend(answer.models.iter().map(|model| {
        row(
            "model",
            shown(&format!("{} {}", model.profile, model.model)),
            &model.spent,
        )
    }));
    rows.extend(
        answer
            .sessions
            .iter()
            .map(|session| row("session", shown(&label(session)), &session.spent)),
    );
    rows.extend(
        answer
            .turns
            .iter()
            .map(|turn| turn_row(shown(turn.turn.as_str()), turn)),
    );
    table::print(
        output,
        &["OF", "WHICH", "CALLS", "INPUT", "CACHED", "OUTPUT", "REASONING", "COST"],
        &rows,
    )?;
    if answer.total.unpriced > 0 {
        let message = format!(
            "{} calls have no known price and are not in the cost\nhint: set prices in the profile, or add a [[rule]] to models.toml",
            answer.total.unpriced
        );
        output.tell(&message);
    }
    Ok(())
}

fn label(session: &SessionSpent) -> String {
    let name = session.name.as_deref().or(session.title.as_deref()).unwrap_or("-");
    format!("{} {name}", short(session.session.as_str()))
}

fn row(of: &str, which: String, spent: &Spent) -> Vec<String> {
    cells(of, which, spent.calls, spent.usage, spent.cost)
}

fn turn_row(which: String, turn: &TurnSpent) -> Vec<String> {
    cells("turn", which, u64::from(turn.steps), turn.usage, turn.cost)
}

fn cells(of: &str, which: String, calls: u64, usage: Usage, cost: Option<f64>) -> Vec<String> {
    let Usage {
        input,
        output,
        cached,
        reasoning,
        ..
    } = usage;
    let numbers = [calls, input, cached, output, reasoning].map(|number| number.to_string());
    let cost = cost.map_or_else(|| "-".to_owned(), dollars);
    [vec![of.to_owned(), which], numbers.to_vec(), vec![cost]].concat()
}

/// Enough digits to see the price of a small call.
fn dollars(cost: f64) -> String {
    if cost >= 1.0 {
        format!("${cost:.2}")
    } else {
        format!("${cost:.4}")
    }
}

#[cfg(test)]
mod tests {
    use super::dollars;

    #[test]
    fn small_sums_are_not_rounded_to_nothing() {
        assert_eq!(
            (dollars(12.345), dollars(0.0123), dollars(0.0)),
            ("$12.35".to_owned(), "$0.0123".to_owned(), "$0.0000".to_owned())
        );
    }
}
