// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"slices"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/admission"
	"github.com/celset/celset/allocator"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cmd/kubectl-celset/output"
	"github.com/celset/celset/internal/clusterstate"
)

// Options hold settings that the checked objects don't contain.
type Options struct {
	// Count is the number of devices assumed for a definition that no claim refers to. If Count is 0, [Facts] describe a set of
	// [defaultCount] devices, and the search tries any number.
	Count int
	// Features are the features of the scheduler.
	Features structured.Features
	// AllClasses is set if all DeviceClasses were read, so that a missing class does not exist.
	AllClasses bool
	// Timeout limits the search for sets.
	Timeout time.Duration
}

// maxPassedOver is the maximum number of unchecked documents that the report names.
const maxPassedOver = 20

// defaultCount is the assumed number of devices if Options.Count is 0.
const defaultCount = 4

func (o Options) count() int {
	if o.Count == 0 {
		return defaultCount
	}
	return o.Count
}

// checker holds the state and the tools that all checks use.
type checker struct {
	Options
	state       *clusterstate.State
	environment *device.Environment
	judge       *admission.Checker
	nodes       *nodes
	// idle searches as if all devices were free. searching is the context of these searches, with a time limit.
	idle      *allocator.Allocator
	searching context.Context
	// contrary searches for sets that violate a condition. At constantUntil, these searches end.
	contrary      *allocator.Allocator
	constantUntil time.Time
	// passed holds names of nodes where a request with allocationMode All would get more devices than a claim may have. The
	// search skips these nodes.
	passed sets.Set[string]
}

// Run checks the objects that wanted accepts: *ResourceClaim, *ResourceClaimTemplate, *DeviceClass, *PodGroup and *DeviceAttributes.
// It omits objects without constraints. The error is about checking, not about the objects.
func Run(ctx context.Context, state *clusterstate.State, wanted func(object any) bool, options Options) (*Report, error) {
	c, err := newChecker(ctx, state, options)
	if err != nil {
		return nil, err
	}
	if options.Timeout > 0 {
		var cancel context.CancelFunc
		c.searching, cancel = context.WithTimeout(ctx, options.Timeout)
		defer cancel()
	}
	c.constantUntil = time.Now().Add(constantTime)
	report := &Report{Meta: output.NewMeta(output.CheckReport), Objects: []Object{}}
	for i, passed := range state.Ignored {
		if i == maxPassedOver {
			report.Warnings = append(report.Warnings, Finding{Message: fmt.Sprintf("%d more documents of kinds that check does not support", len(state.Ignored)-i)})
			break
		}
		report.Warnings = append(report.Warnings, Finding{Message: passed + ": check does not support this kind"})
	}
	add := func(object Object, err error) error {
		if len(object.Errors)+len(object.Warnings)+len(object.Constraints)+len(object.Preferences)+len(object.NodeSetConstraints) > 0 {
			report.Objects = append(report.Objects, object)
		}
		return err
	}
	for _, class := range state.Objects.Classes {
		if wanted(class) {
			if err := add(c.class(ctx, class)); err != nil {
				return nil, err
			}
		}
	}
	for _, template := range state.Templates {
		if wanted(template) {
			verdict, err := c.judge.Template(ctx, template, state.Classes())
			if err := add(c.claim(ctx, v1alpha1.TemplateCarrier(template), clusterstate.Instantiate(template, template.Name), verdict), err); err != nil {
				return nil, err
			}
		}
	}
	for _, claim := range state.Claims {
		if wanted(claim) {
			verdict, err := c.judge.Claim(ctx, claim, state.Classes())
			if err := add(c.claim(ctx, v1alpha1.ClaimCarrier(claim), claim, verdict), err); err != nil {
				return nil, err
			}
		}
	}
	for _, group := range state.Groups {
		if wanted(group) {
			if err := add(c.group(ctx, group)); err != nil {
				return nil, err
			}
		}
	}
	for _, attributes := range state.Attributes {
		if wanted(attributes) {
			report.Objects = append(report.Objects, c.added(attributes))
		}
	}
	return report, ctx.Err()
}

func newChecker(ctx context.Context, state *clusterstate.State, options Options) (*checker, error) {
	environment, err := device.NewEnvironment(cel.Config{})
	if err != nil {
		return nil, err
	}
	nodes, err := newNodes(ctx, state, options.Features)
	if err != nil {
		return nil, err
	}
	judge, err := admission.NewChecker(admission.Options{Environment: environment, Devices: nodes.largestPool})
	if err != nil {
		return nil, err
	}
	problem := state.Problem(nil, options.Features, allocator.WithCache(allocator.NewCache()), allocator.WithEnvironment(environment),
		allocator.WithReasons(), allocator.WithoutPreferences(), allocator.WithoutDefaultConstraints())
	problem.Allocated = nil
	idle, err := problem.NewAllocator(ctx)
	if err != nil {
		return nil, err
	}
	c := &checker{Options: options, state: state, environment: environment, judge: judge, nodes: nodes, idle: idle, searching: ctx}
	c.contrary, err = c.newContrary(ctx)
	return c, err
}

func (c *checker) class(ctx context.Context, class *resourceapi.DeviceClass) (Object, error) {
	result := Object{Kind: "DeviceClass", Name: class.Name}
	verdict, err := c.judge.Class(ctx, class)
	result.judged(verdict)
	definitions, _ := v1alpha1.ClassDefinitions(class)
	preferences, _ := v1alpha1.ClassPreferences(class)
	nodeSets, _ := v1alpha1.ClassNodeSets(class)
	result.nodeSets(nodeSets)
	if len(definitions)+len(preferences) == 0 {
		return result, err
	}
	claim := claimOfClass(class.Name, c.count())
	covered := coveredRequests(&claim.Spec.Devices, nil)
	for _, definition := range definitions {
		constraint := newUnreferenced(definition)
		candidates := c.candidates(ctx, &constraint.Facts, claim, covered)
		constraint.assume(c.Count)
		said := len(result.Errors) + len(result.Warnings)
		expression := c.expression(ctx, &result, &constraint, definition.Source.Field, definition.Expression, definition.Variables, candidates, c.publishedFor(definition, candidates))
		for _, on := range candidates {
			constraint.Nodes = append(constraint.Nodes, on.sets(covered))
		}
		// Without a count, an expression that reads drivers may be intended for devices of several classes. A search with
		// devices of this class alone could then fail without a mistake.
		isOfClass := expression != nil && (c.Count > 0 || definition.Enforcement == v1alpha1.EnforcementAlways || !readsDriver(expression))
		if isOfClass && c.nodes.areKnown() && said == len(result.Errors)+len(result.Warnings) {
			c.satisfiableForClass(&result, &constraint, definition, mostOn(candidates))
		}
		result.Constraints = append(result.Constraints, constraint)
	}
	for _, p := range preferences {
		found := newPreference(p)
		candidates := c.candidates(ctx, &found.Facts, claim, covered)
		found.assume(c.Count)
		c.value(ctx, &result, &found, p.Source.Field, p, candidates, publishedBy(candidates))
		result.Preferences = append(result.Preferences, found)
	}
	return result, err
}

func (c *checker) claim(ctx context.Context, carrier v1alpha1.Carrier, claim *resourceapi.ResourceClaim, verdict admission.Verdict) Object {
	result := Object{Kind: carrier.Object.Kind, Namespace: carrier.Object.Namespace, Name: carrier.Object.Name}
	result.judged(verdict)
	c.unknownClasses(&result, carrier, len(verdict.Errors)+len(verdict.Warnings)-verdict.OfSelectors > 0)
	c.tooManyDevices(ctx, &result, carrier, claim)
	// There is no search if an object has errors, because the allocator would reject it, or if the claim already has devices.
	isSearched := c.nodes.areKnown() && len(result.Errors) == 0 && claim.Status.Allocation == nil
	own, err := carrier.Definitions()
	var resolved []v1alpha1.Constraint
	if err == nil {
		resolved, _ = carrier.Resolve(c.state.Classes())
	}
	for _, constraint := range resolved {
		result.Constraints = append(result.Constraints, c.referenced(ctx, &result, carrier, claim, constraint, isSearched))
	}
	if len(result.Errors) == 0 && isSearched {
		c.together(&result, carrier, claim, resolved)
	}
	names := v1alpha1.Unreferenced(carrier.Spec)
	for _, definition := range own {
		if slices.Contains(names, definition.Name) || len(resolved) == 0 {
			constraint := newUnreferenced(definition)
			constraint.Devices = []int{c.count()}
			constraint.assume(c.Count)
			c.expression(ctx, &result, &constraint, definition.Source.Field, definition.Expression, definition.Variables, nil, nil)
			result.Constraints = append(result.Constraints, constraint)
		}
	}
	c.preferences(ctx, &result, carrier, claim)
	nodeSets, _ := carrier.NodeSets()
	result.nodeSets(nodeSets)
	return result
}

// assume records that the number of devices in the facts is assumed. counted is set if the number comes from the option Count.
func (f *Facts) assume(count int) { f.Assumed, f.counted = true, count > 0 }

// publishedFor returns the attributes of the devices that a definition in a class may cover. With enforcement Always, these are
// the devices of the class, and otherwise all devices. Without devices in the class, the result is empty.
func (c *checker) publishedFor(definition v1alpha1.Definition, ofClass []candidates) published {
	if definition.Enforcement == v1alpha1.EnforcementAlways || len(ofClass) == 0 {
		return publishedBy(ofClass)
	}
	return c.nodes.published
}

// newUnreferenced returns the report entry for a definition that no constraint of the object refers to.
func newUnreferenced(definition v1alpha1.Definition) Constraint {
	return Constraint{Name: definition.Name, Source: definition.Source.String(), Default: definition.Enforcement == v1alpha1.EnforcementAlways}
}

func (c *checker) referenced(ctx context.Context, object *Object, carrier v1alpha1.Carrier, claim *resourceapi.ResourceClaim, constraint v1alpha1.Constraint, isSearched bool) Constraint {
	result := Constraint{
		Name:     constraint.Name,
		Field:    carrier.Path.Child("devices", "constraints").Index(constraint.Index).String(),
		Default:  constraint.Default,
		Source:   constraint.Source.String(),
		Requests: constraint.Requests,
	}
	if constraint.Default {
		result.Field = carrier.Path.Child("devices", "requests").Key(constraint.Requests[0]).String()
	}
	covered := coveredRequests(&claim.Spec.Devices, constraint.Requests)
	candidates := c.candidates(ctx, &result.Facts, claim, covered)
	errors := len(object.Errors)
	expression := c.expression(ctx, object, &result, result.Field, constraint.Expression, constraint.Variables, candidates, publishedBy(candidates))
	for _, on := range candidates {
		result.Nodes = append(result.Nodes, on.sets(covered))
	}
	// If there is already an error about the expression, a search could only repeat it.
	if expression != nil && isSearched && len(object.Errors) == errors {
		c.satisfiable(object, &result, result.Field, claim, constraint)
	}
	return result
}

// candidates returns the devices that match the covered requests, per node. It also sets facts.Devices to the possible sizes of
// a set.
func (c *checker) candidates(ctx context.Context, facts *Facts, claim *resourceapi.ResourceClaim, covered coverage) []candidates {
	candidates, err := c.nodes.candidates(ctx, claim, covered)
	if err != nil {
		// This command ignores the error. The command simulate reports why the scheduler can't search.
		candidates = nil
	}
	facts.Devices = covered.sizes(candidates)
	if len(facts.Devices) == 0 {
		facts.Devices = []int{c.count()}
		facts.assume(c.Count)
	}
	return candidates
}
