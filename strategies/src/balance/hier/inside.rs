//! The last step of `HierLB`: every node balances its PEs.

use equipoise_model::constraints::Constraints;
use equipoise_model::costs::Costs;
use equipoise_model::database::{Edge, End, Object, PeRecord};
use equipoise_model::topology::Allocation;
use equipoise_model::{Database, Topology};

use std::collections::BTreeMap;

use super::{Nodes, answer_of};
use crate::StrategyError;
use crate::descriptor::Choice;

/// The objects and edges that every node has after the root has moved chunks.
pub(super) struct Inside<'a> {
    database: &'a Database,
    topology: &'a dyn Topology,
    nodes: &'a Nodes,
    /// By node.
    objects: Vec<Vec<u32>>,
    edges: Vec<Vec<u32>>,
    /// The position of each object in the list of its node.
    position: Vec<u32>,
}

impl<'a> Inside<'a> {
    pub(super) fn of(
        database: &'a Database,
        topology: &'a dyn Topology,
        nodes: &'a Nodes,
        node_of: &[u32],
    ) -> Self {
        let mut objects = vec![Vec::new(); nodes.pes.len()];
        let mut position = Vec::with_capacity(node_of.len());
        for (object, &node) in (0..).zip(node_of) {
            let list = &mut objects[node as usize];
            position.push(list.len() as u32);
            list.push(object);
        }
        let node = |end: End| match end {
            End::Object(object) => node_of[object as usize],
            End::Pe(pe) => nodes.of[pe as usize],
        };
        let mut edges = vec![Vec::new(); nodes.pes.len()];
        for (at, edge) in (0..).zip(&database.edges) {
            let is_of_pes = matches!((edge.from, edge.to), (End::Pe(_), End::Pe(_)));
            if !is_of_pes && node(edge.from) == node(edge.to) {
                edges[node(edge.from) as usize].push(at);
            }
        }
        Inside { database, topology, nodes, objects, edges, position }
    }

    /// The PE of each object of a node. Objects of a node without an available PE cannot move, and stay.
    pub(super) fn balance(
        &self,
        node: usize,
        choice: &Choice,
        seed: u64,
    ) -> Result<Vec<(u32, u32)>, StrategyError> {
        let (pes, objects) = (&self.nodes.pes[node], &self.objects[node]);
        let database = self.database_of(node);
        if objects.is_empty() || !database.pes.iter().any(|pe| pe.available) {
            return Ok(Vec::new());
        }
        let machine =
            Allocation::of(self.topology, pes.clone(), "node".into()).map_err(StrategyError::Bug)?;
        let answer = answer_of(choice, &database, &machine, seed)?;
        Ok(objects.iter().zip(answer.pe_of).map(|(&object, pe)| (object, pes[pe as usize])).collect())
    }

    /// The database of a node, in which arriving objects are on the PEs that finish them first.
    fn database_of(&self, node: usize) -> Database {
        let whole = self.database;
        let local = |pe: u32| self.nodes.pes[node].partition_point(|&other| other < pe) as u32;
        let is_here = |object: &Object| self.nodes.of[object.pe as usize] as usize == node;
        let pes: Vec<PeRecord> =
            self.nodes.pes[node].iter().map(|&pe| whole.pes[pe as usize].clone()).collect();
        let of_whole = |&object: &u32| &whole.objects[object as usize];
        let place = |object: &Object| if is_here(object) { local(object.pe) } else { 0 };
        let mut objects: Vec<Object> = self.objects[node]
            .iter()
            .map(of_whole)
            .map(|object| Object { pe: place(object), ..object.clone() })
            .collect();
        let mut seconds: Vec<f64> = pes.iter().map(|pe| pe.background_seconds).collect();
        let mut arrived = Vec::new();
        for (at, object) in self.objects[node].iter().map(of_whole).enumerate() {
            if is_here(object) {
                let pe = objects[at].pe as usize;
                seconds[pe] += object.load_seconds / pes[pe].speed;
            } else {
                arrived.push(at);
            }
        }
        arrived.sort_by(|&a, &b| objects[b].load_seconds.total_cmp(&objects[a].load_seconds));
        for at in arrived {
            let end = |pe: &usize| seconds[*pe] + objects[at].load_seconds / pes[*pe].speed;
            let open = (0..pes.len()).filter(|&pe| pes[pe].available);
            let Some(pe) = open.min_by(|a, b| end(a).total_cmp(&end(b))) else { break };
            seconds[pe] = end(&pe);
            objects[at].pe = pe as u32;
        }
        let end = |end: End| match end {
            End::Object(object) => End::Object(self.position[object as usize]),
            End::Pe(pe) => End::Pe(local(pe)),
        };
        let edge = |&at: &u32| {
            let edge = &whole.edges[at as usize];
            Edge { from: end(edge.from), to: end(edge.to), ..edge.clone() }
        };
        Database {
            step: whole.step,
            arrays: whole.arrays.clone(),
            pes,
            objects,
            communication_recorded: whole.communication_recorded,
            edges: self.edges[node].iter().map(edge).collect(),
            dangling_edges: 0,
            costs: whole.costs.clone().map(|costs| Costs { strategies: BTreeMap::new(), ..costs }),
            constraints: Constraints::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use equipoise_model::topology;

    use super::*;
    use crate::testing;

    #[test]
    fn objects_that_arrive_begin_where_they_end_first() {
        // PEs 2 and 3 are the second node; objects 0 and 1 arrive there.
        let mut database = testing::database(4, &[(2.0, 0), (5.0, 1), (4.0, 2), (9.0, 0)]);
        database.pes[3].speed = 2.0;
        let edge = |from, to| Edge { from: End::Object(from), to: End::Object(to), messages: 1, bytes: 8 };
        database.edges = vec![edge(1, 2), edge(3, 2), Edge { to: End::Pe(3), ..edge(0, 0) }];
        let nodes = Nodes { pes: vec![vec![0, 1], vec![2, 3]], of: vec![0, 0, 1, 1] };
        let machine = topology::flat(4);
        let inside = Inside::of(&database, &*machine, &nodes, &[1, 1, 1, 0]);
        let second = inside.database_of(1);
        // The object of 5 s ends after 2.5 s on PE 3; that of 2 s then ends there after 3.5 s, on PE 2 after 6 s.
        assert_eq!(second.placement(), [1, 1, 0]);
        assert_eq!(second.edges, [edge(1, 2), Edge { to: End::Pe(1), ..edge(0, 0) }]);
        assert_eq!(second.check(), Ok(()));
        assert_eq!(inside.database_of(0).objects.len(), 1);
    }
}
