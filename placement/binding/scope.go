// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package binding

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
)

const (
	resource    = "managedclustersets"
	subresource = "bind"
	verb        = "create"
)

// scope are the sets that some rules mention.
type scope struct {
	all   bool
	names sets.Set[string]
}

// add adds what a rule says about binding sets, if it does.
func (s *scope) add(rule rbacv1.PolicyRule) {
	if !mentions(rule.APIGroups, clusterv1beta2.GroupName) || !mentions(rule.Verbs, verb) ||
		!mentions(rule.Resources, resource+"/"+subresource, "*/"+subresource) {
		return
	}
	s.all = s.all || len(rule.ResourceNames) == 0
	s.names = s.names.Union(sets.New(rule.ResourceNames...))
}

func (s *scope) has(name string) bool { return s.all || s.names.Has(name) }

// mentions tells whether a list has one of several names, or "*" for all.
func mentions(list []string, names ...string) bool {
	return slices.ContainsFunc(list, func(item string) bool { return item == rbacv1.ResourceAll || slices.Contains(names, item) })
}

// namespacesOf returns the namespaces whose account is a subject of a binding.
func namespacesOf(object *rbacv1.ClusterRoleBinding) []string {
	var result []string
	for _, subject := range object.Subjects {
		if subject.Kind == rbacv1.ServiceAccountKind && subject.APIGroup == "" && subject.Name == ServiceAccount {
			result = append(result, subject.Namespace)
		}
	}
	slices.Sort(result)
	return slices.Compact(result)
}
