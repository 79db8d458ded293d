"""Every method by name, one line each: where its entry is. A method is imported when it is first asked for."""

from __future__ import annotations

from tacit.methods.method import Entry, check_entry
from tacit.registry import Registry

METHODS: Registry[Entry] = Registry(
    "method",
    {
        "objp": "tacit.methods.admm:OBJP",
        "objt": "tacit.methods.admm:OBJT",
        "outp": "tacit.methods.admm:OUTP",
        "objt-laplace": "tacit.methods.admm:OBJT_LAPLACE",
        "admm": "tacit.methods.admm:ADMM",
        "iadmm-prox": "tacit.methods.admm:IADMM_PROX",
        "iadmm-trust": "tacit.methods.admm:IADMM_TRUST",
        "amp": "tacit.methods.noisy_minimum:AMP",
        "chaudhuri": "tacit.methods.noisy_minimum:CHAUDHURI",
        "chaudhuri-output": "tacit.methods.noisy_minimum:CHAUDHURI_OUTPUT",
        "cpsgd": "tacit.methods.cpsgd:ENTRY",
        "dp-fedavg": "tacit.methods.fedavg:DP_FEDAVG",
        "dpsgd": "tacit.methods.gradient_descent:CENTRAL",
        "dpsgd-local": "tacit.methods.gradient_descent:LOCAL",
        "dvp": "tacit.methods.exact_admm:DVP",
        "fedavg": "tacit.methods.fedavg:FEDAVG",
        "fedgd": "tacit.methods.gradient_descent:FEDGD",
        "fedprox": "tacit.methods.fedavg:FEDPROX",
        "gadmm": "tacit.methods.gadmm:ENTRY",
        "graph-admm": "tacit.methods.graph_admm:ENTRY",
        "iceadmm": "tacit.methods.appfl:ICEADMM_ENTRY",
        "iiadmm": "tacit.methods.appfl:IIADMM_ENTRY",
        "input-perturbation": "tacit.methods.input_perturbation:ENTRY",
        "kifer": "tacit.methods.noisy_minimum:KIFER",
        "objp-local": "tacit.methods.multilocal:OBJP",
        "objt-local": "tacit.methods.multilocal:OBJT",
        "nbafl": "tacit.methods.fedavg:NBAFL",
        "onemessage": "tacit.methods.onemessage:ENTRY",
        "onemessage-sum": "tacit.methods.onemessage:SUM",
        "outp-huang": "tacit.methods.outp:HUANG",
        "outp-plus": "tacit.methods.outp:PLUS",
        "outp-released": "tacit.methods.outp:RELEASED",
        "pvp": "tacit.methods.exact_admm:PVP",
        "secure-sum": "tacit.methods.gradient_descent:SECURE_SUM",
    },
    check_entry,
)
