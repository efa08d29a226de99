// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"maps"
	"slices"
	"strings"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/cel/memo"
)

// Most changes of a cluster are a condition, a heartbeat, a version of its agent: they change
// nothing that filters, scores, ranks, groups or slices are made from. Then all of these are
// those of the last run, but for the objects of the clusters that have changed. That this is so
// is found out from what the steps read, cluster by cluster, and not from what kind of change
// it is:
//
//   - the verdict of the predicates,
//   - the set that the cluster is in, and its taints,
//   - the amounts that prioritizers of the Placement read,
//   - its labels and claims, if there are spread constraints or decision groups,
//
// and, for all clusters together, the Placement, its former decision, and with Balance the
// decisions of all others. Where a step asks for the time or for AddOnPlacementScores, or an
// evaluation failed, nothing is settled, and everything is done anew.
//
// What a result has is never modified, so that results share it. Candidates are replaced
// with the batch that they were made in: else that would keep the former objects of clusters.

// decidedBytes is the bound for what all Schedulers of a process keep of it. It is another one
// than that of the verdicts, which take longer to be found again.
const decidedBytes = 128 << 20

var decided = memo.New(decidedBytes)

// settled is the last run of a Placement, as far as the steps after the predicates go.
type settled struct {
	inputs
	eligible []string
	// lastScores is when the scores were updated last.
	lastScores *metav1.Time
	clusters   []*clusterv1.ManagedCluster
	sets       []int

	// candidates are in order of their names. ranks has, for each of them, its index in ranked.
	candidates, ranked []*Candidate
	ranks              []int32
	filters            []Filtered
	warnings           []Warning
	outOfRange         map[string]int
	totalCost          uint64
	decision           *Decision
}

// inputs are what a run depends on besides the clusters.
type inputs struct {
	plan      *plan
	key       types.NamespacedName
	tieBreak  string
	former    *former
	decisions *Decisions
	version   uint64
}

// renewed is an answer that was replaced: its index, and what it was.
type renewed struct {
	index  int
	former match
}

// settling finds out whether the plan can settle.
func (p *plan) settling(spec *clusterv1beta1.PlacementSpec) {
	p.settles = !slices.ContainsFunc(spec.Tolerations, func(t clusterv1beta1.Toleration) bool { return t.TolerationSeconds != nil })
	for _, prioritizer := range p.prioritizers {
		switch prioritizer.Name {
		case Steady:
		case Balance:
			p.balances = true
		case ResourceAllocatableCPU:
			p.amounts = append(p.amounts, clusterv1.ResourceCPU)
		case ResourceAllocatableMemory:
			p.amounts = append(p.amounts, clusterv1.ResourceMemory)
		default:
			p.settles = false
		}
	}
}

func (r *run) inputs() inputs {
	return inputs{r.plan, r.key, r.placement.Annotations[TieBreakAnnotation], r.former, r.snapshot.Decisions, r.version}
}

// settle keeps a run that was done anew, if nothing in it depends on the time. The candidates
// are in order of their names.
func (r *run) settle(memory *memory, candidates []*Candidate) {
	last, decision := r.placement.Status.LastScoreUpdateTime, r.result.Decision
	switch {
	case memory.settled == nil, !r.plan.settles, r.result.Available.fleeting:
		return
	case r.result.Timed, !r.horizon.time.IsZero():
		return
	case last != nil && decision.ScoresUpdated:
		// Whether scores may be updated is a question of time.
		return
	}
	s := &settled{
		inputs: r.inputs(), eligible: r.result.Available.Eligible, lastScores: last,
		clusters: r.result.Available.Clusters, sets: r.result.Available.sets,
		candidates: candidates, ranked: r.result.Candidates,
		ranks: make([]int32, len(candidates)), filters: r.result.Filters, warnings: r.result.Warnings,
		outOfRange: r.result.OutOfRange, totalCost: r.result.TotalCost, decision: decision,
	}
	for rank, c := range s.ranked {
		s.ranks[c.index] = int32(rank)
	}
	memory.settled.Keep(s, s.size())
}

// rebatch copies the candidates of a batch, which begins with an index.
func rebatch(candidates, ranked []*Candidate, ranks []int32, from int) {
	batch := make([]Candidate, min(batchLength, len(candidates)-from))
	for i := range batch {
		batch[i] = *candidates[from+i]
		candidates[from+i] = &batch[i]
		ranked[ranks[from+i]] = &batch[i]
	}
}

// last takes what is settled, nil if nothing is. It is put back by a run that settles: answers
// that any other one has replaced are not among those that the next one replaces.
func (m *memory) last() *settled {
	if m.settled == nil {
		return nil
	}
	defer m.settled.Forget()
	return m.settled.Look()
}

// resume makes the result from the last run if nothing has changed that it depends on, and tells
// whether that is so.
func (r *run) resume(memory *memory, s *settled) bool {
	if s == nil || r.result.Overrun != nil || r.unsure || s.inputs != r.inputs() || !s.lastScores.Equal(r.placement.Status.LastScoreUpdateTime) {
		return false
	}
	changed, alike := r.changed(s)
	if !alike {
		return false
	}
	totalCost, same := r.sameVerdicts(s, memory.answers)
	if !same {
		return false
	}
	if len(changed) > 0 || totalCost != s.totalCost {
		s = r.replaced(s, changed)
		s.totalCost = totalCost
	}
	memory.settled.Keep(s, s.size())
	r.result.resumed = true
	r.result.Filters, r.result.Candidates, r.result.TotalCost = s.filters, s.ranked, s.totalCost
	r.result.Warnings, r.result.OutOfRange = s.warnings, s.outOfRange
	r.report.evaluated(nil)
	r.report.scheduled(s.decision.Clusters)
	r.result.Decision = s.decision
	return true
}

// changed are the available clusters that are other objects than in the last run. alike is false
// if one differs in what is read after the predicates, or so many do that it is no less work to
// do everything anew.
func (r *run) changed(s *settled) (changed []int, alike bool) {
	available := r.result.Available
	if len(available.Clusters) != len(s.clusters) || available.fleeting ||
		!slices.Equal(available.Eligible, s.eligible) || !slices.Equal(available.sets, s.sets) {
		return nil, false
	}
	most := batchLength + len(s.clusters)/batchLength
	for i, c := range available.Clusters {
		if c == s.clusters[i] {
			continue
		}
		if len(changed) == most || !r.alike(s.clusters[i], c) || !r.inPlace(s.clusters[i], c) {
			return nil, false
		}
		changed = append(changed, i)
	}
	return changed, true
}

// alike tells whether the steps after the predicates read the same of two objects, but for where they are: see
// inPlace.
func (r *run) alike(a, b *clusterv1.ManagedCluster) bool {
	if a.Name != b.Name || !slices.EqualFunc(a.Spec.Taints, b.Spec.Taints, sameTaint) {
		return false
	}
	for _, resource := range r.plan.amounts {
		one, is := amountOf(&a.Status, resource)
		other, isOther := amountOf(&b.Status, resource)
		if one != other || is != isOther {
			return false
		}
	}
	return true
}

// inPlace tells whether two objects are in the same topologies and in the same decision groups.
func (r *run) inPlace(a, b *clusterv1.ManagedCluster) bool {
	if len(r.plan.spread) == 0 && len(r.plan.groups) == 0 {
		return true
	}
	return maps.Equal(a.Labels, b.Labels) && slices.Equal(a.Status.ClusterClaims, b.Status.ClusterClaims)
}

func sameTaint(a, b clusterv1.Taint) bool {
	return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect && a.TimeAdded.Equal(&b.TimeAdded)
}

// sameVerdicts tells whether answers that were replaced say the same, and returns what all of them
// cost.
func (r *run) sameVerdicts(s *settled, answers []answer) (totalCost uint64, same bool) {
	totalCost = s.totalCost
	for _, one := range r.renewed {
		is := &answers[one.index]
		if is.match.holds != nil || is.match.predicate != one.former.predicate || !sameReason(is.match.reason, one.former.reason) ||
			slices.ContainsFunc(is.reads, func(of read) bool { return !of.until.IsZero() }) {
			return 0, false
		}
		totalCost += is.match.cost - one.former.cost
	}
	return totalCost, true
}

// sameReason compares reasons of answers: of those that are not settled none is the same.
func sameReason(a, b Reason) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	one, is := a.(*Unmatched)
	other, isOther := b.(*Unmatched)
	return is && isOther && slices.Equal(one.Parts, other.Parts)
}

// replaced is what was settled with other objects of the same clusters.
func (r *run) replaced(s *settled, changed []int) *settled {
	next := *s
	if len(changed) == 0 {
		return &next
	}
	next.clusters = r.result.Available.Clusters
	next.candidates, next.ranked = slices.Clone(s.candidates), slices.Clone(s.ranked)
	done := -1
	for _, i := range changed {
		cluster := next.clusters[i]
		at, passed := slices.BinarySearchFunc(next.candidates, cluster.Name, func(c *Candidate, name string) int {
			return strings.Compare(c.Cluster.Name, name)
		})
		if !passed {
			continue
		}
		if from := at / batchLength * batchLength; from != done {
			rebatch(next.candidates, next.ranked, next.ranks, from)
			done = from
		}
		next.candidates[at].Cluster = cluster
		if next.candidates[at].Avoided != nil {
			next.candidates[at].Avoided = r.taints(cluster).avoids
		}
	}
	return &next
}

// size is what it takes besides the clusters. Lists of them are those of all Placements with the same sets.
func (s *settled) size() memo.Size {
	perCandidate := int(unsafe.Sizeof(Candidate{})) + 2*int(unsafe.Sizeof(s.ranked[0])) + int(unsafe.Sizeof(s.ranks[0])) +
		len(s.plan.prioritizers)*int(unsafe.Sizeof(int64(0)))
	bytes := len(s.candidates)*perCandidate + s.decision.Clusters*int(unsafe.Sizeof(clusterv1beta1.ClusterDecision{}))
	for _, filtered := range s.filters {
		bytes += len(filtered.Removed) * int(unsafe.Sizeof(Removal{}))
		for i, removal := range filtered.Removed {
			if i == 0 || removal.Reason != filtered.Removed[i-1].Reason {
				bytes += reasonBytes
			}
		}
	}
	size := memo.Size{Bytes: bytes}
	if len(s.clusters) > 0 {
		perCluster := int(unsafe.Sizeof(s.clusters[0])) + int(unsafe.Sizeof(s.sets[0]))
		size.Parts = []memo.Part{{Of: &s.clusters[0], Bytes: len(s.clusters) * perCluster}}
	}
	return size
}
