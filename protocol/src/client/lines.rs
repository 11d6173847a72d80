//! Lines of a stream, bounded. Dropping a read in the middle loses nothing: what came stays in the buffer.

use std::io;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Longest line: what the daemon answers at most. Its own limit of 16 MiB is for what it is sent.
pub(super) const LINE_BYTES: usize = 64 * 1024 * 1024;

/// How much is asked for at once; a socket seldom holds more.
const READ_BYTES: usize = 64 * 1024;

/// The unread part of a stream.
#[derive(Debug, Default)]
pub(super) struct Lines {
    buffer: Vec<u8>,
    /// Where the line that comes next begins.
    start: usize,
    /// Up to where no newline was found.
    searched: usize,
}

impl Lines {
    /// The next line without its newline; `None` at the end of the stream. A last line without newline is not whole and dropped.
    pub(super) async fn next(&mut self, stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<&[u8]>> {
        loop {
            if let Some(end) = self.newline() {
                let start = std::mem::replace(&mut self.start, end + 1);
                self.searched = end + 1;
                return Ok(self.buffer.get(start..end));
            }
            self.make_room();
            if self.buffer.len() > LINE_BYTES {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a line is over 64 MiB"));
            }
            if stream.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }

    fn newline(&mut self) -> Option<usize> {
        let rest = self.buffer.get(self.searched..).unwrap_or_default();
        let found = rest.iter().position(|byte| *byte == b'\n').map(|at| self.searched + at);
        self.searched = found.unwrap_or(self.buffer.len());
        found
    }

    /// Drops the lines that were handed out; gives the memory of a rare huge line back.
    fn make_room(&mut self) {
        self.buffer.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        if self.buffer.is_empty() {
            self.buffer.shrink_to(READ_BYTES);
        }
        self.buffer.reserve(READ_BYTES);
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::{LINE_BYTES, Lines};
    use tokio::io::AsyncWriteExt;

    #[tokio::test]
    async fn lines_come_whole_in_any_chunking() {
        let text = b"one\n\ntwo two\nthree\nunfinished";
        for chunk in 1..=text.len() {
            let (mut near, mut far) = tokio::io::duplex(chunk);
            let writer = tokio::spawn(async move { far.write_all(text).await });
            let (mut lines, mut got) = (Lines::default(), Vec::new());
            while let Some(line) = lines.next(&mut near).await.unwrap() {
                got.push(String::from_utf8(line.to_vec()).unwrap());
            }
            assert_eq!(got, ["one", "", "two two", "three"], "chunks of {chunk}");
            writer.await.unwrap().unwrap();
        }
    }

    #[tokio::test]
    async fn a_dropped_read_loses_nothing() {
        let (mut near, mut far) = tokio::io::duplex(64);
        let mut lines = Lines::default();
        far.write_all(b"ha").await.unwrap();
        tokio::select! {
            biased;
            _ = lines.next(&mut near) => panic!("no line is there yet"),
            () = std::future::ready(()) => {}
        }
        far.write_all(b"lf\n").await.unwrap();
        assert_eq!(lines.next(&mut near).await.unwrap(), Some(b"half".as_slice()));
    }

    #[tokio::test]
    async fn an_endless_line_is_refused() {
        let (mut near, mut far) = tokio::io::duplex(1 << 20);
        let writer = tokio::spawn(async move { far.write_all(&vec![b'x'; LINE_BYTES + (2 << 20)]).await });
        assert!(Lines::default().next(&mut near).await.is_err());
        drop(near);
        assert!(writer.await.unwrap().is_err(), "the rest was not read");
    }
}
