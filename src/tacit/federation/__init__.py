"""Agents elsewhere: each institution runs its own agents, and a coordinator runs the loop.

log           lines about what a process does, and about who is waited for
wire          a message as bytes, in the standard library alone
kinds         the types of all messages
messages      messages as bytes, and the one way from bytes to a checked value; what a transport promises
site          the site file: what an institution holds, limits and agrees to; site_keys defines its keys
sum_config    its section [sum]: whom it adds up with in secure sums, and its own signing keys
ledger_files  ledgers, witnesses and backups of a site; restore puts back what was lost
facts         what both sides know of all records; the records of a site after a feature map
site_policy   what a run may ask of a site, key by key; headroom: whether the largest such run fits under the limit
service       the institution's process: it owns records, gate, noise and ledger, and answers messages
run_service   its agents in one run, each answering by itself; sum_service: their keys in a secure sum
listen        the Unix socket of that process
courier       the Flower ClientApp: it carries messages to that socket, and has access to nothing
plan, asked   the coordinator's folder: its sites and faults, and the run that it asks for
join_phase    before the first round: sites introduce themselves and join; differences: of what they declare
remote_engine the engine of the coordinator: questions out, answers in
individual_rounds, sum_rounds
              rounds of individual answers, or of sums, if some are missing; sum_stops: why a sum is suspended
closing       the end of a run at its sites: budget is freed, keys are deleted
exchange      who is asked and who has answered, over a transport that promises nothing
attendance    counts of who took part
coordinator   one run, from the folder to the result; status says where it stands
flower        the Flower ServerApp, and messages over Flower's grid
door          the one port of a coordinator that sites reach: requests of nodes pass, and no others
certificates  the CA, the server's certificate and the keys of nodes
folders       what `tacit federate init` writes for the coordinator and for each site
commands      the processes of a federation as commands, stock Flower among them
nodes         which keys of nodes Flower knows, and which sites they stand for
control       start a run and see it through, by Flower's own command line
local_demo    a whole federation on one machine, in real processes: the hospitals of heart, or a folder
"""
