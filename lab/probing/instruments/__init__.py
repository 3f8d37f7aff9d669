"""What activations hold, and what changing them does: one instrument in each file, with its controls.

An instrument is a function of a subject, and of sums or pairs, that returns `Measured` arrays.

Arguments with the same meaning in all instruments are explained only here:

    subject                   the model
    sums                      the sums that it reads
    lengths                   sums by their number of digits
    pairs                     pairs of sums; patching runs them in both directions, and refuses a subject that cannot
                              add them
    layers, sites, columns    where the instrument measures; everywhere if not given
    batch_size                rows per forward pass; several changed copies of the sums share a pass if they fit
    seed                      the seed of all random draws
"""
