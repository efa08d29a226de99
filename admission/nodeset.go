// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	schedulingapi "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/apis/nearest"
	"github.com/celset/celset/cel"
)

// nodeSets checks constraints and adds errors to the verdict: err, and an error for each expression that does not compile.
func (c *Checker) nodeSets(ctx context.Context, constraints []v1alpha1.NodeSetConstraint, err error, verdict *Verdict) {
	verdict.Errors = append(verdict.Errors, fieldErrors(err)...)
	for _, constraint := range constraints {
		expression, err := c.nodes.Compile(ctx, constraint.Expression, constraint.Variables...)
		if err != nil {
			verdict.refuse(constraint.Source, "expression", constraint.Expression, constraint.Variables, err)
		} else if constraint.Preference == "" || strings.TrimSpace(constraint.Expression) != "true" {
			// "true" is the usual expression of a constraint with only a preference, so it gets no warning.
			verdict.Warnings = append(verdict.Warnings, suspicionWarnings(constraint.Source.Field, constraint.Name, expression)...)
		}
		readsDevices, readsOnlyPod := false, false
		if err == nil {
			readsDevices, readsOnlyPod = expression.ReadSet().HasNodeDevices(), expression.ReadSet().Pods().Only
		}
		// If a variable has a mistake, compiling the expression has already reported it.
		if failure, ok := errors.AsType[*cel.Error](err); constraint.Preference != "" && (!ok || failure.Variable == "") {
			preference, err := c.nodes.CompileInt(ctx, constraint.Preference, constraint.Variables...)
			if err != nil {
				verdict.refuse(constraint.Source, "preference", constraint.Preference, constraint.Variables, err)
			} else {
				verdict.Warnings = append(verdict.Warnings, suspicionWarnings(constraint.Source.Field, constraint.Name, preference)...)
			}
			if err == nil {
				readsDevices, readsOnlyPod = readsDevices || preference.ReadSet().HasNodeDevices(), readsOnlyPod || preference.ReadSet().Pods().Only
			}
		}
		if readsDevices && constraint.PodsPerNode > 1 {
			verdict.Errors = append(verdict.Errors, field.Invalid(constraint.Source.Path().Child("podsPerNode"), constraint.PodsPerNode,
				"must be 1 if an expression reads n.devices: remove podsPerNode"))
		}
		if readsOnlyPod && constraint.PodsPerNode > 1 {
			verdict.Errors = append(verdict.Errors, field.Invalid(constraint.Source.Path().Child("podsPerNode"), constraint.PodsPerNode,
				"must be 1 if an expression reads n.pod: read n.pods, or remove podsPerNode"))
		}
	}
}

// PodGroup checks the node set constraint in the annotation of a group, and the constraint that the group refers to. defined
// are the valid constraints of claims, templates and classes. If no constraint has the name in the reference,
// [Verdict.Undecided] is set.
func (c *Checker) PodGroup(ctx context.Context, group *schedulingapi.PodGroup, defined []v1alpha1.NodeSetConstraint) (Verdict, error) {
	own, err := v1alpha1.GroupNodeSet(group)
	j := &judgement{Checker: c}
	if own == nil {
		c.nodeSets(ctx, nil, err, &j.Verdict)
	} else {
		c.nodeSets(ctx, []v1alpha1.NodeSetConstraint{*own}, nil, &j.Verdict)
	}
	name, refers := v1alpha1.NodeSetReference(group)
	if err == nil && refers && (own == nil || own.Name != name) {
		j.nodeSetOf(ctx, name, own, defined)
	}
	if own != nil && name != own.Name {
		j.warn("%s: the group does not refer to %q, so the constraint has no effect; set %s to %s/%s", own.Source.Field, own.Name, topologyKey, v1alpha1.AttributeDomain, own.Name)
	}
	return whole(ctx, j.Verdict)
}

// topologyKey is the path of the field that refers to a node set constraint in a PodGroup.
var topologyKey = field.NewPath("spec", "schedulingConstraints", "topology").Index(0).Child("key")

// nodeSetOf checks a constraint that the group refers to but does not define itself. It is enough that one valid definition has
// the name, because it is not known yet which claims the group's pods will use.
func (j *judgement) nodeSetOf(ctx context.Context, name string, own *v1alpha1.NodeSetConstraint, defined []v1alpha1.NodeSetConstraint) {
	var mistake *field.Error
	names := make([]string, 0, len(defined)+1)
	for _, constraint := range defined {
		names = append(names, constraint.Name)
		if constraint.Name != name {
			continue
		}
		var verdict Verdict
		j.nodeSets(ctx, []v1alpha1.NodeSetConstraint{constraint}, nil, &verdict)
		if len(verdict.Errors) == 0 {
			return
		}
		mistake = cmp.Or(mistake, field.Invalid(topologyKey, v1alpha1.AttributeDomain+"/"+name, shortened(fmt.Sprintf("%s: %s", constraint.Source.Object, verdict.Errors[0]))))
	}
	if mistake != nil {
		j.Errors = append(j.Errors, mistake)
		return
	}
	if own != nil {
		names = append(names, own.Name)
	}
	j.Undecided = true
	j.warn("%s: no valid %s defines %q in the annotation %s, or in the claims, templates and classes that were read%s",
		topologyKey, v1alpha1.NodeSetConstraintKind, name, v1alpha1.NodeSetAnnotation, nearest.DidYouMean(v1alpha1.AttributeDomain+"/", name, slices.Values(names)))
}
