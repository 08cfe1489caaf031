//! Large reports.
