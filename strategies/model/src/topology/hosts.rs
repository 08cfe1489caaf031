//! `hosts:(n[1-4],gpu7)`: named hosts at one switch.
//!
//! The hosts are the PEs, in the order of the hostlist. It is in parentheses, because brackets after a machine choose PEs.
//! This is for launchers' files of a machine whose network is unknown.

use std::sync::Arc;

use super::{Kind, NamedTree, Part};
use crate::hostlist;

/// The entry of `hosts:..` in the list of machines.
pub const KIND: Kind = Kind {
    name: "hosts",
    form: "hosts:(n[01-64])",
    help: "Named hosts at one switch, as a hostlist: a machine without structure, but with the names that launchers need.",
    params: &[],
    item: |list| {
        let inside =
            list.strip_prefix('(').and_then(|list| list.strip_suffix(')')).filter(|list| !list.is_empty());
        let list = inside.ok_or_else(|| {
            format!("expected a list of hosts in parentheses such as (n[1-4],gpu7), found `{list}`")
        })?;
        let mut parts = vec![Part { name: Some("network".into()), parent: 0, is_pe: false }];
        let mut names = hostlist::expand(list)?;
        parts.extend(names.iter().map(|name| Part { name: Some(name.clone()), parent: 0, is_pe: true }));
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("host {} is named twice; name each host once", pair[0]).into());
        }
        Ok(Arc::new(NamedTree::new(&format!("hosts:({list})"), parts)?))
    },
};

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::super::tests::{check, row};

    #[test]
    fn hosts_have_names_and_equal_distances() {
        let machine = parse("hosts:(n[08-10],gpu7)").expect("hosts");
        check(&*machine);
        let hosts: Vec<&str> = (0..4).filter_map(|pe| machine.host(pe)).collect();
        assert_eq!((hosts, row(&*machine, 1)), (vec!["n08", "n09", "n10", "gpu7"], vec![2, 0, 2, 2]));
        for (spec, expected) in [
            ("hosts:", "expected a list of hosts in parentheses such as (n[1-4],gpu7), found ``"),
            ("hosts:n[1-4]", "in parentheses such as (n[1-4],gpu7), found `n`"),
            ("hosts:(n[1-3],n2)", "host n2 is named twice; name each host once"),
            ("hosts:(n[1-x])", "expected numbers and ranges such as 1-3,7 between brackets"),
        ] {
            let error = parse(spec).err().expect(expected).to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
