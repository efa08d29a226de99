// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package report

// The parts of the page that don't depend on the results.

const intro = `# Performance

Whole schedulers, measured with [scheduler_perf](https://github.com/kubernetes/kubernetes/tree/master/test/integration/scheduler_perf),
the benchmark of Kubernetes: API server, scheduler and controllers in one process, etcd beside
it. Absolute numbers are those of one machine; what counts are ratios of workloads that ran
one after the other on it. This page is generated, see [below](#again).

`

const noise = `
The machine did nothing else meanwhile. The processor time of a pod is that of scheduler, API
server and controllers together. What is compared with always ran first. Single runs of ten
seconds differ by some percent: the four runs with 100 nodes gave 0.87 to 1.10 of upstream's.

Not all was measured with one version. Of a later one, in which less is computed for complete
sets, are the cluster of 100 nodes, the match, ring and block of half full 1,000 and one of two
runs with its count and grid, the burst, and upstream's workloads of 1,000 nodes, those of 2,000
and 5,000 pods, the empty and full ones of partitionable devices, and the full one of consumable
capacity. Since then shares of devices are compared with less work, for which only the full
1,000 nodes of consumable capacity were measured again, and selectors are evaluated less often,
for which only the half hour below was.
`

const setsText = `Pods with CEL constraints on our profile, and the same pods with only a count of devices
(` + "`count`" + `) or with ` + "`matchAttribute`" + ` (` + "`match`" + `, four devices of one
square) on upstream's, in one scheduler with the configuration in
[manifests/scheduler](../manifests/scheduler/config.yaml). ` + "`grid`" + ` is KEP-5254's
expression for a 2x2 block, ` + "`ring`" + ` a stretch of four of a ring, ` + "`block`" + ` a
bounding box of 2x2.

Ten pods are on their way at any time; each that is bound is deleted and makes room for the
next one, so that the occupancy stays what it is: ` + "`empty`" + `; ` + "`half`" + ` of each
node's devices in use, in squares on one node, any on the next; ` + "`nearlyfull`" + `, all
devices of nine nodes out of ten in use; ` + "`fragmented`" + `, half of the devices of nine
nodes out of ten in use, so that no two neighbours are free there. On a fragmented cluster
pods that only count fit everywhere: the scheduler stops looking after a tenth of 5,000
nodes. Those with a CEL constraint fit on every tenth node, so that all are looked at.
In a ` + "`burst`" + ` a thousand pods come at once and stay, while others are deleted and made.

The last two columns compare with ` + "`count`" + ` of the same cluster; more than 1 is better
than that. An attempt is from the moment when the scheduler takes a pod from the queue until
it is bound. The heap is that of the whole process after a garbage collection.

`

const growthText = `By how much a pod takes longer, and more of the processor, in the larger cluster. Pods that
find sets on different numbers of nodes can't be compared: on a fragmented cluster
` + "`count`" + ` is done with a tenth of the nodes, ` + "`match`" + ` and ` + "`grid`" + ` ask all of
them.

`

const searchText = `For one pod: nodes that the allocator was asked for, how many of them it knew the answer
for, and what it took to find it out for the others.

`

const upstreamText = `The DRA workloads of Kubernetes as they are, with upstream's plugin, and with ours in the
place of it with the argument ` + "`allocator: All`" + `: pods without CEL constraints, served by
our allocator. All that are labelled ` + "`performance`" + ` are there. The two of a pair run one
after the other.

An attempt ends when the pod is bound. Where all pods come at once it is mostly waiting for the
API server, and the longer the sooner nodes are found, because more pods are written at the same
time. Of ` + "`ExtendedResourceScoring/2000pods_200nodes`" + ` a pod's Filter takes 5.4 ms on
average instead of 8.1, its PreBind 531 ms instead of 358.

Before ` + "`ConsumableCapacity/full_1000nodes`" + ` is measured there are 7,990 pods to be
scheduled. Upstream's plugin takes more than ten minutes for them, after which scheduler_perf
gives up by default; it was given more.

In ` + "`SharedPodGroupResourceClaim`" + ` a hundred pools belong to all nodes, by a node
selector: what they have for a node is kept by ours, and gathered anew for each pod and node by
upstream's.

`

const soakText = `Pods of both profiles, with and without CEL constraints, come and go on 1,000 nodes with
16 devices each. A ledger follows all versions of all claims: a violation would be a device
that two claims have at the same time, or a set that is not what its claim asks for. The
scheduler's heap is measured after a garbage collection. API server, etcd, kubelets' stand-in
and scheduler share the machine's two processors, and latencies follow its speed.

`

const again = `
## Again

` + "```sh" + `
make perf PERF_RESULTS=/tmp/results    # an hour; PERF=<pattern> for less
make soak                              # half an hour
make perf-report PERF_RESULTS=/tmp/results
` + "```" + `

The workloads are in
[performance-config.yaml](../test/perf/scheduler_perf/performance-config.yaml), in the format of
scheduler_perf; those labelled ` + "`short`" + ` are part of ` + "`go test`" + `. What is kept of
the results is in [performance/results.json](performance/results.json); without PERF_RESULTS
the page is written from that. [Limits](limits.md#caches) says how much memory the caches take.
`
