//! Commands in the background end in any phase; no turn waits for them.

use super::Plan;
use crate::session::effect::job::lost;
use crate::session::input::JobEnd;
use crate::session::state::Job;
use protocol::event::{JobEnded, JobStopRequested};
use protocol::{By, JobId};

impl Plan<'_> {
    /// Once is enough: the kill follows by itself.
    pub(super) fn stop_job(&mut self, job: JobId, by: By) {
        let runs = |known: &Job| known.id == job && known.stopping.is_none();
        if self.state.jobs.iter().any(runs) {
            self.emit(JobStopRequested { job, by });
        }
    }

    pub(super) fn job_ended(&mut self, end: JobEnd) {
        let Some(job) = self.state.jobs.iter().find(|job| job.id == end.job) else {
            return;
        };
        let call = job.call.clone();
        let JobEnd {
            job,
            outcome,
            output,
            blob,
            produced,
            exit_code,
            duration_ms,
        } = end;
        self.emit(JobEnded {
            job,
            call,
            outcome,
            output,
            blob,
            produced,
            exit_code,
            duration_ms,
        });
    }

    /// What ran in an earlier life of the daemon died with it.
    pub(super) fn lose_jobs(&mut self) {
        let jobs: Vec<_> = self.state.jobs.iter().map(|job| job.id.clone()).collect();
        for job in jobs {
            self.job_ended(lost(job));
        }
    }
}
