"""The public reference's data path, written plainly for comparison. Nothing of it is used by the product.

It computes masked cameras and prompt padding, repeats KV heads, recomputes norm modulations in every step,
keeps a padded cache per text and joins and splits those caches in every cycle. It does not have the module
overhead of the real thing, so ratios against it are a floor.
"""
