//! How people use a page: keys, mouse, paper.
