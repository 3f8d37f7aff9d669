"""Parts: ideas about positions and attention, one file each, for models from scratch and pretrained ones.

A part holds everything of its idea: the section of the config and its rules, what it must know about the tokens of a
row, the weights it adds, what it does in a forward pass, and the paper it comes from. Models, trees, engines and the
training loop go through the parts of a model and name none of them. `part.py` is the contract:

    PartConfig      the section `parts.KIND` of a config
      check         rules: which formats, tasks and other parts it goes with
      build         the part, for a model
    Part            a module of the model
      attach        changes the model once, when it is built
      read          learns the vocabulary, and in which order digits are written
      position_ids  the position ids of these tokens, if the part decides them
      positions     how far apart tokens are by these ids
      most_digits   the longest answer for which there are enough ids
      inputs        what it must know about tokens, computed from whole rows (`rows.py`)
      embedded      changes the embeddings
      drawn         changes the inputs of a training batch at random
      shareable     how much of a row can be shared with other rows
      act           what it does in one forward pass, an `Act`
    Act             undone when the pass ends
      shared        changes the mask of all layers
      mask          changes what is added to the scores of a layer
      queries       gives words and digits different queries
      scores        changes the scores of a layer in a way that depends on queries
      weights       the weights of the last heads, instead of a softmax
      found         adds to the output of the heads
      loss          an auxiliary loss

A part overrides what it needs. The three hardest, on this page:

    counted_ids     position_ids, computed in each pass, because they depend on weights (experiments/parts)
    relative_keys   scores: the query times a learned vector for each distance (`Step.positions`)
    stick_breaking  weights: those of a walk over the keys that a query sees (`Step.visible_BHQK`)

Inputs are tensors whose names end in their shape: _BQ (one entry for each token of the forward pass), _BK (one for each
token of the rows), _BQK (one for each pair). From these letters, `lab.trees` knows how to lay them out for a tree.

To add a part, write one file with a PartConfig and a Part, and name its module in the config: `uses: [my_part]`. The
order in which a config names parts means nothing.
"""
