//! The sections of a markdown file: a heading and all below it, up to the next heading of its level or above. What stands in code, quotes
//! or lists heads no section. Pure.

use std::ops::Range;

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// A heading of a text.
struct Heading {
    level: HeadingLevel,
    /// Byte at which its section begins.
    start: usize,
    title: String,
}

/// The sections of `text` under `heading`, one after the other; `None` where no heading reads so.
pub(crate) fn only(text: &str, heading: &str) -> Option<String> {
    let sections = under(text, heading);
    let sections: Vec<&str> = sections
        .into_iter()
        .filter_map(|section| text.get(section))
        .map(str::trim_end)
        .collect();
    (!sections.is_empty()).then(|| sections.join("\n\n"))
}

/// The text without its sections under `heading`; `None` where no heading reads so.
pub(crate) fn without(text: &str, heading: &str) -> Option<String> {
    let sections = under(text, heading);
    if sections.is_empty() {
        return None;
    }
    let mut rest = String::with_capacity(text.len());
    let mut from = 0;
    for section in sections {
        rest.push_str(text.get(from..section.start).unwrap_or_default());
        from = section.end;
    }
    rest.push_str(text.get(from..).unwrap_or_default());
    Some(rest)
}

/// Where the sections under `heading` are, in the order of the text. One of this heading within another one of it is part of that.
fn under(text: &str, heading: &str) -> Vec<Range<usize>> {
    let headings = headings(text);
    let wanted = normal(heading);
    let mut sections: Vec<Range<usize>> = Vec::new();
    for (at, found) in headings.iter().enumerate().filter(|(_, found)| found.title == wanted) {
        let inside = sections.last().is_some_and(|section| section.end > found.start);
        if !inside {
            let mut after = headings.iter().skip(at + 1);
            let next = after.find(|next| next.level <= found.level);
            sections.push(found.start..next.map_or(text.len(), |next| next.start));
        }
    }
    sections
}

fn headings(text: &str) -> Vec<Heading> {
    let mut headings: Vec<Heading> = Vec::new();
    let mut depth = 0_usize;
    let mut open = None;
    for (event, range) in Parser::new_ext(text, Options::empty()).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { level, .. }) if depth == 0 => {
                (depth, open) = (1, Some((level, range.start, String::new())));
            }
            Event::Start(_) => depth += 1,
            Event::End(end) => {
                depth = depth.saturating_sub(1);
                if let (TagEnd::Heading(_), 0, Some((level, start, title))) = (end, depth, open.take_if(|_| depth == 0))
                {
                    let title = normal(&title);
                    headings.push(Heading { level, start, title });
                }
            }
            Event::Text(piece) | Event::Code(piece) => {
                if let Some((_, _, title)) = &mut open {
                    title.push_str(&piece);
                }
            }
            Event::SoftBreak | Event::HardBreak => {
                if let Some((_, _, title)) = &mut open {
                    title.push(' ');
                }
            }
            _ => {}
        }
    }
    headings
}

/// A title as it is compared: whatever its blanks and its case.
fn normal(title: &str) -> String {
    let words: Vec<&str> = title.split_whitespace().collect();
    words.join(" ").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Before.\n\n# Guide\nIntro.\n\n## Release  *process*\nTag it.\n\n### Signing `keys`\nWith care.\n\n```\n## Not a heading\n```\n\n> ## Neither\n\n## Tests\nRun them.\n\nOther\n-----\nLast.\n";

    #[test]
    fn a_section_goes_with_all_below_it_and_nothing_else() {
        let rest = without(TEXT, "Release process").unwrap_or_default();
        assert!(
            rest.starts_with("Before.\n\n# Guide\nIntro.\n\n## Tests\nRun them."),
            "{rest}"
        );
        let inner = without(TEXT, "signing keys").unwrap_or_default();
        assert!(
            inner.contains("Tag it.") && !inner.contains("With care") && inner.contains("Run them"),
            "{inner}"
        );
        assert_eq!(without(TEXT, "guide").as_deref(), Some("Before.\n\n"));
        assert!(without(TEXT, "Other").is_some_and(|rest| rest.ends_with("Run them.\n\n")));
    }

    #[test]
    fn what_only_looks_like_a_heading_is_none() {
        for heading in ["Not a heading", "Neither", "Release", "", "# Guide"] {
            assert!(
                without(TEXT, heading).is_none() && only(TEXT, heading).is_none(),
                "{heading}"
            );
        }
    }

    #[test]
    fn a_section_is_taken_alone_and_all_of_one_name_together() {
        assert_eq!(only(TEXT, "Tests").as_deref(), Some("## Tests\nRun them."));
        let twice = "# A\n1\n# B\n2\n# a\n3\n## A\n4\n";
        assert_eq!(only(twice, "A").as_deref(), Some("# A\n1\n\n# a\n3\n## A\n4"));
        assert_eq!(without(twice, "A").as_deref(), Some("# B\n2\n"));
    }
}
