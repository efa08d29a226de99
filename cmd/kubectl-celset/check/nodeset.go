// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"

	schedulingapi "k8s.io/api/scheduling/v1beta1"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

// group checks the node set constraints that a PodGroup defines or references.
func (c *checker) group(ctx context.Context, group *schedulingapi.PodGroup) (Object, error) {
	result := Object{Kind: "PodGroup", Namespace: group.Namespace, Name: group.Name}
	verdict, err := c.judge.PodGroup(ctx, group, c.nodeSetsFor(group.Namespace))
	result.judged(verdict)
	if own, _ := v1alpha1.GroupNodeSet(group); own != nil {
		result.nodeSets([]v1alpha1.NodeSetConstraint{*own})
	}
	return result, err
}

// nodeSetsFor returns the node set constraints that a PodGroup of the namespace can reference. They are defined in classes, and
// in claims and templates of the namespace.
func (c *checker) nodeSetsFor(namespace string) []v1alpha1.NodeSetConstraint {
	var defined []v1alpha1.NodeSetConstraint
	add := func(constraints []v1alpha1.NodeSetConstraint, _ error) { defined = append(defined, constraints...) }
	for _, template := range c.state.Templates {
		if template.Namespace == namespace {
			add(v1alpha1.TemplateCarrier(template).NodeSets())
		}
	}
	for _, claim := range c.state.Claims {
		if claim.Namespace == namespace {
			add(v1alpha1.ClaimCarrier(claim).NodeSets())
		}
	}
	for _, class := range c.state.Objects.Classes {
		add(v1alpha1.ClassNodeSets(class))
	}
	return defined
}

func (o *Object) nodeSets(constraints []v1alpha1.NodeSetConstraint) {
	for _, constraint := range constraints {
		o.NodeSetConstraints = append(o.NodeSetConstraints, NodeSetConstraint{constraint.Name, constraint.Source.String()})
	}
}
