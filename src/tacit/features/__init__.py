"""Public maps of one record to one record, one file each: the model after it is still convex, and it costs no privacy.

map        what a map is, what it may know, and how it is applied
registry   the maps by name, and which of them is the default for which data
spec       the section [features] of a spec

A map sees public facts when it is made, and one block of records at a time when it is used. It knows no problem and no
privacy: it says a bound on the norm of what it makes, and that number is all that others need.
"""
