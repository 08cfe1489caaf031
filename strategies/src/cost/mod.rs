//! What an answer costs: the metrics of a placement on a machine, and the sentence for a person.
