// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package binding

import (
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
)

func TestScope(t *testing.T) {
	group, bind := []string{clusterv1beta2.GroupName}, []string{"managedclustersets/bind"}
	create := []string{"create"}
	tests := map[string]struct {
		rule rbacv1.PolicyRule
		all  bool
		has  bool // "eu"
	}{
		"named":             {rbacv1.PolicyRule{APIGroups: group, Resources: bind, Verbs: create, ResourceNames: []string{"eu"}}, false, true},
		"another named":     {rbacv1.PolicyRule{APIGroups: group, Resources: bind, Verbs: create, ResourceNames: []string{"us"}}, false, false},
		"all sets":          {rbacv1.PolicyRule{APIGroups: group, Resources: bind, Verbs: create}, true, true},
		"everything":        {rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}, true, true},
		"any subresource":   {rbacv1.PolicyRule{APIGroups: group, Resources: []string{"*/bind"}, Verbs: create}, true, true},
		"the set itself":    {rbacv1.PolicyRule{APIGroups: group, Resources: []string{"managedclustersets"}, Verbs: create}, false, false},
		"another verb":      {rbacv1.PolicyRule{APIGroups: group, Resources: bind, Verbs: []string{"get"}}, false, false},
		"another API group": {rbacv1.PolicyRule{APIGroups: []string{""}, Resources: bind, Verbs: create}, false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := &scope{names: sets.New[string]()}
			s.add(test.rule)
			require.Equal(t, test.all, s.all)
			require.Equal(t, test.has, s.has("eu"))
		})
	}
}
