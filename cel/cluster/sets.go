// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/celset/celset/apis/setscores"
)

const setsFunction = "sets"

// counts is the result of sets(): the number of sets for each state. If a cluster does not publish a state, the state is
// absent.
type counts map[setscores.State]int64

func (c counts) find(key string) (ref.Val, bool) {
	value, found := c[setscores.State(key)]
	if !found {
		return nil, false
	}
	return types.Int(value), true
}

func (c counts) keys() []string {
	result := make([]string, 0, len(c))
	for state := range c {
		result = append(result, string(state))
	}
	slices.Sort(result)
	return result
}

func (c counts) count() int { return len(c) }

// publishedSets implements <cluster>.sets(<string>, <string>, <int>). If the cluster publishes no numbers, the result is an
// error, as in scores(), because missing numbers don't mean that the cluster has no set.
func publishedSets(args ...ref.Val) ref.Val {
	cluster, ok := args[0].(*input)
	if !ok {
		return types.NewErr(wrongReceiver, setsFunction)
	}
	class, isClass := args[1].(types.String)
	constraint, isConstraint := args[2].(types.String)
	devices, isNumber := args[3].(types.Int)
	if !isClass || !isConstraint || !isNumber {
		return types.NoSuchOverloadErr()
	}
	found := cluster.find(setscores.Name)
	if found.err != nil {
		return types.WrapErr(found.err)
	}
	result, err := publishedIn(found.object, string(class), string(constraint), int64(devices))
	if err != nil {
		return types.WrapErr(err)
	}
	return &mapping[counts]{result}
}

// publishedIn returns the numbers of sets that a cluster publishes for the class, the constraint and the number of devices. If
// several scores have the same name, their order does not matter, because the annotation has one quantity per name.
func publishedIn(object *clusterv1alpha1.AddOnPlacementScore, class, constraint string, devices int64) (counts, error) {
	result := counts{}
	var quantities map[string]string
	for i := range object.Status.Scores {
		name := object.Status.Scores[i].Name
		key, ok := setscores.Parse(name)
		if !ok || key.Class != class || key.Constraint != constraint || int64(key.Devices) != devices {
			continue
		}
		if quantities == nil {
			var err error
			if quantities, err = quantitiesOf(object); err != nil {
				return nil, err
			}
		}
		count, err := strconv.ParseUint(quantities[name], 10, 63)
		if err != nil {
			return nil, fmt.Errorf("the annotation %s of AddOnPlacementScore %s/%s must have a non-negative integer for %q",
				QuantitiesAnnotation, object.Namespace, object.Name, name)
		}
		result[key.State] = int64(count)
	}
	if len(result) == 0 {
		return nil, fmt.Errorf("AddOnPlacementScore %s/%s has no score for sets of class %q and constraint %q with %d devices",
			object.Namespace, object.Name, class, constraint, devices)
	}
	return result, nil
}
