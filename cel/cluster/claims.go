// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// claim is the CEL value of one claim of a ManagedCluster. It uses no reflection, because expressions often iterate over all
// claims of a cluster.
type claim struct {
	*clusterv1.ManagedClusterClaim
}

func (c claim) find(key string) (ref.Val, bool) {
	text := ""
	switch key {
	case "name":
		text = c.Name
	case "value":
		text = c.Value
	}
	// The JSON omits an empty field, so it does not exist for expressions.
	if text == "" {
		return nil, false
	}
	return types.String(text), true
}

func (c claim) keys() []string {
	keys := make([]string, 0, 2)
	if c.Name != "" {
		keys = append(keys, "name")
	}
	if c.Value != "" {
		keys = append(keys, "value")
	}
	return keys
}

func (c claim) count() int { return len(c.keys()) }

// showClaims returns the CEL list of a slice of claims. It allocates all elements at once, and converts a field of an element
// only when an expression reads it.
func showClaims(v reflect.Value) ref.Val {
	var claims []clusterv1.ManagedClusterClaim
	if v.CanAddr() {
		claims = *v.Addr().Interface().(*[]clusterv1.ManagedClusterClaim)
	} else {
		claims = v.Interface().([]clusterv1.ManagedClusterClaim)
	}
	elements, values := make([]mapping[claim], len(claims)), make([]ref.Val, len(claims))
	for i := range claims {
		elements[i].fields = claim{&claims[i]}
		values[i] = &elements[i]
	}
	return types.NewRefValList(types.DefaultTypeAdapter, values)
}
