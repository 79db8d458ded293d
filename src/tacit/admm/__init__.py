"""The paper: `updates` holds its equations, `agent` and `algorithm` the two halves of a round."""
