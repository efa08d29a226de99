// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/apis/wellknown"
)

// Names of the prioritizers that are built in.
const (
	Steady                    = "Steady"
	Balance                   = "Balance"
	ResourceAllocatableCPU    = "ResourceAllocatableCPU"
	ResourceAllocatableMemory = "ResourceAllocatableMemory"
)

// Scores of every prioritizer are in this range.
const (
	MinScore = -100
	MaxScore = 100
)

// maxWeight is the largest weight, and minus it the smallest.
const maxWeight = 10

// Prioritizer is a prioritizer that took part, with its weight, which is not zero.
type Prioritizer struct {
	// Name is that of a built-in one or AddOn/<resource name>/<score name>.
	Name string
	// Weight is what its scores are multiplied with.
	Weight int32

	score scorer
}

// scorer returns a score for each candidate, in their order. It has the candidates
// sorted by name. An error means that the snapshot could not be read.
type scorer func(r *run, candidates []*Candidate) ([]int64, error)

var builtIn = map[string]scorer{
	Steady:                    steady,
	Balance:                   balance,
	ResourceAllocatableCPU:    allocatable(ResourceAllocatableCPU),
	ResourceAllocatableMemory: allocatable(ResourceAllocatableMemory),
}

// amountsOf are the resources that prioritizers read.
var amountsOf = map[string]clusterv1.ResourceName{ResourceAllocatableCPU: clusterv1.ResourceCPU, ResourceAllocatableMemory: clusterv1.ResourceMemory}

// additive are the weights of a policy that does not say otherwise.
var additive = []string{Balance, Steady}

// prioritizersOf returns those with a weight, the default ones first.
func prioritizersOf(policy *clusterv1beta1.PrioritizerPolicy, wrong *misconfigurations) []Prioritizer {
	path := field.NewPath("spec", "prioritizerPolicy")
	var result []Prioritizer
	switch policy.Mode {
	case "", clusterv1beta1.PrioritizerPolicyModeAdditive:
		for _, name := range additive {
			result = append(result, Prioritizer{Name: name, Weight: 1, score: builtIn[name]})
		}
	case clusterv1beta1.PrioritizerPolicyModeExact:
	default:
		wrong.add(Prioritizers, path.Child("mode"),
			fmt.Sprintf("incorrect prioritizer policy mode: %s; use Additive or Exact", policy.Mode))
	}
	seen := map[string]*field.Path{}
	for i := range policy.Configurations {
		at := path.Child("configurations").Index(i)
		one, ok := configured(&policy.Configurations[i], at, wrong)
		if first := seen[one.Name]; ok && first != nil {
			wrong.add(Prioritizers, at, fmt.Sprintf("%s is configured by %s already; remove one of them", one.Name, first))
			continue
		}
		if ok {
			seen[one.Name] = at
			result = slices.DeleteFunc(result, func(p Prioritizer) bool { return p.Name == one.Name })
			result = append(result, one)
		}
	}
	return slices.DeleteFunc(result, func(p Prioritizer) bool { return p.Weight == 0 })
}

func configured(from *clusterv1beta1.PrioritizerConfig, path *field.Path, wrong *misconfigurations) (Prioritizer, bool) {
	before := len(*wrong)
	if from.Weight < -maxWeight || from.Weight > maxWeight {
		wrong.add(Prioritizers, path.Child("weight"), fmt.Sprintf("the weight %d must be from %d to %d", from.Weight, -maxWeight, maxWeight))
	}
	if from.ScoreCoordinate != nil && from.Weight == 0 {
		// It is disabled. As on any hub it does not matter then whether there is such a one.
		result := coordinate(from.ScoreCoordinate, path, &misconfigurations{})
		return result, result.Name != ""
	}
	result := coordinate(from.ScoreCoordinate, path.Child("scoreCoordinate"), wrong)
	result.Weight = from.Weight
	return result, len(*wrong) == before
}

// coordinate finds the prioritizer of a coordinate. As on any hub, what is not of
// the type BuiltIn is of the type AddOn.
func coordinate(from *clusterv1beta1.ScoreCoordinate, path *field.Path, wrong *misconfigurations) Prioritizer {
	switch {
	case from == nil:
		wrong.add(Prioritizers, path, "scoreCoordinate should not be empty")
	case from.Type == clusterv1beta1.ScoreCoordinateTypeBuiltIn:
		if score, ok := builtIn[from.BuiltIn]; ok {
			return Prioritizer{Name: from.BuiltIn, score: score}
		}
		message := fmt.Sprintf("incorrect builtin prioritizer: %s; use one of %s", from.BuiltIn,
			strings.Join([]string{Balance, ResourceAllocatableCPU, ResourceAllocatableMemory, Steady}, ", "))
		if from.BuiltIn == Spread {
			message += "; to spread decisions, use spec.spreadPolicy"
		}
		wrong.add(Prioritizers, path.Child("builtIn"), message)
	case from.AddOn == nil:
		wrong.add(Prioritizers, path.Child("addOn"), "addOn should not be empty unless the type is BuiltIn")
	default:
		return Prioritizer{Name: addOnName(from.AddOn), score: addOn(*from.AddOn)}
	}
	return Prioritizer{}
}

// prioritize gives the candidates their scores and totals. Scores are in their range,
// and so are weights, whatever a scorer makes of what clusters report: a total would
// need more prioritizers than an object can have to overflow.
func (r *run) prioritize(candidates []*Candidate) error {
	prioritizers := r.plan.prioritizers
	all := make([]int64, len(candidates)*len(prioritizers))
	for i, c := range candidates {
		c.Scores = all[i*len(prioritizers) : (i+1)*len(prioritizers) : (i+1)*len(prioritizers)]
	}
	for j, p := range prioritizers {
		end := r.observe(KindPrioritizer, p.Name)
		scores, err := p.score(r, candidates)
		end()
		if err != nil {
			return err
		}
		for i, score := range scores {
			score = min(max(score, MinScore), MaxScore)
			candidates[i].Scores[j] = score
			candidates[i].Total += int64(p.Weight) * score
		}
	}
	return nil
}

// steady is 100 for clusters that this Placement chose before, else 0.
func steady(r *run, candidates []*Candidate) ([]int64, error) {
	result := make([]int64, len(candidates))
	for i, c := range candidates {
		if _, chosen := r.former.decisions[c.Cluster.Name]; chosen {
			result[i] = MaxScore
		}
	}
	return result, nil
}

// balance is the higher, the fewer other Placements chose a cluster: 100 for none,
// -100 for the most that any cluster of the hub has, candidate or not. It is even,
// for so it is rounded on any hub.
func balance(r *run, candidates []*Candidate) ([]int64, error) {
	counts, most := r.snapshot.Decisions.others(r.former, candidates)
	result := make([]int64, len(candidates))
	for i, count := range counts {
		result[i] = MaxScore
		if count > 0 {
			result[i] = 2 * int64(MaxScore*(0.5-float64(count)/float64(most)))
		}
	}
	return result, nil
}

func addOnName(of *clusterv1beta1.AddOnScore) string {
	return "AddOn/" + of.ResourceName + "/" + of.ScoreName
}

// addOn is what the AddOnPlacementScore of a cluster says; 0 if it is missing, says
// nothing or is expired.
func addOn(of clusterv1beta1.AddOnScore) scorer {
	return func(r *run, candidates []*Candidate) ([]int64, error) {
		result := make([]int64, len(candidates))
		var expired, clamped []string
		there, found := sets.New[string](), false
		for i, c := range candidates {
			name := c.Cluster.Name
			object, err := r.snapshot.score(name, of.ResourceName)
			switch {
			case err != nil:
				return nil, err
			case object == nil:
				continue
			case r.expired(object):
				expired = append(expired, name+"/"+of.ResourceName)
			default:
				value := valueOf(object, of.ScoreName)
				if result[i] = min(max(value, MinScore), MaxScore); result[i] != value {
					clamped = append(clamped, fmt.Sprintf("%s/%s (%d)", name, of.ResourceName, value))
				}
			}
			if found = true; !there.Has(of.ScoreName) {
				for _, item := range object.Status.Scores {
					there.Insert(item.Name)
				}
			}
		}
		switch {
		case len(candidates) == 0 || there.Has(of.ScoreName):
		case !found:
			r.missingScore("no candidate has the AddOnPlacementScore", of.ResourceName, clustersIn(candidates))
		default:
			r.report.missing(fmt.Sprintf("no AddOnPlacementScore %q of a candidate has the score", of.ResourceName), of.ScoreName, there)
		}
		r.report.warn(wellknown.ReasonScoreExpired, addOnName(&of), "AddOnPlacementScores %s expired; they count as 0", expired)
		r.report.outOfRange(wellknown.ReasonScoreOutOfRange, addOnName(&of),
			fmt.Sprintf("AddOnPlacementScores %%s are not from %d to %d; they count as the nearest of these", MinScore, MaxScore), clamped)
		return result, nil
	}
}

func clustersIn(candidates []*Candidate) iter.Seq[*clusterv1.ManagedCluster] {
	return func(yield func(*clusterv1.ManagedCluster) bool) {
		for _, c := range candidates {
			if !yield(c.Cluster) {
				return
			}
		}
	}
}

// expired tells whether scores don't hold any more, and remembers when they won't.
func (r *run) expired(object *clusterv1alpha1.AddOnPlacementScore) bool {
	until := object.Status.ValidUntil
	switch {
	case until == nil:
		return false
	case r.now.After(until.Time):
		return true
	default:
		r.horizon.after(until.Time)
		return false
	}
}

// valueOf returns 0 if there is no score of that name, and the last one of several.
func valueOf(object *clusterv1alpha1.AddOnPlacementScore, name string) int64 {
	for i := len(object.Status.Scores) - 1; i >= 0; i-- {
		if item := &object.Status.Scores[i]; item.Name == name {
			return int64(item.Value)
		}
	}
	return 0
}

// allocatable is the share that the allocatable amount of a resource has between
// the least, -100, and the most, 100, of all candidates; 100 if these are equal. A
// cluster that does not say both capacity and allocatable, or says what can't be true,
// has 0.
func allocatable(plugin string) scorer {
	resource := amountsOf[plugin]
	return func(r *run, candidates []*Candidate) ([]int64, error) {
		amounts, known := make([]float64, len(candidates)), make([]amount, len(candidates))
		least, most, any := 0.0, 0.0, false
		var unbelievable []string
		for i, c := range candidates {
			if amounts[i], known[i] = amountOf(&c.Cluster.Status, resource); known[i] == outOfRange {
				unbelievable = append(unbelievable, c.Cluster.Name)
			}
			if known[i] != usable {
				continue
			}
			if !any || amounts[i] < least {
				least = amounts[i]
			}
			if !any || amounts[i] > most {
				most = amounts[i]
			}
			any = true
		}
		r.report.outOfRange(wellknown.ReasonAmountOutOfRange, plugin, fmt.Sprintf("The amounts of %s that ManagedClusters %%s report are no numbers from 0 to 2^63-1; they count as missing", resource), unbelievable)
		result := make([]int64, len(candidates))
		for i := range candidates {
			switch {
			case known[i] != usable:
			case most == least:
				result[i] = MaxScore
			default:
				result[i] = int64(((amounts[i]-least)/(most-least) - 0.5) * (MaxScore - MinScore))
			}
		}
		return result, nil
	}
}

// What a cluster has is said by the cluster, which may say anything. A score that is made
// of it must not rank a cluster before all others, nor take time: an amount that can't be
// true is none.

// maxAmount is the largest amount of a resource, that of a quantity without fraction.
const maxAmount = math.MaxInt64

// amount is what a cluster says of a resource.
type amount int

const (
	missing amount = iota
	usable
	outOfRange
)

// amountOf returns the allocatable amount of a resource if capacity and allocatable are
// both said, and both can be true.
func amountOf(status *clusterv1.ManagedClusterStatus, name clusterv1.ResourceName) (float64, amount) {
	allocatable, ok := status.Allocatable[name]
	capacity, hasCapacity := status.Capacity[name]
	if !ok || !hasCapacity {
		return 0, missing
	}
	value, inRange := valueIn(&allocatable)
	if _, both := valueIn(&capacity); !both || !inRange {
		return 0, outOfRange
	}
	return value, usable
}

// valueIn is a quantity as a number, which it is approximately and at once, however large
// its exponent: no more than that and its sign may be asked of it.
func valueIn(quantity *resource.Quantity) (value float64, inRange bool) {
	switch quantity.Sign() {
	case -1:
		return 0, false
	case 0:
		return 0, true
	default:
		value = quantity.AsApproximateFloat64()
		return value, value <= maxAmount
	}
}
