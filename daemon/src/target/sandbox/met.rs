//! What a command met at the walls of its sandbox, as its guard reports it.

use serde::{Deserialize, Serialize};

use super::Sought;

/// Facts that only the guard has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Met {
    /// What it sought of a network it does not have.
    pub sought: Sought,
    /// Where it was kept from making repositories, a few of the places at most.
    pub repositories: Vec<String>,
}

impl Met {
    /// What follows the number in a report: nothing, or a blank and JSON, which has no line breaks.
    pub(in crate::target) fn words(&self) -> String {
        let text = serde_json::to_string(self).ok().filter(|_| *self != Self::default());
        text.map(|text| format!(" {text}")).unwrap_or_default()
    }

    /// None if they are no such words.
    pub(in crate::target) fn parse(words: &str) -> Option<Self> {
        serde_json::from_str(words).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_met_survives_a_report() {
        assert_eq!(Met::default().words(), "");
        for (beyond, here) in [(true, false), (false, true), (true, true)] {
            for repositories in [Vec::new(), vec!["/r/a \"b/.git".to_owned()]] {
                let sought = Sought { beyond, here };
                let met = Met { sought, repositories };
                let words = met.words();
                assert_eq!(words.strip_prefix(' ').and_then(Met::parse), Some(met), "{words}");
                assert!(!words.contains('\n'));
            }
        }
    }
}
