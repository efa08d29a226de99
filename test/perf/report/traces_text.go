// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package report

// The parts of the page on fragmentation that don't depend on the results.

const tracesIntro = `# Claims that come and go

` + mark + `

Who chooses the devices of a claim decides what is left for the next one. Here claims come and go on
100 nodes of one kind, in simulated time, and are placed by celset's allocator with and without
preferences, and by others. What is counted depends on a seed alone, not on the machine that it ran
on; only [times](#time) do. This page is generated, see [below](#again).

**Claims** want 1, 2, 4 or 8 devices, and from two on a set that the class of the devices defines: whole
bridged pairs; a stretch of the ring; a block of 1 x 2, 2 x 2 or 2 x 4, either way round; GPUs that are
all linked to each other by NVLink. Eight devices are the whole node, but on the mesh, which has 16. Two
mixes stand for the jobs of Philly, Microsoft's cluster for machine learning (Jeon et al., ATC 2019), as
the simulators of two published schedulers have them:

| mix | 1 | 2 | 4 | 8 | minutes |
|---|---|---|---|---|---|
| few for eight: Gavel's (Narayanan et al., OSDI 2020) | 70 % | 10 % | 15 % | 5 % | 10^1.5 to 10^3, one of five 10^3 to 10^4 |
| one or eight: ElasticFlow's (Gu et al., ASPLOS 2023), the 1 % for 16 added to 1 | 84 % | 3 % | 3 % | 10 % | 10 to 10^3, one of twenty 10^3 to 10^4 |

Logarithms of durations are uniform, times between arrivals exponential. **Load** is the device time that
all claims of a trace want, as a share of what there is; a claim takes the same time wherever it runs.

**Waiting** is as in kube-scheduler: a claim is tried when it arrives, whoever waits, and those that wait
are tried in the order of their arrival whenever another one departs. Nobody is preempted, and no device
is kept free for a claim that waits. The first fifth of a trace is not counted.

| policy | node | set of devices |
|---|---|---|
| today | any where one fits, as kube-scheduler has it where scores are equal | the first that satisfies the constraint |
| random | any where one fits | any that satisfies the constraint |
| first fit | the first where one fits | the first |
| fullest node | with the fewest free devices, where one fits | the first |
| best effort | the first with enough free devices | what [NVIDIA's best-effort policy](https://github.com/NVIDIA/go-gpuallocator) itself takes, go-gpuallocator v0.6.0: the free GPUs are divided into sets of the wanted size so that the scores of links add up to the most, what is left over included, and the best of these sets is taken. It knows no constraints: where claims have some, a node is passed over if its set is none |
| links | with the most links, the first of several | the one with the most, by a ` + "`CELDevicePreference`" + ` whose expression adds up the same scores |
| KeepWhole | where the fewest sets are broken that others ask for, the first of several | the one that breaks the fewest, by ` + "`policy: KeepWhole`" + ` |
| KeepWhole, ties at random | any of those where as few are broken | the same |
| links, KeepWhole | both, one after the other | both |
| pool | none: all devices are of one | any |

First fit is what nobody has: kube-scheduler does not go through nodes in one order. The pool is not a
limit, for it lets single devices in that others keep waiting, but says what can be had at all.

`

const atOnceText = `Of the claims for four and eight devices, the share that was placed when they arrived: all kinds of nodes
whose claims have constraints, and both mixes. The last two columns compare KeepWhole with today's choice,
and with the first fit.

`

const atOnceAfter = `
Singles on any node break whole ones first, so that hardly any is left when eight devices are wanted. To
go through the nodes in one order does most of what can be done about that. Which devices are taken, and
which of the nodes in use, does the rest, and matters where there is hardly room. Where everything fits
there is nothing to gain.

`

const waitingText = `All sizes, with the first mix at the two highest loads. ` + "`placed`" + ` is all claims that were placed before
the trace ended, at once or later. Idle while one waits are devices that nobody uses while a claim waits
that wants no more than are idle in the cluster, as a share of all device time.

`

const linksText = `Nodes of 8 GPUs, wired as in a DGX-1 with V100: 100 for each link of NVLink between two GPUs, and besides
50 below one PCIe switch, 30 at one CPU, 10 otherwise, as NVIDIA's policy counts. The sum over each two
of a claim's GPUs, on average over the claims that were placed, first mix. Where any GPUs will do, claims
have no constraint, and with it no lower limit.

`

const askedText = `The same on single nodes, with the same devices idle for both; times are medians. The preference finds
the best set that there is. Best effort is NVIDIA's own code, which finds the best way to divide all idle
devices, of which the best set may be no part. Its time grows with the number of such ways: at most 105 on
8 GPUs, 2,027,025 for pairs of 16 devices and 2,627,625 for fours.

The preference is read from an expression, and what it finds is remembered for all nodes that are alike. So
there are three times of it. Not met: these devices were not idle anywhere before, on hardware that was
known. Known, the first: they were, but it is the first node that a claim asks, with what is done once for
each claim. Known, further: another node of the same claim. None has what it takes to make an allocator for a
claim, which is part of [a claim](#time). Best effort remembers nothing.

Best effort only chooses, among devices that it is given. An allocator also finds the devices of a node, those that are
in use and those that selectors want, and makes the result, which all times of the preference have in them. What that takes
is measured with upstream's allocator, which does not choose: it takes the first devices for the same claim, on a further
node. So it is best effort and this allocator that do what the preference does. The other way round, what choosing adds to
an allocation is what best effort alone can be compared with: the last column has our allocator's time for the same
claim without a preference, on a further node.

On 8 GPUs best effort and an allocator take more than the preference for each further node, and about as much as it for
the first node of a claim, less if few are idle. They take less for devices that were not met, which is once for all nodes and
claims. A further node takes no longer with the preference than without it: what was found for such a node is looked
up, while the first devices are searched again. So choosing adds less than best effort takes alone, where only four are
idle as well, with at most three ways to divide them; there best effort alone takes less than a whole allocation. On 16
devices it takes milliseconds to seconds when twelve or more are idle, the preference less than one millisecond.

`

const scheduledText = `Smaller traces of the same kind, on a control plane with celset-scheduler, and in simulation. For each claim that
arrives a ResourceClaim and a pod are created, for each that departs both are deleted, and then the
scheduler is waited for until every pod has a node or is marked unschedulable, and none of these would fit.
Those that wait do so in the scheduler's queue. ` + "`manifests`" + ` is the configuration in
[manifests/scheduler](../manifests/scheduler/config.yaml), in which the nodes with the fewest pods are preferred, with
` + "`defaultPreference: KeepWhole`" + ` or without it. With ` + "`nodes in order`" + ` pods prefer the first of several nodes, by node
affinity, and nothing else but devices has a part in the score: that is the first fit of the simulation.

`

const scheduledPlan = `%d nodes, %d claims for each device, the mix "%s" at a load of %.0f %%, seeds: %d.

`

const scheduledDecisions = `With the manifests' configuration the scheduler placed %.0f of %.0f claims for four and eight devices at once, and %.0f with
KeepWhole. Single traces are short: what is small here is chance.

The scheduler made %d decisions. For %d of them the simulation chooses the same devices with as much free,
and where nodes are taken in order the same node, too: for %d of these with as much as was free before the last
claim departed, of which the scheduler had not heard yet. What differs is who of several that wait is tried first, which in
the simulation is who came first and in the scheduler depends on when they were tried last, and without
an order of nodes which node it is.
`

const timesText = `Measured on: %s, %d cores, %s, while others used them too; medians. Each node is asked for each claim,
with the first mix at a load of 85 %%. A node: one on which a claim for several devices fits, which mostly
is known from a node with the same devices in use. A claim: the allocator that a scheduler makes for it,
and all nodes that the policy asks. Best effort makes nothing for a claim and ends at the first node that
fits, as the first fit does; today, links and KeepWhole ask all 100. So a claim of best effort takes least by
far, for less: it looks at one node after the other and compares none. The nodes that it asks are mostly nearly
full, with few ways to divide what is idle. [Above](#links) both are asked about the same devices.

`

const tracesAgain = `
## Again

` + "```sh" + `
make trace              # replays, and measures times
make trace-scheduler    # replays on a whole scheduler
make perf-report        # this page, from docs/performance/trace.json
` + "```" + `

The replay is [test/perf/trace](../test/perf/trace). Its tests replay smaller traces, pin what becomes of
them, and compare what the allocator chooses with what looking at all sets finds: for every set of free
devices of nodes with 8 devices, and for some of those with 16. One runs a scheduler. All numbers are in
[performance/trace.json](performance/trace.json).
`
