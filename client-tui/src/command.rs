//! The slash commands: one table, and how typed words find their row. What they do is the app's.

/// What a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Help,
    Status,
    Model,
    Mode,
    Approve,
    Deny,
    Queue,
    Interrupt,
    Ps,
    Todo,
    Continue,
    AddDir,
    New,
    Resume,
    Quit,
}

/// A row of the table.
#[derive(Debug)]
pub(crate) struct Command {
    /// With its slash.
    pub(crate) name: &'static str,
    /// Other names, with their slashes.
    pub(crate) aliases: &'static [&'static str],
    /// What may follow, for people.
    pub(crate) arguments: &'static str,
    pub(crate) help: &'static str,
    pub(crate) action: Action,
}

macro_rules! commands {
    ($($name:literal $(= $alias:literal)* $arguments:literal $action:ident $help:literal;)*) => {
        /// Every command, in the order `/help` shows them.
        pub(crate) const COMMANDS: &[Command] = &[$(Command {
            name: $name,
            aliases: &[$($alias),*],
            arguments: $arguments,
            help: $help,
            action: Action::$action,
        }),*];
    };
}

commands! {
    "/help" "" Help "what can be typed";
    "/status" "" Status "session, model, mode, directory, clients";
    "/model" "[NAME|NUMBER]" Model "list the models, or change to one from the next turn on";
    "/mode" "[MODE|TIME]" Mode "what is asked: ask, edits, all, none; 10m allows all for so long";
    "/approve" "[ID|MODE]" Approve "allow the call that waits, once";
    "/deny" "[TEXT]" Deny "refuse the call that waits; the text tells the model what to do";
    "/queue" "[cancel N|resume]" Queue "inputs that wait";
    "/todo" "" Todo "what the model means to do";
    "/ps" "" Ps "the turn and the commands in the background";
    "/interrupt" = "/kill" "[JOB]" Interrupt "end the turn that runs, or a job of /ps";
    "/continue" "" Continue "go on with a turn that was left open";
    "/add-dir" "DIR" AddDir "work in a further directory, beside the project";
    "/new" "" New "another session in this directory";
    "/resume" "[ID|NAME|last]" Resume "list sessions, or go to one";
    "/quit" = "/exit" = "/q" = "/detach" "" Quit "leave; the session goes on";
}

/// What a first word means.
#[derive(Debug)]
pub(crate) enum Found {
    Command(&'static Command),
    /// It begins more than one name.
    Several(Vec<&'static str>),
    Nothing,
}

/// The commands whose name or another name begins with `word`, those by name first.
pub(crate) fn completions(word: &str) -> Vec<&'static Command> {
    let by_name = COMMANDS.iter().filter(|command| command.name.starts_with(word));
    let by_alias = COMMANDS.iter().filter(|command| {
        !command.name.starts_with(word) && command.aliases.iter().any(|alias| alias.starts_with(word))
    });
    by_name.chain(by_alias).collect()
}

/// The command that `word` names, whole or by a beginning that only one has.
pub(crate) fn find(word: &str) -> Found {
    let exact = COMMANDS
        .iter()
        .find(|command| command.name == word || command.aliases.contains(&word));
    if let Some(command) = exact {
        return Found::Command(command);
    }
    match completions(word).as_slice() {
        [] => Found::Nothing,
        [only] => Found::Command(only),
        several => Found::Several(several.iter().map(|command| command.name).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(word: &str) -> Option<&'static str> {
        match find(word) {
            Found::Command(command) => Some(command.name),
            Found::Several(_) | Found::Nothing => None,
        }
    }

    #[test]
    fn a_command_is_found_by_name_alias_or_a_beginning_of_its_own() {
        assert_eq!(found("/help"), Some("/help"));
        assert_eq!(found("/q"), Some("/quit"));
        assert_eq!(found("/exit"), Some("/quit"));
        assert_eq!(found("/sta"), Some("/status"));
        assert_eq!(found("/kil"), Some("/interrupt"));
    }

    #[test]
    fn a_shared_beginning_finds_none_and_names_the_candidates() {
        assert!(matches!(find("/mo"), Found::Several(names) if names == ["/model", "/mode"]));
        assert!(matches!(find("/nope"), Found::Nothing));
    }

    #[test]
    fn no_name_is_there_twice() {
        let mut names: Vec<&str> = COMMANDS
            .iter()
            .flat_map(|c| c.aliases.iter().copied().chain([c.name]))
            .collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
