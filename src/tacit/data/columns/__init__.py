"""How a column of a table becomes features, one kind a file: each cell from that cell and declared constants alone.

encoding      what every such kind is: a `FeatureColumn`
numeric       a number, its bins or its splines
categorical   one of a list
date          dates and times: year, month, weekday, hour
text          free text, hashed by a public seed
cross         the product of the levels of columns
"""
