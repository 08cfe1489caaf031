//! Grouping objects: which objects belong together, before any machine is looked at.
