//! The open items of a session: what has come of each so far. A reply's text is kept from where it is not written yet; of a
//! tool's output and of arguments only the end is kept, because only the end is shown.

use protocol::ItemId;
use protocol::event::ItemType;
use protocol::frame::{Delta, OpenItem, OpenType, Stream};

/// Bytes kept of a tool's output and of arguments: more than the live area can show.
const TAIL_BYTES: usize = 16 * 1024;
/// A reply's written beginning is dropped when it is longer than this, in bytes.
const WRITTEN_BYTES: usize = 64 * 1024;

/// Everything that grows, in the order it began.
#[derive(Debug, Default)]
pub(crate) struct OpenItems(Vec<Open>);

/// One item that grows.
#[derive(Debug, Clone)]
pub(crate) struct Open {
    pub(crate) item: ItemId,
    pub(crate) open_type: OpenType,
    pub(crate) stream: Stream,
    /// Where `text` begins in the stream, in bytes.
    pub(crate) start: u64,
    pub(crate) text: String,
    pub(crate) tool: Option<String>,
}

impl Open {
    /// The type of a piece of a reply that is shown as it grows.
    pub(crate) fn reply_type(&self) -> Option<ItemType> {
        match (self.stream, self.open_type) {
            (Stream::Text, OpenType::Text) => Some(ItemType::Text),
            (Stream::Text, OpenType::Reasoning) => Some(ItemType::Reasoning),
            (Stream::Text, OpenType::Refusal) => Some(ItemType::Refusal),
            _ => None,
        }
    }

    /// Bytes of the stream so far.
    pub(crate) fn end(&self) -> u64 {
        self.start + self.text.len() as u64
    }

    fn grow(&mut self, offset: u64, text: &str) {
        let end = self.end();
        match usize::try_from(end.saturating_sub(offset)) {
            Ok(known) if offset <= end => self.text.push_str(text.get(known..).unwrap_or_default()),
            // A part is missing: what comes is all that is known.
            _ => {
                self.start = offset;
                text.clone_into(&mut self.text);
            }
        }
        if self.reply_type().is_none() {
            let surplus = self.text.len().saturating_sub(TAIL_BYTES);
            self.drop_beginning(surplus);
        }
    }

    fn drop_beginning(&mut self, bytes: usize) {
        let at = self.text.ceil_char_boundary(bytes.min(self.text.len()));
        self.text.drain(..at);
        self.start += at as u64;
    }
}

impl OpenItems {
    /// Everything that grows, in the order it began.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Open> {
        self.0.iter()
    }

    /// The open items are exactly those of a snapshot. What is known of an item beyond what the snapshot holds of it stays.
    pub(crate) fn replace(&mut self, items: Vec<OpenItem>) {
        let mut before = std::mem::take(&mut self.0);
        for new in items {
            let known = before
                .iter()
                .position(|open| open.item == new.item && open.stream == new.stream);
            let mut open = known.map_or_else(|| Open::of(&new), |at| before.swap_remove(at));
            open.grow(new.offset, &new.text);
            self.0.push(open);
        }
    }

    /// More of an item.
    pub(crate) fn delta(&mut self, delta: Delta) {
        let known = self
            .0
            .iter_mut()
            .find(|open| open.item == delta.item && open.stream == delta.stream);
        if let Some(open) = known {
            open.grow(delta.offset, &delta.text);
            return;
        }
        let mut open = Open {
            item: delta.item,
            open_type: delta.item_type,
            stream: delta.stream,
            start: delta.offset,
            text: String::new(),
            tool: delta.tool,
        };
        open.grow(delta.offset, &delta.text);
        self.0.push(open);
    }

    /// The first `written` bytes of an item are on the screen for good.
    pub(crate) fn forget_written(&mut self, item: &ItemId, written: u64) {
        for open in self
            .0
            .iter_mut()
            .filter(|open| open.item == *item && open.reply_type().is_some())
        {
            let beginning = usize::try_from(written.saturating_sub(open.start)).unwrap_or(0);
            if beginning > WRITTEN_BYTES && beginning <= open.text.len() {
                open.drop_beginning(beginning);
            }
        }
    }

    /// An item is complete.
    pub(crate) fn close(&mut self, item: &str) {
        self.0.retain(|open| open.item.as_str() != item);
    }

    /// A model call is over, well or badly: nothing of its reply is open any more.
    pub(crate) fn close_reply(&mut self) {
        self.0.retain(|open| open.stream == Stream::Output);
    }

    /// Nothing is open.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

impl Open {
    fn of(item: &OpenItem) -> Self {
        Self {
            item: item.item.clone(),
            open_type: item.item_type,
            stream: item.stream,
            start: item.offset,
            text: String::new(),
            tool: item.tool.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delta(item: &str, stream: Stream, offset: u64, text: &str) -> Delta {
        let item_type = if stream == Stream::Text {
            OpenType::Text
        } else {
            OpenType::Call
        };
        Delta {
            item: item.into(),
            item_type,
            stream,
            offset,
            text: text.to_owned(),
            tool: None,
        }
    }

    fn only(items: &OpenItems) -> (u64, String) {
        items
            .iter()
            .map(|open| (open.start, open.text.clone()))
            .next()
            .unwrap_or_default()
    }

    #[test]
    fn text_that_comes_twice_is_known_once() {
        let mut items = OpenItems::default();
        items.delta(delta("i1.0", Stream::Text, 0, "hello"));
        items.delta(delta("i1.0", Stream::Text, 3, "lo wor"));
        items.delta(delta("i1.0", Stream::Text, 0, "he"));
        assert_eq!(only(&items), (0, "hello wor".to_owned()));
    }

    #[test]
    fn after_a_gap_only_what_comes_is_known() {
        let mut items = OpenItems::default();
        items.delta(delta("c1", Stream::Output, 0, "head"));
        items.delta(delta("c1", Stream::Output, 100, "tail"));
        assert_eq!(only(&items), (100, "tail".to_owned()));
    }

    #[test]
    fn a_snapshot_keeps_what_was_known_before_its_text_begins() {
        let mut items = OpenItems::default();
        items.delta(delta("i1.0", Stream::Text, 0, "hello"));
        items.delta(delta("i9.0", Stream::Text, 0, "gone"));
        let open = OpenItem {
            item: "i1.0".into(),
            item_type: OpenType::Text,
            stream: Stream::Text,
            offset: 3,
            text: "lo world".to_owned(),
            tool: None,
        };
        items.replace(vec![open]);
        assert_eq!(items.iter().count(), 1);
        assert_eq!(only(&items), (0, "hello world".to_owned()));
    }

    #[test]
    fn of_an_output_only_the_end_is_kept() {
        let mut items = OpenItems::default();
        items.delta(delta("c1", Stream::Output, 0, &"ä".repeat(TAIL_BYTES)));
        let (start, text) = only(&items);
        assert_eq!(text.len(), TAIL_BYTES);
        assert_eq!(start, TAIL_BYTES as u64);
    }

    #[test]
    fn a_long_written_beginning_is_dropped_and_the_text_goes_on() {
        let mut items = OpenItems::default();
        let long = "x".repeat(WRITTEN_BYTES + 10);
        items.delta(delta("i1.0", Stream::Text, 0, &long));
        items.forget_written(&"i1.0".into(), WRITTEN_BYTES as u64 + 5);
        items.delta(delta("i1.0", Stream::Text, long.len() as u64, "end"));
        assert_eq!(only(&items), (WRITTEN_BYTES as u64 + 5, "xxxxxend".to_owned()));
    }
}
