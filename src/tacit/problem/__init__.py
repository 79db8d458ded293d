"""What is minimised: losses, regularisers, sets W, and how far one record moves a gradient."""
