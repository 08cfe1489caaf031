//! Tests across crates: the command and the figures as processes, replays, and the rules for the sources.

mod checkpoint_files;
mod conservation;
mod constraints;
mod docs;
mod documents;
mod experts;
mod failures;
mod figures;
mod files;
mod golden;
mod hbcheck;
mod hostile;
mod interrupts;
mod killed;
mod launch;
mod memory;
mod outputs;
mod packages;
mod processes;
mod programs;
mod ranks;
mod recorded;
mod report_page;
mod simulate;
mod tables;
mod tidy;
