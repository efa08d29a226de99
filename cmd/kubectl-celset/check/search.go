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

// Outcome is what a search for a set of devices ended with, as if all devices were free.
type Outcome string

// A search that its budget or its time ended says nothing.
const (
	SetFound      Outcome = "SetFound"
	NoSet         Outcome = "NoSet"
	TooFewDevices Outcome = "TooFewDevices"
	NotKnown      Outcome = "NotKnown"
)

// maxSearched is how many nodes are searched. Nodes with devices that look alike are answered once.
const maxSearched = 1000

// searched is what is known of all nodes.
type searched struct {
	outcome Outcome
	// nodes have enough devices.
	nodes int
	// failure is the first evaluation that failed, unknown the first reason for not knowing.
	failure *allocator.EvaluationError
	unknown string
}

// sets looks for a set that satisfies the constraints of the claim, on one node after the other.
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
			result.outcome, result.unknown = NotKnown, "there was no time left: set --timeout"
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

// isOfNode reports whether an error says that one node has no set.
func isOfNode(err error) bool { return errors.Is(err, structured.ErrFailedAllocationOnNode) }

// satisfiable looks for a set for one constraint of a claim, whatever the others want.
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

// satisfiableForClass looks for a set of devices of the class. Without a count any number of devices will do.
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
	// Claims may ask for devices of other classes beside those of this one, and nothing says that there have to be any.
	if result.Search, result.NotKnown = all.outcome, all.unknown; all.outcome == NoSet && !c.isUsed(definition.Source) {
		object.warn("%s: %s: no set of %s devices of this class alone satisfies it, even if all devices are free (nodes with enough devices: %d)%s",
			definition.Source.Field, result.Name, sizes, all.nodes, described(all.failure))
	}
}

// isUsed tells whether a claim or a template refers to the definition, and is judged itself.
func (c *checker) isUsed(definition v1alpha1.Source) bool {
	uses := func(carrier v1alpha1.Carrier) bool {
		resolved, _ := carrier.Resolve(c.state.Classes())
		return slices.ContainsFunc(resolved, func(constraint v1alpha1.Constraint) bool { return constraint.Source == definition })
	}
	return slices.ContainsFunc(c.state.Templates, func(t *resourceapi.ResourceClaimTemplate) bool { return uses(v1alpha1.TemplateCarrier(t)) }) ||
		slices.ContainsFunc(c.state.Claims, func(claim *resourceapi.ResourceClaim) bool { return uses(v1alpha1.ClaimCarrier(claim)) })
}

// conclude reports what a search of one constraint found.
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

// together looks for devices that satisfy all constraints of a claim, if there are some for each of them.
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

// constrained adds constraints to a claim, and takes its own definitions out. One that fails says so
// of the node.
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

// claimOfClass asks for devices of a class.
func claimOfClass(class string, count int) *resourceapi.ResourceClaim {
	return &resourceapi.ResourceClaim{Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{
		Name: "devices", Exactly: &resourceapi.ExactDeviceRequest{
			DeviceClassName: class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: int64(count),
		},
	}}}}}
}
