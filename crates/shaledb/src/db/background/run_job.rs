//! Running the job that was chosen: a flush, a compaction or a part of one, or a chore.

use super::next_job::Job;
use super::outcome::Work;
use crate::base::error::Result;
use crate::compaction::plan::Action;
use crate::db::core::Core;

impl Core {
    /// Runs a job to its end and answers how it went. Its marks are taken back in any case.
    pub fn run_job(&self, job: Job) -> Result<()> {
        let result = match job {
            Job::Flush(trees) => return self.run_flush_job(&trees),
            Job::Compact(tree, plan) if plan.action == Action::Merge => {
                let work = Work::Compaction(tree.id);
                let ended = self.start_merge(tree, *plan).and_then(|job| match job {
                    Some(job) => self.run_first_parts(&job),
                    None => Ok(false),
                });
                self.note_part(work, ended)
            }
            Job::Compact(tree, plan) => {
                self.note_outcome(Work::Compaction(tree.id), self.run_edit_only(&tree, &plan))
            }
            Job::Part(job, index) => {
                self.note_part(Work::Compaction(job.tree.id), self.run_part(&job, index))
            }
            Job::SealAll => {
                let result = self.note_outcome(Work::Flush, self.seal_all(None));
                self.end_making_room();
                result
            }
            Job::FreeLogs => {
                if let Err(error) = self.free_old_logs() {
                    tracing::debug!(%error, "old logs are kept for now");
                }
                self.end_making_room();
                Ok(())
            }
            Job::SpareLog => {
                if let Err(error) = self.make_spare_log() {
                    tracing::debug!(%error, "no log file could be made in advance");
                }
                Ok(())
            }
        };
        self.announce_progress();
        result
    }

    fn end_making_room(&self) {
        let mut state = self.sched.lock();
        assert!(state.making_room > 0, "what ends was marked as running");
        state.making_room -= 1;
    }

    /// Notes how a merge has ended, if this part was its last.
    fn note_part(&self, work: Work, ended: Result<bool>) -> Result<()> {
        if !matches!(ended, Ok(false)) && self.space().is_limited() {
            // It may have had the room that merges of other trees lacked.
            self.sched.want_looks(self.trees.load().by_id.keys().copied());
        }
        match ended {
            Ok(false) => Ok(()),
            Ok(true) => self.note_outcome(work, Ok(())),
            Err(error) => self.note_outcome(work, Err(error)),
        }
    }
}
