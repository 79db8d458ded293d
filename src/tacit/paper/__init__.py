"""The tables and figures of Ryu & Kim (2021), remade from runs: one TOML file each, in artefacts/."""
