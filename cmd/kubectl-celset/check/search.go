// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/apis/celset/v1alpha1"
)

// Outcome is the result of a search for a set of devices, as if all devices were free.
type Outcome string

// A search that exceeds its budget or time has the outcome NotKnown.
const (
	SetFound      Outcome = "SetFound"
	NoSet         Outcome = "NoSet"
	TooFewDevices Outcome = "TooFewDevices"
	NotKnown      Outcome = "NotKnown"
)

// maxSearched is the maximum number of nodes to search. Nodes with equivalent devices share one search.
const maxSearched = 1000

// searched is the result of a search on all nodes.
type searched struct {
	outcome Outcome
	// nodes is the number of nodes with enough devices.
	nodes int
	// failure is the first failed evaluation. unknown is the reason why the first search without an outcome ended.
	failure *allocator.EvaluationError
	unknown string
}

// sets searches one node after the other, as if all devices were free, for a set that satisfies the claim's constraints.
func (c *checker) sets(claim *resourceapi.ResourceClaim) searched {
	result := searched{outcome: TooFewDevices}
	plain := claim.DeepCopy()
	plain.Spec.Devices.Constraints, plain.Spec.Devices.Config = nil, nil
	for i, node := range c.nodes.all {
		if i == maxSearched {
			result.unknown = cmp.Or(result.unknown, fmt.Sprintf("%d of %d nodes were searched", i, len(c.nodes.all)))
			break
		}
		if c.passed.Has(node.Name) {
			continue
		}
		_, err := c.idle.Allocate(c.searching, node, []*resourceapi.ResourceClaim{claim})
		failure, isFailure := errors.AsType[*allocator.EvaluationError](err)
		switch {
		case err == nil:
			result.outcome = SetFound
			return result
		case isFailure:
			result.nodes, result.failure = result.nodes+1, cmp.Or(result.failure, failure)
		case isOfNode(err):
			if _, err := c.idle.Allocate(c.searching, node, []*resourceapi.ResourceClaim{plain}); err == nil {
				result.nodes++
			}
		case c.searching.Err() != nil:
			result.outcome, result.unknown = NotKnown, "the time limit was exceeded: set a higher --timeout"
			return result
		default:
			result.unknown = cmp.Or(result.unknown, err.Error())
		}
	}
	if result.unknown != "" {
		result.outcome = NotKnown
	} else if result.nodes > 0 {
		result.outcome = NoSet
	}
	return result
}

// isOfNode reports whether the error concerns a single node, which has no set. Any other error ends the search.
func isOfNode(err error) bool { return errors.Is(err, structured.ErrFailedAllocationOnNode) }

// satisfiable searches for a set that satisfies one constraint of a claim. The claim's other constraints are ignored.
func (c *checker) satisfiable(object *Object, result *Constraint, where string, claim *resourceapi.ResourceClaim, constraint v1alpha1.Constraint) {
	alone := claim.DeepCopy()
	alone.Spec.Devices.Requests = slices.DeleteFunc(alone.Spec.Devices.Requests, func(r resourceapi.DeviceRequest) bool {
		return len(constraint.Requests) > 0 && !slices.ContainsFunc(constraint.Requests, func(name string) bool {
			return name == r.Name || strings.HasPrefix(name, r.Name+"/")
		})
	})
	alone.Spec.Devices.Constraints = nil
	c.conclude(object, result, where, joinInts(result.Devices), c.sets(constrained(alone.DeepCopy(), constraint)))
	if result.Search == SetFound {
		c.constant(object, result, where, alone, constraint)
	}
}

// satisfiableForClass searches for a set of devices of one class that satisfies the definition. If the option Count is not set,
// it tries each number of devices up to most.
func (c *checker) satisfiableForClass(object *Object, result *Constraint, definition v1alpha1.Definition, most int) {
	counts := []int{c.Count}
	sizes := strconv.Itoa(c.Count)
	if c.Count == 0 {
		most = max(1, min(most, resourceapi.AllocationResultsMaxSize))
		sizes = fmt.Sprintf("1 to %d", most)
		counts = []int{min(defaultCount, most)}
		for n := range most {
			counts = append(counts, n+1)
		}
	}
	all := searched{outcome: TooFewDevices}
	for _, count := range counts {
		claim := claimOfClass(definition.Source.Object.Name, count)
		one := c.sets(constrained(claim, v1alpha1.Constraint{Name: definition.Name, Expression: definition.Expression, Variables: definition.Variables}))
		if one.outcome == SetFound {
			all = one
			break
		}
		if one.outcome != TooFewDevices && all.outcome != NotKnown {
			all.outcome = one.outcome
		}
		all.nodes, all.failure, all.unknown = max(all.nodes, one.nodes), cmp.Or(all.failure, one.failure), cmp.Or(all.unknown, one.unknown)
	}
	if c.Count > 0 || definition.Enforcement == v1alpha1.EnforcementAlways {
		c.conclude(object, result, definition.Source.Field, sizes, all)
		return
	}
	// Claims may combine devices of this class with devices of other classes. So it is only a warning if this class alone has
	// no set.
	if result.Search, result.NotKnown = all.outcome, all.unknown; all.outcome == NoSet && !c.isUsed(definition.Source) {
		object.warn("%s: %s: no set of %s devices of this class alone satisfies it, even if all devices are free (nodes with enough devices: %d)%s",
			definition.Source.Field, result.Name, sizes, all.nodes, described(all.failure))
	}
}

// isUsed reports whether a claim or template refers to the definition. Then the check of that claim or template searches for a
// set.
func (c *checker) isUsed(definition v1alpha1.Source) bool {
	uses := func(carrier v1alpha1.Carrier) bool {
		resolved, _ := carrier.Resolve(c.state.Classes())
		return slices.ContainsFunc(resolved, func(constraint v1alpha1.Constraint) bool { return constraint.Source == definition })
	}
	return slices.ContainsFunc(c.state.Templates, func(t *resourceapi.ResourceClaimTemplate) bool { return uses(v1alpha1.TemplateCarrier(t)) }) ||
		slices.ContainsFunc(c.state.Claims, func(claim *resourceapi.ResourceClaim) bool { return uses(v1alpha1.ClaimCarrier(claim)) })
}

// conclude stores the outcome of a search for one constraint, and reports an error if there is no set.
func (c *checker) conclude(object *Object, result *Constraint, where, sizes string, found searched) {
	result.Search = found.outcome
	switch found.outcome {
	case NotKnown:
		result.NotKnown = found.unknown
	case TooFewDevices:
		object.warn("%s: %s: no node has enough matching devices for a set of %s (nodes: %d)", where, result.Name, sizes, len(c.nodes.all))
	case NoSet:
		object.fail("%s: %s: no set of %s devices satisfies it, even if all devices are free (nodes with enough devices: %d)%s",
			where, result.Name, sizes, found.nodes, described(found.failure))
	}
	if found.outcome == SetFound && found.failure != nil {
		object.warn("%s: %s: the expression fails on devices of node %s: %s", where, result.Name, found.failure.Node, found.failure.Message)
	}
}

func described(failure *allocator.EvaluationError) string {
	if failure == nil {
		return ""
	}
	return fmt.Sprintf("; on node %s the expression fails: %s", failure.Node, failure.Message)
}

// together searches for devices that satisfy all constraints of a claim at once. It does so only if a set was found for each
// single constraint.
func (c *checker) together(object *Object, carrier v1alpha1.Carrier, claim *resourceapi.ResourceClaim, resolved []v1alpha1.Constraint) {
	plain := slices.DeleteFunc(slices.Clone(claim.Spec.Devices.Constraints), func(constraint resourceapi.DeviceConstraint) bool {
		return strings.HasPrefix(string(ptr.Deref(constraint.MatchAttribute, "")), v1alpha1.AttributeDomain+"/")
	})
	if len(resolved)+len(plain) < 2 || slices.ContainsFunc(object.Constraints, func(c Constraint) bool { return c.Field != "" && c.Search != SetFound }) {
		return
	}
	all := claim.DeepCopy()
	all.Spec.Devices.Constraints = plain
	if found := c.sets(constrained(all, resolved...)); found.outcome == NoSet {
		object.fail("%s: no devices satisfy all constraints together, even if all devices are free (nodes with enough devices: %d)%s",
			carrier.Path.Child("devices", "constraints"), found.nodes, described(found.failure))
	}
}

// constrained removes the claim's own definitions, and adds the given constraints with their definitions. A failed evaluation
// of a given constraint excludes only the node.
func constrained(claim *resourceapi.ResourceClaim, constraints ...v1alpha1.Constraint) *resourceapi.ResourceClaim {
	devices := &claim.Spec.Devices
	devices.Config = nil
	for i, constraint := range constraints {
		name := constraint.Name
		if i > 0 {
			name = fmt.Sprintf("c%d", i)
		}
		raw, err := json.Marshal(&v1alpha1.CELDeviceConstraint{
			TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.Kind},
			Name:     name, Expression: constraint.Expression, Variables: constraint.Variables, FailurePolicy: v1alpha1.FailurePolicyNodeDoesNotFit,
		})
		if err != nil {
			continue
		}
		devices.Constraints = append(devices.Constraints, resourceapi.DeviceConstraint{
			Requests: constraint.Requests, MatchAttribute: ptr.To(resourceapi.FullyQualifiedName(v1alpha1.AttributeDomain + "/" + name)),
		})
		devices.Config = append(devices.Config, resourceapi.DeviceClaimConfiguration{DeviceConfiguration: resourceapi.DeviceConfiguration{
			Opaque: &resourceapi.OpaqueDeviceConfiguration{Driver: v1alpha1.DriverName, Parameters: runtime.RawExtension{Raw: raw}},
		}})
	}
	return claim
}

// claimOfClass returns a claim for devices of a class.
func claimOfClass(class string, count int) *resourceapi.ResourceClaim {
	return &resourceapi.ResourceClaim{Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{
		Name: "devices", Exactly: &resourceapi.ExactDeviceRequest{
			DeviceClassName: class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: int64(count),
		},
	}}}}}
}
