// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/extended"
	"github.com/celset/celset/allocator/nodeset"
	"github.com/celset/celset/plugin/cycle"
)

// groupHosts runs the filters of the profile to find out which pods a node can take together. It implements [nodeset.Hosts].
//
// To test several pods on a node, it runs the filters once for each kind, as the scheduler will: for one pod, while the other
// pods count as running on the node. The claims of all these pods are allocated together. Otherwise the first pod could get
// devices that the second pod needs.
type groupHosts struct {
	pl     *NodeSets
	search *groupSearch
	kinds  []*groupKind
	kindOf map[types.UID]int
	// shared has the names of unallocated claims that several pods of the group use.
	shared sets.Set[string]
	// listedBytes is the size in bytes of all listed device sets. It is 0 unless the expression reads devices.
	listedBytes atomic.Int64

	// mayCompete is set if pods on different nodes might get the same devices. competes is set after a pod that was tried alone
	// got a device that other nodes can reach.
	mayCompete bool
	competes   atomic.Bool
	allocator  sync.Once
	// all allocates the claims of pods of any kind. It is nil if no pod has claims.
	all *allocator.Allocator
	// together maps the index of a member in the last choice to the devices for its pods. A member is a node of the choice.
	together map[int]*memberDevices
}

var _ nodeset.Hosts = &groupHosts{}

// loadBeside has a load: the number of pods of each kind on a node, including the pod that is tried.
type loadBeside struct{ load nodeset.Load }

type loadInContext struct{}

// WithLoad adds the load in the cycle state to the context, so that the allocator allocates for all pods of the load.
func WithLoad(ctx context.Context, state fwk.CycleState) context.Context {
	if alone := askedAloneIn(state); alone != nil && alone.beside != nil {
		return context.WithValue(ctx, loadInContext{}, alone.beside)
	}
	return ctx
}

// Refusal implements [nodeset.Hosts].
func (h *groupHosts) Refusal(ctx context.Context, node int, load nodeset.Load) (string, error) {
	h.search.attempt.Progress()
	for kind, n := range load {
		if n == 0 {
			continue
		}
		if err := h.search.attempt.Over(); err != nil {
			return "", err
		}
		status := h.takesLast(ctx, node, load, kind)
		if status.IsError() {
			return "", status.AsError()
		}
		if !status.IsSuccess() {
			return cmp.Or(strings.Join(status.Reasons(), ", "), "the node is not suitable"), nil
		}
	}
	return "", nil
}

// takesLast runs the filters for one pod of a kind, while the other pods of the load count as running on the node.
func (h *groupHosts) takesLast(ctx context.Context, node int, load nodeset.Load, kind int) *fwk.Status {
	k, info := h.kinds[kind], h.search.infos[node].Snapshot()
	pod, state := k.pods[0], k.state.Clone()
	state.Write(askedAloneKey, &askedAlone{attempt: h.search.attempt, devices: h.devicesOf(k), beside: &loadBeside{load}})
	for other, n := range load {
		if other == kind {
			n--
		}
		for i := range n {
			// The pods of a kind are used from the end, because its first pod is the one that is tried.
			onNode := h.kinds[other].pods[len(h.kinds[other].pods)-1-i].DeepCopy()
			onNode.Spec.NodeName = info.Node().Name
			added, err := framework.NewPodInfo(onNode)
			if err != nil {
				return fwk.AsStatus(err)
			}
			info.AddPodInfo(added)
			if status := h.pl.handle.RunPreFilterExtensionAddPod(ctx, state, pod, added, info); !status.IsSuccess() {
				return status
			}
		}
	}
	return h.pl.handle.RunFilterPluginsWithNominatedPods(ctx, state, pod, info)
}

func (h *groupHosts) devicesOf(k *groupKind) cycle.GroupDevices {
	if k.together == nil {
		return nil
	}
	return k.together
}

// Each implements [nodeset.Hosts].
func (h *groupHosts) Each(ctx context.Context, n int, do func(int)) {
	h.pl.handle.Parallelizer().Until(ctx, n, do, Name)
}

// Compete implements [nodeset.Hosts]. It reports whether pods on different nodes may get the same devices. They may if they
// share a claim, or if some devices can be reached from several nodes. The second case is ruled out if each node takes one pod,
// and each pod tried alone got only devices of its own node.
func (h *groupHosts) Compete() bool {
	return !h.search.ReadsDevices && (len(h.shared) > 0 || h.mayCompete && (h.search.Constraint.PodsPerNode > 1 || h.competes.Load()))
}

func (h *groupHosts) haveClaims() bool {
	return slices.ContainsFunc(h.kinds, func(k *groupKind) bool {
		return len(k.pods[0].Spec.ResourceClaims) > 0 || extended.Claim(k.pods[0], h.pl.handle.SharedDRAManager().DeviceClassResolver().GetDeviceClass) != nil
	})
}

func (h *groupHosts) areDevicesShared() bool {
	all, err := h.pl.slices.ListWithDeviceTaintRules()
	return err == nil && slices.ContainsFunc(all, func(s *resourceapi.ResourceSlice) bool { return !allocator.IsLocal(s) })
}

// Together implements [nodeset.Hosts].
func (h *groupHosts) Together(ctx context.Context, members []nodeset.Member) (bool, error) {
	h.search.attempt.Progress()
	if err := h.search.attempt.Over(); err != nil {
		return false, err
	}
	h.together = map[int]*memberDevices{}
	var on []allocator.NodeClaims
	var at []*memberDevices
	for i, m := range members {
		d := h.claimsFor(m.Node, m.Load)
		if len(d.claims) == 0 {
			continue
		}
		on, at = append(on, allocator.NodeClaims{Node: h.search.infos[m.Node].Node(), Claims: d.claims}), append(at, d)
		h.together[i] = d
	}
	if len(on) == 0 {
		return true, nil
	}
	results, err := h.allocatorOfAll().AllocateAcross(ctx, on)
	for i := range results {
		at[i].results = results[i]
	}
	return results != nil, err
}

// allocatorOfAll returns an allocator for the prepared claims of all kinds of pods. A pod of each kind must have been tried
// before.
func (h *groupHosts) allocatorOfAll() *allocator.Allocator {
	h.allocator.Do(func() {
		prepared := allocator.Prepared{}
		for _, k := range h.kinds {
			c := cycle.ClaimsIn(k.state)
			if c == nil || c.Ours == nil {
				continue
			}
			h.all = c.Ours.Allocator
			for uid, claim := range c.Prepared {
				prepared[uid] = claim
			}
		}
		if h.all != nil && len(h.kinds) > 1 {
			h.all = h.all.WithPrepared(prepared)
		}
	})
	return h.all
}

// memberDevices holds the devices for the pods of one member. A member is a node of the chosen set.
type memberDevices struct {
	// claims holds the claims of all pods on the node. A shared claim occurs once. results[i] is the allocation of claims[i].
	claims  []*resourceapi.ResourceClaim
	results []resourceapi.AllocationResult
	// of[k][p] holds the indices, in claims, of the claims of pod p of kind k.
	of [][][]int
	// shared has the names of claims that several pods use.
	shared sets.Set[string]
}

func (d *memberDevices) isShared(claim *resourceapi.ResourceClaim) bool {
	return d.shared.Has(claim.Name)
}

// claimsFor returns the claims of the pods of a load on a node. Each pod has its own copies of its kind's claims. A shared
// claim occurs only once.
func (h *groupHosts) claimsFor(node int, load nodeset.Load) *memberDevices {
	d, known := &memberDevices{of: make([][][]int, len(load)), shared: h.shared}, map[types.UID]int{}
	for kind, n := range load {
		k := h.kinds[kind]
		if k.together == nil {
			continue
		}
		for range n {
			var places []int
			for _, claim := range k.together.claimsOn(h.search.Nodes[node].Name) {
				at, isKnown := known[claim.UID]
				switch {
				case isKnown:
				case d.isShared(claim):
					at, known[claim.UID] = len(d.claims), len(d.claims)
					d.claims = append(d.claims, claim)
				default:
					at = len(d.claims)
					own := *claim
					d.claims = append(d.claims, &own)
				}
				places = append(places, at)
			}
			d.of[kind] = append(d.of[kind], places)
		}
	}
	return d
}

// devices chooses the devices for the pods of a choice, if several of them could get the same devices. Otherwise each pod gets
// its devices when it is tried.
func (h *groupHosts) devices(ctx context.Context, choice *nodeset.Choice) (map[int]*memberDevices, error) {
	if h.search.ReadsDevices {
		return h.listedDevices(choice), nil
	}
	if h.Compete() {
		_, err := h.Together(ctx, choice.Members)
		return h.together, err
	}
	all := map[int]*memberDevices{}
	for i, m := range choice.Members {
		if m.Load.Pods() < 2 {
			continue
		}
		d := h.claimsFor(m.Node, m.Load)
		if len(d.claims) == 0 {
			continue
		}
		results, err := h.allocatorOfAll().Allocate(ctx, h.search.infos[m.Node].Node(), d.claims)
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", h.search.Nodes[m.Node].Name, err)
		}
		d.results, all[i] = results, d
	}
	return all, nil
}

// listedDevices returns the device sets that satisfied the expression.
func (h *groupHosts) listedDevices(choice *nodeset.Choice) map[int]*memberDevices {
	all := map[int]*memberDevices{}
	for i, m := range choice.Members {
		for kind, n := range m.Load {
			if n == 0 {
				continue
			}
			d := &memberDevices{of: make([][][]int, len(m.Load)), results: h.search.Nodes[m.Node].Sets[kind][m.Set].Results}
			d.claims = make([]*resourceapi.ResourceClaim, len(d.results))
			var places []int
			for at := range d.results {
				d.claims[at] = &resourceapi.ResourceClaim{}
				places = append(places, at)
			}
			d.of[kind] = [][]int{places}
			all[i] = d
		}
	}
	return all
}

// groupAllocator allocates the claims of one pod of a kind, together with the claims of the other pods of the load on the node.
type groupAllocator struct {
	hosts *groupHosts
	kind  int

	mutex sync.Mutex
	// claims maps a node to the claims of one pod there. The claim for extended resources is different on each node.
	claims map[string][]*resourceapi.ResourceClaim
}

func (j *groupAllocator) claimsOn(node string) []*resourceapi.ResourceClaim {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.claims[node]
}

func (j *groupAllocator) Allocate(ctx context.Context, a *allocator.Allocator, node *v1.Node, claims []*resourceapi.ResourceClaim) ([]resourceapi.AllocationResult, error) {
	beside, _ := ctx.Value(loadInContext{}).(*loadBeside)
	if beside == nil {
		j.mutex.Lock()
		j.claims[node.Name] = slices.Clone(claims)
		j.mutex.Unlock()
		results, err := a.Allocate(ctx, node, claims)
		if err == nil && results != nil && j.hosts.mayCompete && !a.AreLocal(node, results) {
			j.hosts.competes.Store(true)
		}
		return results, err
	}
	at := slices.IndexFunc(j.hosts.search.Nodes, func(n nodeset.Node) bool { return n.Name == node.Name })
	d := j.hosts.claimsFor(at, beside.load)
	results, err := j.hosts.allocatorOfAll().Allocate(ctx, node, d.claims)
	if results == nil || err != nil {
		return nil, err
	}
	return d.resultsOf(results, j.kind, 0), nil
}

func (d *memberDevices) resultsOf(results []resourceapi.AllocationResult, kind, pod int) []resourceapi.AllocationResult {
	var own []resourceapi.AllocationResult
	for _, at := range d.of[kind][pod] {
		own = append(own, results[at])
	}
	return own
}

// groupChoice is a chosen set of nodes. devices maps the index of a member to the devices chosen for its pods. Members whose
// pods may get any devices are absent.
type groupChoice struct {
	*nodeset.Choice
	devices map[int]*memberDevices
}

// devicesOf returns the devices chosen for one pod of a kind on a member. It returns nil if the pod may get any devices.
func (c *groupChoice) devicesOf(member, kind, pod int) cycle.GroupDevices {
	d := c.devices[member]
	if d == nil || len(d.of[kind]) == 0 {
		return nil
	}
	chosen := &chosenResults{shared: map[types.UID]resourceapi.AllocationResult{}}
	for _, at := range d.of[kind][pod] {
		if claim := d.claims[at]; d.isShared(claim) {
			chosen.shared[claim.UID] = d.results[at]
		} else {
			chosen.own = append(chosen.own, d.results[at])
		}
	}
	return chosen
}

// chosenResults holds the allocations that were chosen for one pod. own is in the order of the claims that only this pod uses.
// shared maps the UIDs of claims that other pods of the group use, too. Such a claim may be allocated already when this pod is
// tried.
type chosenResults struct {
	own    []resourceapi.AllocationResult
	shared map[types.UID]resourceapi.AllocationResult
}

func (c *chosenResults) Allocate(_ context.Context, a *allocator.Allocator, _ *v1.Node, claims []*resourceapi.ResourceClaim) ([]resourceapi.AllocationResult, error) {
	var results []resourceapi.AllocationResult
	own := c.own
	for _, claim := range claims {
		if result, isShared := c.shared[claim.UID]; isShared && claim.UID != "" {
			results = append(results, result)
		} else if len(own) > 0 {
			results, own = append(results, own[0]), own[1:]
		}
	}
	if len(results) != len(claims) || len(own) > 0 || !a.IsFree(results) {
		return nil, fmt.Errorf("the devices that were chosen for the pod on the node are missing or in use%w", structured.ErrFailedAllocationOnNode)
	}
	return results, nil
}
