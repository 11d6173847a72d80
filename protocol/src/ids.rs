//! Names of things. Every id is a string on the wire; the types keep one kind from being passed for another.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl $name {
            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }
    };
}

id!(
    /// A session: a UUIDv7.
    SessionId
);
id!(
    /// An input: unique within its session for ever; made by the client if it wants to retry safely. At most 128 bytes.
    InputId
);
id!(
    /// A turn: `t` and the `seq` of its `turn.started`.
    TurnId
);
id!(
    /// A tool call: `c` and the `seq` of its `tool.requested`.
    CallId
);
id!(
    /// A piece of a turn. A user message: `i` and the `seq` of its `input.delivered`. A piece of a reply: `i`, the `seq` of
    /// the `step.started` that asked for it, a dot and its place in the reply, so that it has its name while it is still open.
    ItemId
);
id!(
    /// An approval: a UUIDv7.
    ApprovalId
);
id!(
    /// A command in the background: `j` and the number of the call that started it, short enough to be repeated by a model.
    JobId
);

/// Number of an event in its session's log: gapless from 1. 0 stands for "before the first".
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// The number after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Number of an event in the whole store, in commit order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Pos(pub u64);

impl TurnId {
    /// The turn that the event at `seq` starts.
    pub fn at(seq: Seq) -> Self {
        Self(format!("t{seq}"))
    }

    /// Where the turn's `turn.started` stands in the log, if it is a turn's id.
    pub fn seq(&self) -> Option<Seq> {
        self.0.strip_prefix('t')?.parse().ok().map(Seq)
    }
}

impl CallId {
    /// The call that the event at `seq` asks for.
    pub fn at(seq: Seq) -> Self {
        Self(format!("c{seq}"))
    }

    /// Where the call's `tool.requested` stands in the log.
    pub fn seq(&self) -> Option<Seq> {
        self.0.strip_prefix('c')?.parse().ok().map(Seq)
    }
}

impl JobId {
    /// The job that the call starts.
    pub fn of(call: &CallId) -> Self {
        Self(format!("j{}", call.0.trim_start_matches('c')))
    }
}

impl ItemId {
    /// The output of a job.
    pub fn job(job: &JobId) -> Self {
        Self(job.0.clone())
    }

    /// Whether it is the output of a job, which outlives steps and turns.
    pub fn is_job(&self) -> bool {
        self.0.starts_with('j')
    }

    /// The user message that the event at `seq` delivers.
    pub fn message(seq: Seq) -> Self {
        Self(format!("i{seq}"))
    }

    /// The piece at `index` of the reply asked for by the `step.started` at `seq`.
    pub fn reply(seq: Seq, index: usize) -> Self {
        Self(format!("i{seq}.{index}"))
    }
}

/// The last six hex digits: what people see and may type.
pub fn short(id: &str) -> &str {
    let from = id.len().saturating_sub(6);
    id.get(from..).unwrap_or(id)
}
