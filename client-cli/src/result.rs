//! How a turn ended, told to a script and to a person: the result line of `--json`, the answer's text, the words on stderr.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Output, Verbosity};
use protocol::InputId;
use protocol::display::{Form, display};
use protocol::event::{InputOutcome, Reason};
use protocol::method::TurnResult;
use protocol::script::ResultLine;

/// The result line of a turn that ended.
pub(crate) fn line(result: &TurnResult, input_id: Option<&InputId>, exit: Exit) -> ResultLine {
    ResultLine {
        session: Some(result.session.clone()),
        input_id: input_id.cloned(),
        turn: result.turn.clone(),
        text: result.text.clone(),
        denied: result.denied.clone(),
        usage: result.usage,
        cost: result.cost,
        steps: result.steps,
        reason: result.reason.clone(),
        demo: result.demo,
        by: result.by.clone(),
        ..ResultLine::new(status(result.status), exit.code())
    }
}

/// The result line of a command that failed before its turn began, or lost sight of it; `known` says how far it came.
pub(crate) fn failed(failure: &Failure, known: ResultLine) -> ResultLine {
    let (message, hint) = failure.parts();
    let kind = failure.kind();
    ResultLine {
        exit_code: failure.exit().code(),
        reason: Some(Reason { kind, message, hint }),
        ..known
    }
}

/// An input's end in the words of a turn's outcome.
fn status(outcome: InputOutcome) -> &'static str {
    match outcome {
        InputOutcome::Done => "completed",
        InputOutcome::Failed => "failed",
        InputOutcome::Interrupted => "interrupted",
        InputOutcome::TimedOut => "timed_out",
        InputOutcome::Unanswered => "unanswered",
        InputOutcome::Cancelled => "cancelled",
    }
}

/// The answer's text, with exactly one newline at its end.
pub(crate) fn print_text(output: &Output, result: &TurnResult) -> Result<(), Failure> {
    if result.text.is_empty() && result.status != InputOutcome::Done {
        return Ok(());
    }
    output.line(output.prose(result.text.trim_end_matches('\n')).as_ref())
}

/// Says on stderr what the exit code means.
pub(crate) fn tell(output: &Output, result: &TurnResult) {
    for denied in &result.denied {
        let tool = display(&denied.tool, Form::Inline);
        let reason = display(&denied.reason, Form::Inline);
        output.tell(&format!("denied: {tool}: {reason}"));
    }
    let by = || result.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
    let (message, hint) = match &result.reason {
        Some(reason) => (reason.message.clone(), reason.hint.clone()),
        None => (String::new(), None),
    };
    let told = |words: String| {
        if message.is_empty() {
            words
        } else {
            format!("{words}: {message}")
        }
    };
    match result.status {
        InputOutcome::Done if result.denied.is_empty() => {}
        InputOutcome::Done => output.tell("hint: allow what is needed with `--mode`, or run on a terminal to be asked"),
        InputOutcome::Failed => output.error(&told("the turn failed".to_owned()), hint.as_deref()),
        InputOutcome::Interrupted => output.error(&told(format!("the turn was interrupted{}", by())), hint.as_deref()),
        InputOutcome::Cancelled => output.error(&told(format!("the input was cancelled{}", by())), hint.as_deref()),
        InputOutcome::TimedOut => output.error(&told("the turn's time was over".to_owned()), hint.as_deref()),
        InputOutcome::Unanswered => output.error(
            &told("the turn stopped because nobody could answer".to_owned()),
            hint.as_deref().or(Some(
                "run on a terminal to be asked, or choose `--mode` or `--unattended`",
            )),
        ),
    }
    if output.verbosity >= Verbosity::Verbose {
        output.tell(&output.dim(&cost(result)));
    }
}

/// Steps, tokens and cost in one line.
fn cost(result: &TurnResult) -> String {
    let usage = result.usage;
    let cost = result.cost.map(|cost| format!(", ${cost:.4}")).unwrap_or_default();
    format!(
        "{} steps, {} tokens in ({} cached), {} out{cost}",
        result.steps, usage.input, usage.cached, usage.output
    )
}
