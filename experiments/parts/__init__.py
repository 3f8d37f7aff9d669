"""Parts that one experiment alone uses; a config names them by `uses`."""
