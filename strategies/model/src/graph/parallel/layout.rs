//! The ranks of a job along the dimensions of parallelism, and the groups that communicate.

use crate::grid::count_pes;

/// A dimension of parallelism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// Tensor parallel.
    Tp,
    /// Context parallel.
    Cp,
    /// Expert parallel.
    Ep,
    /// Data parallel.
    Dp,
    /// Pipeline parallel.
    Pp,
}

/// All dimensions, in Megatron's default order.
const ALL: [Dimension; 5] = [Dimension::Tp, Dimension::Cp, Dimension::Ep, Dimension::Dp, Dimension::Pp];

impl Dimension {
    /// The name in orders and specs.
    pub fn name(self) -> &'static str {
        ["tp", "cp", "ep", "dp", "pp"][self as usize]
    }
}

/// The ranks of a group, in its order.
pub type Group = Vec<u32>;

/// What groups of one kind do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Role {
    /// The name, such as `tp`, `dp-cp` or `edp`.
    pub name: &'static str,
    /// The dimension.
    pub dimension: Dimension,
    /// Whether the groups are those of experts.
    pub is_of_experts: bool,
    /// The ranks of a group.
    pub size: usize,
}

/// The sizes of all dimensions, and their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The dimensions, the fastest first.
    order: [Dimension; 5],
    /// By dimension: the size outside experts, where ep is 1.
    dense: [usize; 5],
    /// By dimension: the size in experts, where cp is 1.
    experts: [usize; 5],
    /// Experts of a layer; 0 if there are none.
    experts_per_layer: usize,
    ranks: usize,
}

impl Layout {
    /// The job with these sizes in Megatron's default order (tp, cp, ep, dp, pp), and `etp` tensor parallel ranks of
    /// experts. A layer has `experts` experts (none: ep, if the job has groups of experts). `order` has the names of the dimensions with dashes between, the fastest first; those of size 1 may be
    /// missing.
    ///
    /// # Errors
    /// If the order is not understood, there are too many ranks, the ranks cannot be divided among experts, or experts have
    /// other pipeline stages.
    pub fn new(
        order: &str,
        [tp, cp, ep, dp, pp]: [usize; 5],
        etp: usize,
        experts: Option<usize>,
    ) -> Result<Self, String> {
        let order = parse_order(order, [tp.max(etp), cp, ep, dp, pp])?;
        let ranks = count_pes([tp, cp, dp, pp])?;
        let per_stage = ranks / pp;
        let Some(edp) =
            etp.checked_mul(ep).filter(|&size| per_stage.is_multiple_of(size)).map(|size| per_stage / size)
        else {
            return Err(format!(
                "the {per_stage} ranks of a pipeline stage (tp * cp * dp) cannot be divided among experts with etp={etp} \
                 and ep={ep}; choose ep and etp whose product divides {per_stage}"
            ));
        };
        let experts_per_layer = experts.unwrap_or(if ep > 1 || etp != tp { ep } else { 0 });
        if !experts_per_layer.is_multiple_of(ep) {
            return Err(format!(
                "{experts_per_layer} experts cannot be divided among ep={ep} ranks; choose a multiple of {ep}"
            ));
        }
        let (dense, experts) = ([tp, cp, 1, dp, pp], [etp, 1, ep, edp, pp]);
        let layout = Layout { order, dense, experts, experts_per_layer, ranks };
        let stage = |sizes: &[usize; 5]| layout.stride(sizes, Dimension::Pp);
        if experts_per_layer > 0 && pp > 1 && stage(&dense) != stage(&layout.experts) {
            return Err("experts would have other pipeline stages than the other layers in this order; \
                        put pp first or last"
                .into());
        }
        Ok(layout)
    }

    /// The number of ranks.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// The size of a dimension outside experts.
    pub fn size(&self, dimension: Dimension) -> usize {
        self.dense[dimension as usize]
    }

    /// The size of a dimension in experts.
    pub fn size_in_experts(&self, dimension: Dimension) -> usize {
        self.experts[dimension as usize]
    }

    /// The experts of a layer; 0 if there are none.
    pub fn experts_per_layer(&self) -> usize {
        self.experts_per_layer
    }

    /// The coordinates tp, cp, dp, pp of a rank.
    pub fn coordinates(&self, rank: usize) -> [usize; 4] {
        [Dimension::Tp, Dimension::Cp, Dimension::Dp, Dimension::Pp]
            .map(|dimension| rank / self.stride(&self.dense, dimension) % self.size(dimension))
    }

    /// The kinds of groups with more than one rank. Groups of experts exist if layers have experts.
    pub fn roles(&self) -> Vec<Role> {
        let [tp, cp, _, dp, pp] = self.dense;
        let [etp, _, ep, edp, _] = self.experts;
        let role = |name, dimension, is_of_experts, size| Role { name, dimension, is_of_experts, size };
        let dense = [
            role("tp", Dimension::Tp, false, tp),
            role("cp", Dimension::Cp, false, cp),
            role(if cp > 1 { "dp-cp" } else { "dp" }, Dimension::Dp, false, dp * cp),
            role("pp", Dimension::Pp, false, pp),
        ];
        let experts = [
            role("etp", Dimension::Tp, true, etp),
            role("ep", Dimension::Ep, true, ep),
            role("edp", Dimension::Dp, true, edp),
        ];
        let experts = experts.into_iter().filter(|_| self.experts_per_layer > 0);
        dense.into_iter().chain(experts).filter(|role| role.size > 1).collect()
    }

    /// All groups of one kind: the ranks that differ only in the coordinates of the role. Groups, and the ranks of a
    /// group, are in ascending order.
    pub fn groups(&self, role: &Role) -> Vec<Group> {
        let sizes = if role.is_of_experts { &self.experts } else { &self.dense };
        // Weights are the same on all context parallel ranks.
        let is_inside = |dimension| {
            dimension == role.dimension
                || role.dimension == Dimension::Dp && !role.is_of_experts && dimension == Dimension::Cp
        };
        // The number of the group is the number of the rank without the coordinates inside the group.
        let mut groups = vec![Vec::with_capacity(role.size); self.ranks / role.size];
        for rank in 0..self.ranks {
            let (mut rest, mut number, mut stride) = (rank, 0, 1);
            for dimension in self.order {
                let size = sizes[dimension as usize];
                if !is_inside(dimension) {
                    number += rest % size * stride;
                    stride *= size;
                }
                rest /= size;
            }
            groups[number].push(rank as u32);
        }
        groups
    }

    /// The difference of ranks that are neighbors in a dimension.
    fn stride(&self, sizes: &[usize; 5], dimension: Dimension) -> usize {
        let before = self.order.iter().take_while(|&&other| other != dimension);
        before.map(|&other| sizes[other as usize]).product()
    }
}

/// The dimensions of an order such as `tp-dp-pp`; those that are missing have size 1 and are appended.
fn parse_order(text: &str, sizes: [usize; 5]) -> Result<[Dimension; 5], String> {
    let mut order: Vec<Dimension> = Vec::with_capacity(ALL.len());
    for name in text.split('-') {
        let dimension = ALL.into_iter().find(|dimension| dimension.name().eq_ignore_ascii_case(name));
        let dimension = dimension.filter(|dimension| !order.contains(dimension)).ok_or_else(|| {
            format!("order={text} is not understood: expected each of tp, cp, ep, dp, pp at most once, as in tp-cp-ep-dp-pp")
        })?;
        order.push(dimension);
    }
    for dimension in ALL {
        if !order.contains(&dimension) {
            let size = sizes[dimension as usize];
            if size > 1 {
                let name = dimension.name();
                return Err(format!("order={text} lacks {name}, which is {size}; add {name} to the order"));
            }
            order.push(dimension);
        }
    }
    order.try_into().map_err(|_| "an order has 5 dimensions".to_string())
}
