//! `agentctl rules`: the person's own rules of what runs, is asked and is denied; and what a command would meet.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::table;
use crate::values::ModeWord;
use protocol::config::ConfigGetParams;
use protocol::event::Decision;
use protocol::method::{ConfigGet, RuleAdd, RuleList, RuleRemove, RuleTest};
use protocol::rule::{
    RuleAddParams, RuleDecision, RuleListParams, RuleRemoveParams, RuleSource, RuleSpec, RuleTestParams, RuleVerdict,
    RuleView,
};
use std::ffi::OsString;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List your rules and those of this project
    List {
        /// Print one JSON array
        #[arg(long)]
        json: bool,
    },
    /// Add a rule for this project, such as `agentctl rules add allow cargo test`
    Add(Box<New>),
    /// Remove one of your rules by its number in the list
    Remove { number: u32 },
    /// Say what would become of a command here, without running it
    Test {
        /// Judge it in this mode instead of the one new sessions have
        #[arg(long)]
        mode: Option<ModeWord>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
        /// The command line, as one word of your shell
        command: String,
    },
}

/// A rule by its parts; each that is given must match.
#[derive(Debug, clap::Args)]
struct New {
    decision: DecisionWord,
    /// First words of the commands it is for; `*` stands for any one word
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
    /// Only this very command line
    #[arg(long, requires = "command")]
    exact: bool,
    /// Name of a tool; commands are bash's
    #[arg(long)]
    tool: Option<String>,
    /// Glob of paths, relative to the project's root
    #[arg(long = "path", value_name = "GLOB")]
    paths: Vec<String>,
    /// Host name; `*.example.com` covers every name below
    #[arg(long = "host", value_name = "HOST")]
    hosts: Vec<String>,
    /// For every project, not this one alone
    #[arg(long)]
    everywhere: bool,
    /// Example it must speak on, checked now and whenever the rule is loaded
    #[arg(long = "match", value_name = "EXAMPLE")]
    matches: Vec<String>,
    /// Example it must not speak on
    #[arg(long = "no-match", value_name = "EXAMPLE")]
    no_match: Vec<String>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum DecisionWord {
    Allow,
    Ask,
    Deny,
}

pub(crate) async fn run(invocation: &Invocation, arguments: Arguments) -> Result<Exit, Failure> {
    match arguments.action {
        Action::List { json } => list(invocation, json).await?,
        Action::Add(new) => add(invocation, *new).await?,
        Action::Remove { number } => remove(invocation, number).await?,
        Action::Test { mode, json, command } => test(invocation, mode, json, command).await?,
    }
    Ok(Exit::Completed)
}

// A mistake in the rules is the error of each call, so that nothing but another mistake is left to warn of.

async fn list(invocation: &Invocation, json: bool) -> Result<(), Failure> {
    let mut client = invocation.connect_silently().await?;
    let params = RuleListParams {
        cwd: Some(invocation.cwd()),
    };
    let rules = client.call::<RuleList>(&params).await?;
    invocation.warn(&client);
    if json {
        return invocation.output.json(&rules);
    }
    let view = client.call::<ConfigGet>(&ConfigGetParams::default()).await?;
    if view
        .settings
        .iter()
        .any(|setting| setting.key == "builtin_allow" && setting.value == "false")
    {
        invocation
            .output
            .tell("`builtin_allow = false`: commands that only read ask too, unless a rule allows them");
    }
    if rules.is_empty() {
        invocation
            .output
            .tell("there are no rules yet\nhint: `agentctl rules add allow cargo test` makes one");
        return Ok(());
    }
    let row = |view: &RuleView| {
        let (number, whose) = match view.source {
            RuleSource::User => (view.number.to_string(), "yours"),
            RuleSource::Project => ("-".to_owned(), "project"),
        };
        vec![
            number,
            whose.to_owned(),
            invocation.output.inline(&view.text).into_owned(),
        ]
    };
    table::print(
        &invocation.output,
        &["#", "FROM", "RULE"],
        &rules.iter().map(row).collect::<Vec<_>>(),
    )
}

/// Options of `rules add`. After the words they would be words themselves.
const OPTIONS: &[&str] = &["exact", "tool", "path", "host", "everywhere", "match", "no-match"];

/// Refuses an option of ours among the words, unless `--` says that they are meant so.
fn check_words(words: &[String], all: &[OsString]) -> Result<(), Failure> {
    let is_option = |word: &&String| {
        word.strip_prefix("--")
            .is_some_and(|name| OPTIONS.contains(&name.split('=').next().unwrap_or(name)))
    };
    match words.iter().find(is_option) {
        Some(option) if !all.iter().any(|word| word == "--") => Err(Failure::usage(format!(
            "`{option}` stands after the words of the command\nhint: options come first: `agentctl rules add {option} …`; `--` before the words makes it one of them"
        ))),
        _ => Ok(()),
    }
}

async fn add(invocation: &Invocation, new: New) -> Result<(), Failure> {
    check_words(&new.command, &std::env::args_os().collect::<Vec<_>>())?;
    let mut client = invocation.connect_silently().await?;
    let tool = new
        .tool
        .or_else(|| (!new.command.is_empty()).then(|| "bash".to_owned()));
    let line = new.command.join(" ");
    let words = || line.split_whitespace().map(str::to_owned).collect();
    let rule = RuleSpec {
        decision: match new.decision {
            DecisionWord::Allow => RuleDecision::Allow,
            DecisionWord::Ask => RuleDecision::Ask,
            DecisionWord::Deny => RuleDecision::Deny,
        },
        tool,
        command: (!line.is_empty() && !new.exact).then(words),
        exact: new.exact.then(|| line.clone()),
        paths: new.paths,
        hosts: new.hosts,
        root: None,
        matches: new.matches,
        no_match: new.no_match,
    };
    let cwd = (!new.everywhere).then(|| invocation.cwd());
    let view = client.call::<RuleAdd>(&RuleAddParams { cwd, rule }).await?;
    invocation.warn(&client);
    invocation.output.tell(&told("added", &view, invocation));
    Ok(())
}

async fn remove(invocation: &Invocation, number: u32) -> Result<(), Failure> {
    let mut client = invocation.connect_silently().await?;
    let rules = client.call::<RuleList>(&RuleListParams::default()).await?;
    let meant = rules
        .iter()
        .find(|view| view.source == RuleSource::User && view.number == number);
    let Some(meant) = meant else {
        let message = format!("there is no rule {number}\nhint: `agentctl rules list` numbers them");
        return Err(Failure::with(Exit::NotFound, message));
    };
    let params = RuleRemoveParams {
        number,
        text: meant.text.clone(),
    };
    let view = client.call::<RuleRemove>(&params).await?;
    invocation.warn(&client);
    invocation.output.tell(&told("removed", &view, invocation));
    Ok(())
}

fn told(what: &str, view: &RuleView, invocation: &Invocation) -> String {
    let text = |text: &str| invocation.output.inline(text).into_owned();
    format!("{what}: {} ({})", text(&view.text), text(&view.file))
}

async fn test(invocation: &Invocation, mode: Option<ModeWord>, json: bool, command: String) -> Result<(), Failure> {
    let mut client = invocation.connect_silently().await?;
    let params = RuleTestParams {
        command,
        cwd: invocation.cwd(),
        mode: mode.map(Into::into),
    };
    let verdict = client.call::<RuleTest>(&params).await?;
    invocation.warn(&client);
    if json {
        return invocation.output.json(&verdict);
    }
    let RuleVerdict { verdict, reason, rule } = verdict;
    let word = match verdict {
        Decision::Allow => "allow",
        Decision::Ask => "ask",
        Decision::Deny => "deny",
        Decision::Blocked => "blocked",
    };
    let output = &invocation.output;
    output.line(&format!("{word}: {}", output.inline(&reason)))?;
    match rule {
        Some(rule) => output.line(&format!("rule: {}", output.inline(&rule))),
        None => Ok(()),
    }
}
