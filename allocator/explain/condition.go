// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
)

// Condition is one condition on a set of devices: an attribute constraint, or one conjunct of a CEL constraint.
type Condition struct {
	// Claim is "namespace/name".
	Claim string `json:"claim"`
	// Constraint is the name of a CEL constraint, or the text of an attribute constraint.
	Constraint string `json:"constraint"`
	// Text is the conjunct in CEL. Line and Column are its position in the expression. They are empty for an attribute constraint.
	Text   string `json:"text,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`

	// claim and constraint are the indices of the claim and of its constraint. conjuncts holds the texts of the constraint's
	// conjuncts up to and including this condition.
	claim, constraint int
	conjuncts         []string
	variables         []v1alpha1.Variable
	failurePolicy     v1alpha1.FailurePolicy
}

var environment = sync.OnceValues(func() (*device.Environment, error) { return device.NewEnvironment(cel.Config{}) })

// Conditions returns the conditions of all claims. [Problem.Explain] looks for the unmet condition in this order.
func (p *Problem) Conditions(ctx context.Context) ([]Condition, error) {
	_, conditions, err := p.withConditions(ctx)
	return conditions, err
}

// Is reports whether two conditions are the same condition of the same claim.
func (c *Condition) Is(other *Condition) bool {
	return other != nil && c.claim == other.claim && c.constraint == other.constraint && c.Line == other.Line && c.Column == other.Column
}

// withConditions returns the problem with default constraints written into the claims, and the conditions of all claims.
func (p *Problem) withConditions(ctx context.Context) (*Problem, []Condition, error) {
	p, labels, err := p.withDefaults()
	if err != nil {
		return nil, nil, err
	}
	conditions, err := p.conditions(ctx)
	for i := range conditions {
		if label, isDefault := labels[constraintPosition{conditions[i].claim, conditions[i].constraint}]; isDefault {
			conditions[i].Constraint = label
		}
	}
	return p, conditions, err
}

// conditions returns the conditions of all claims, in the order of claims, constraints and conjuncts.
func (p *Problem) conditions(ctx context.Context) ([]Condition, error) {
	var all []Condition
	for i, claim := range p.Claims {
		resolved, err := v1alpha1.Resolve(claim, p.Classes)
		if err != nil {
			return nil, err
		}
		expressions := make(map[int]v1alpha1.Constraint, len(resolved))
		for _, constraint := range resolved {
			expressions[constraint.Index] = constraint
		}
		for j := range claim.Spec.Devices.Constraints {
			at := Condition{Claim: klog.KObj(claim).String(), claim: i, constraint: j}
			constraint, isCEL := expressions[j]
			if !isCEL {
				at.Constraint = describe(&claim.Spec.Devices.Constraints[j])
				all = append(all, at)
				continue
			}
			parts, err := p.conjunctsOf(ctx, at, constraint)
			if err != nil {
				return nil, err
			}
			all = append(all, parts...)
		}
	}
	return all, nil
}

func (p *Problem) conjunctsOf(ctx context.Context, at Condition, constraint v1alpha1.Constraint) ([]Condition, error) {
	e := p.Environment
	if e == nil {
		var err error
		if e, err = environment(); err != nil {
			return nil, err
		}
	}
	expression, err := e.Compile(ctx, constraint.Expression, constraint.Variables...)
	if err != nil {
		return nil, fmt.Errorf("claim %s, constraint %s (%s): %w", at.Claim, constraint.Name, constraint.Source, err)
	}
	at.Constraint, at.variables, at.failurePolicy = constraint.Name, constraint.Variables, constraint.FailurePolicy
	var all []Condition
	var texts []string
	conjuncts := expression.Conjuncts()
	if p.Environment != nil && !arePreparable(conjuncts) {
		return []Condition{at}, nil
	}
	for _, conjunct := range conjuncts {
		texts = append(texts, "("+conjunct.Text+")")
		at.Text, at.Line, at.Column = conjunct.Text, conjunct.Line, conjunct.Column
		at.conjuncts = texts[:len(texts):len(texts)]
		all = append(all, at)
	}
	// The last condition consists of all conjuncts. It is the original constraint, which cut keeps if conjuncts is nil.
	all[len(all)-1].conjuncts = nil
	return all, nil
}

// arePreparable reports whether the cost for [Prepare] to compile the conjuncts is limited. The total length of all prefixes
// must not exceed the maximum length of one expression.
func arePreparable(conjuncts []device.Conjunct) bool {
	sum := 0
	for i, c := range conjuncts {
		sum += (len(conjuncts) - i) * (len(c.Text) + len(conjunction))
	}
	return sum <= cel.MaxExpressionLength
}

func describe(constraint *resourceapi.DeviceConstraint) string {
	if constraint.MatchAttribute != nil {
		return "matchAttribute " + string(*constraint.MatchAttribute)
	}
	return "distinctAttribute " + string(ptr.Deref(constraint.DistinctAttribute, ""))
}

// upTo returns the claims with only the conditions up to the index last. If last is -1, the claims have no conditions.
func (p *Problem) upTo(conditions []Condition, last int) ([]*resourceapi.ResourceClaim, error) {
	claims := make([]*resourceapi.ResourceClaim, len(p.Claims))
	for i, claim := range p.Claims {
		claims[i] = claim.DeepCopy()
		kept := &claims[i].Spec.Devices
		switch {
		case last < 0 || i > conditions[last].claim:
			kept.Constraints = nil
		case i == conditions[last].claim:
			kept.Constraints = kept.Constraints[:conditions[last].constraint+1]
			if err := conditions[last].cut(kept); err != nil {
				return nil, err
			}
		}
	}
	return claims, nil
}

// cut replaces the constraint in devices by the conjunction of c.conjuncts.
func (c *Condition) cut(devices *resourceapi.DeviceClaim) error {
	if c.conjuncts == nil {
		return nil
	}
	reference, err := define(devices, v1alpha1.CELDeviceConstraint{
		Expression: strings.Join(c.conjuncts, conjunction), Variables: c.variables, FailurePolicy: c.failurePolicy,
	})
	devices.Constraints[c.constraint].MatchAttribute = reference
	return err
}

// define adds a definition with an unused name to a claim, and returns the name for a constraint to refer to it.
func define(devices *resourceapi.DeviceClaim, definition v1alpha1.CELDeviceConstraint) (*resourceapi.FullyQualifiedName, error) {
	definition.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.Kind}
	definition.Name = unusedName(devices)
	raw, err := json.Marshal(&definition)
	if err != nil {
		return nil, err
	}
	devices.Config = append(devices.Config, resourceapi.DeviceClaimConfiguration{DeviceConfiguration: resourceapi.DeviceConfiguration{
		Opaque: &resourceapi.OpaqueDeviceConfiguration{Driver: v1alpha1.DriverName, Parameters: runtime.RawExtension{Raw: raw}},
	}})
	return ptr.To(resourceapi.FullyQualifiedName(v1alpha1.AttributeDomain + "/" + definition.Name)), nil
}

// unusedName returns a name that no definition in the claim uses.
func unusedName(devices *resourceapi.DeviceClaim) string {
	used := sets.New[string]()
	definitions, _ := v1alpha1.ClaimCarrier(&resourceapi.ResourceClaim{Spec: resourceapi.ResourceClaimSpec{Devices: *devices}}).Definitions()
	for i := range definitions {
		used.Insert(definitions[i].Name)
	}
	name := "part"
	for used.Has(name) {
		name += "_"
	}
	return name
}
