//! The bytes that a rank sends or reduces in one training step, from the size of a transformer.
//!
//! Let A be the bytes of the activations of a micro batch on the ranks of one tensor parallel group: batch * sequence *
//! hidden * precision / cp. A pipeline stage has layers / pp layers, and a step has `micros` micro batches. Activations
//! between layers are divided among the tensor parallel ranks (sequence parallelism).
//!
//! | kind | bytes per rank, step and micro batch | source |
//! |---|---|---|
//! | tp | reduces 4 A per layer: twice forward, twice backward; with experts 2 A, because experts have the other two | Narayanan et al. 2021, section 3.2; Korthikanti et al. 2022 |
//! | pp | A/tp, forward to the next stage, and as many back | Narayanan et al. 2021, section 4.1 |
//! | cp | sends 6 (cp-1) A/tp per layer: keys and values forward; keys, values and their gradients backward | Liu et al. 2023 |
//! | ep | sends 4 topk A/tp per layer: to the experts and back, forward and backward | Lepikhin et al. 2020 |
//! | etp | reduces 2 topk A etp/tp per layer: the tokens that are gathered and reduced around the experts | Megatron-LM |
//!
//! Once per step, gradients are reduced: precision * params / (tp pp) bytes (dp), and for experts precision * layers *
//! experts * 8 hidden^2 / (etp ep pp) bytes (edp), since an expert is a feed-forward network of 8 hidden^2 weights.
//! Attention has 4 hidden^2.
//!
//! D. Narayanan et al., "Efficient large-scale language model training on GPU clusters using Megatron-LM", 2021; V.
//! Korthikanti et al., "Reducing activation recomputation in large transformer models", 2022; D. Lepikhin et al., "GShard",
//! 2020. Embeddings, interleaved pipelines and grouped keys and values are left out.

use super::{Dimension, Layout, Role, divide};
use crate::params::Params;

/// The largest value of a parameter of the model.
const MAX: usize = 1 << 40;

/// Bytes per rank and step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Volumes {
    tp: u64,
    cp: u64,
    dp: u64,
    pp: u64,
    ep: u64,
    etp: u64,
    edp: u64,
}

impl Volumes {
    /// The volumes of the model that the arguments describe.
    pub(super) fn of_model(params: &mut Params, layout: &Layout) -> Result<Self, String> {
        let mut number = |key| Ok::<_, String>(params.take_count(key, MAX)? as u128);
        let (hidden, layers) = (number("hidden")?, number("layers")?);
        let (sequence, batch, micros) = (number("sequence")?, number("batch")?, number("micros")?);
        let (precision, topk) = (number("precision")?, number("topk")?);
        let size = |dimension| layout.size(dimension) as u128;
        let [tp, cp, pp] = [Dimension::Tp, Dimension::Cp, Dimension::Pp].map(size);
        let [etp, ep] =
            [Dimension::Tp, Dimension::Ep].map(|dimension| layout.size_in_experts(dimension) as u128);
        let experts = layout.experts_per_layer() as u128;
        let too_large = || "the model is too large: its bytes exceed 2^64; use smaller sizes".to_string();
        let product = |factors: &[u128]| {
            let product = factors.iter().try_fold(1u128, |product, &factor| product.checked_mul(factor));
            // The quotients below multiply it by less than 2^40.
            product.filter(|&product| product < 1 << 80).ok_or_else(too_large)
        };
        let square = product(&[layers, hidden, hidden])?;
        let weights = match params.take_count_or_auto("params", 1 << 60)? {
            Some(weights) => weights as u128,
            None if experts > 0 => 4 * square,
            None => 12 * square,
        };
        // Activations, times cp.
        let activations = product(&[batch, sequence, hidden, precision, micros])?;
        let of_layers = product(&[activations, layers])?;
        let reductions = if experts > 0 { 2 } else { 4 };
        let routed = if experts > 0 { topk.min(experts) } else { 0 };
        Ok(Volumes {
            tp: divide(product(&[reductions, of_layers])?, pp * cp),
            cp: divide(product(&[6, cp - 1, of_layers])?, pp * cp * tp),
            pp: divide(activations, cp * tp),
            dp: divide(product(&[precision, weights])?, tp * pp),
            ep: divide(product(&[4, routed, of_layers])?, pp * cp * tp),
            etp: divide(product(&[2, routed, etp, of_layers])?, pp * cp * tp),
            edp: divide(product(&[8, precision, experts, square])?, etp * ep * pp),
        })
    }

    /// These volumes, except for those that the arguments give in bytes. Only groups of several ranks have bytes.
    pub(super) fn given(mut self, params: &mut Params, layout: &Layout) -> Result<Self, String> {
        let all = [
            ("tp_bytes", &mut self.tp, Dimension::Tp, false),
            ("cp_bytes", &mut self.cp, Dimension::Cp, false),
            ("dp_bytes", &mut self.dp, Dimension::Dp, false),
            ("pp_bytes", &mut self.pp, Dimension::Pp, false),
            ("ep_bytes", &mut self.ep, Dimension::Ep, true),
            ("etp_bytes", &mut self.etp, Dimension::Tp, true),
            ("edp_bytes", &mut self.edp, Dimension::Dp, true),
        ];
        let roles = layout.roles();
        for (key, volume, dimension, is_of_experts) in all {
            let Some(bytes) = params.take_bytes_or_auto(key)? else { continue };
            if !roles.iter().any(|role| role.dimension == dimension && role.is_of_experts == is_of_experts) {
                let group = key.trim_end_matches("_bytes");
                return Err(format!(
                    "{key}={bytes} has no effect: every group of {group} has one rank; leave it out"
                ));
            }
            *volume = bytes;
        }
        Ok(self)
    }

    /// The bytes of groups of one kind.
    pub(super) fn of(&self, role: &Role) -> u64 {
        match (role.dimension, role.is_of_experts) {
            (Dimension::Tp, false) => self.tp,
            (Dimension::Tp, true) => self.etp,
            (Dimension::Cp, _) => self.cp,
            (Dimension::Ep, _) => self.ep,
            (Dimension::Dp, false) => self.dp,
            (Dimension::Dp, true) => self.edp,
            (Dimension::Pp, _) => self.pp,
        }
    }
}
