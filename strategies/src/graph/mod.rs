//! The weighted task graph in CSR form, its generators and its readers.
