"""A package, so that what its tests share (fixtures of the scope "package") ends with them."""
