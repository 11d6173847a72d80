//! Call ids and tool names as one wire takes them.
//!
//! A provider gets its own ids back as it gave them. A history that moved between providers may hold ids another one
//! refuses (`functions.x:0`), or the same id twice where the new provider wants them unique; both are rewritten the same
//! way in the call and in its result.

use std::collections::{HashMap, HashSet};

use sha2::{Digest as _, Sha256};

/// Longest tool name any of the wires takes.
const NAME_LIMIT: usize = 64;

/// Longest call id all three wires take.
const ID_LIMIT: usize = 64;

/// Who made a message of the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Maker {
    /// The provider the request goes to: its private parts and ids go back unchanged.
    SameProvider,
    /// Any other: only texts and calls are understood.
    Another,
}

/// The ids of one request.
#[derive(Debug, Default)]
pub(super) struct CallIds {
    used: HashSet<String>,
    /// From the ids of the latest assistant message to what was sent.
    current: HashMap<String, String>,
}

impl CallIds {
    /// A new assistant message begins: results that follow belong to its calls.
    pub(super) fn begin_message(&mut self) {
        self.current.clear();
    }

    /// The id to send for a call that `maker` made.
    pub(super) fn for_call(&mut self, id: &str, maker: Maker) -> String {
        let mut sent = match maker {
            Maker::SameProvider => {
                self.used.insert(id.to_owned());
                self.current.insert(id.to_owned(), id.to_owned());
                return id.to_owned();
            }
            Maker::Another => safe(id, ID_LIMIT),
        };
        let mut turn = 1_u32;
        while !self.used.insert(sent.clone()) {
            turn += 1;
            sent = safe(&format!("{id}-{turn}"), ID_LIMIT);
        }
        self.current.insert(id.to_owned(), sent.clone());
        sent
    }

    /// The id to send for the result of a call of the latest assistant message.
    pub(super) fn for_result(&self, id: &str) -> String {
        self.current.get(id).cloned().unwrap_or_else(|| safe(id, ID_LIMIT))
    }
}

/// A tool name as every wire takes it. A model may invent any name; its call still has to be replayed.
pub(super) fn tool_name(name: &str) -> String {
    if name.is_empty() {
        "unnamed".to_owned()
    } else {
        safe(name, NAME_LIMIT)
    }
}

/// `text` itself if it is made of letters, digits, `_` and `-` and not too long; else a form of it that is, made unique by a
/// digest.
fn safe(text: &str, limit: usize) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !text.is_empty() && text.len() <= limit && text.chars().all(plain) {
        return text.to_owned();
    }
    let digest = Sha256::digest(text.as_bytes());
    let tail: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let head: String = text
        .chars()
        .map(|c| if plain(c) { c } else { '_' })
        .take(limit - tail.len() - 1)
        .collect();
    format!("{head}_{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_ids_stay_and_odd_ones_become_plain_and_stay_different() {
        let mut ids = CallIds::default();
        assert_eq!(ids.for_call("toolu_01", Maker::Another), "toolu_01");
        let odd = ids.for_call("functions.read:0", Maker::Another);
        assert!(odd.starts_with("functions_read_0_"));
        assert_ne!(odd, ids.for_call("functions_read:0", Maker::Another));
        assert_eq!(ids.for_result("functions.read:0"), odd);
        assert!(ids.for_call(&"x".repeat(500), Maker::Another).len() <= ID_LIMIT);
    }

    #[test]
    fn an_id_used_again_in_a_later_message_is_sent_as_another() {
        let mut ids = CallIds::default();
        ids.begin_message();
        let first = ids.for_call("call_0", Maker::Another);
        assert_eq!(ids.for_result("call_0"), first);
        ids.begin_message();
        let second = ids.for_call("call_0", Maker::Another);
        assert_ne!(first, second);
        assert_eq!(ids.for_result("call_0"), second);
    }

    #[test]
    fn a_provider_gets_its_own_ids_back() {
        let mut ids = CallIds::default();
        for _ in 0..2 {
            ids.begin_message();
            assert_eq!(
                ids.for_call("functions.read:0", Maker::SameProvider),
                "functions.read:0"
            );
            assert_eq!(ids.for_result("functions.read:0"), "functions.read:0");
        }
    }

    #[test]
    fn tool_names_are_made_acceptable() {
        assert_eq!(tool_name("read_file"), "read_file");
        assert!(tool_name("read file\u{7}").starts_with("read_file__"));
        assert_eq!(tool_name(""), "unnamed");
    }
}
