//! The way on which the process that becomes a command passes open files to its guard.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

/// Files passed at once, at most.
#[cfg(target_os = "linux")]
const FILES_LIMIT: usize = 2;

/// The guard's end.
#[derive(Debug)]
pub(super) struct Taker(OwnedFd);

/// The end of the process that becomes the command. The command itself does not have it.
#[derive(Debug)]
pub(super) struct Giver(OwnedFd);

/// Both ends.
#[cfg(target_os = "linux")]
pub(super) fn way() -> io::Result<(Taker, Giver)> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType};
    let (take, give) = rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    Ok((Taker(take), Giver(give)))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn way() -> io::Result<(Taker, Giver)> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(target_os = "linux")]
impl Giver {
    /// Passes them on.
    pub(super) fn give(&self, files: &[BorrowedFd<'_>]) -> io::Result<()> {
        use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_LIMIT))];
        let mut passed = SendAncillaryBuffer::new(&mut space);
        if !passed.push(SendAncillaryMessage::ScmRights(files)) {
            return Err(io::Error::other("too many files to pass"));
        }
        // Files go with bytes or not at all.
        let byte = [io::IoSlice::new(b"f")];
        rustix::net::sendmsg(&self.0, &byte, &mut passed, SendFlags::empty())?;
        Ok(())
    }
}

#[cfg(target_os = "linux")]
impl Taker {
    /// What was passed until now; it waits for nothing.
    pub(super) fn take(&self) -> io::Result<Vec<OwnedFd>> {
        use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_LIMIT))];
        let mut passed = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        rustix::net::recvmsg(&self.0, &mut [io::IoSliceMut::new(&mut byte)], &mut passed, flags)?;
        let files = passed.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(files) => Some(files),
            _ => None,
        });
        Ok(files.flatten().collect())
    }
}

#[cfg(not(target_os = "linux"))]
impl Taker {
    pub(super) fn take(&self) -> io::Result<Vec<OwnedFd>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
