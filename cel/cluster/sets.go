// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/celset/celset/apis/setscores"
)

const setsFunction = "sets"

// counts is what sets() returns: the number of sets by state. A state that is not published is absent.
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

// publishedSets implements <cluster>.sets(<string>, <string>), and with the number of devices. What is missing is
// an error, as for scores(): that a cluster has no set is something else.
func publishedSets(args ...ref.Val) ref.Val {
	cluster, ok := args[0].(*input)
	if !ok {
		return types.NewErr(wrongReceiver, setsFunction)
	}
	class, isClass := args[1].(types.String)
	constraint, isConstraint := args[2].(types.String)
	if !isClass || !isConstraint {
		return types.NoSuchOverloadErr()
	}
	devices := types.Int(0)
	if len(args) > 3 {
		if devices, ok = args[3].(types.Int); !ok {
			return types.MaybeNoSuchOverloadErr(args[3])
		}
	}
	found := cluster.find(setscores.Name)
	if found.err != nil {
		return types.WrapErr(found.err)
	}
	shape := wantedShape{string(class), string(constraint), int64(devices), len(args) > 3}
	result, err := shape.in(found.object)
	if err != nil {
		return types.WrapErr(err)
	}
	return &mapping[counts]{result}
}

// wantedShape is what sets() is asked for. Of any number of devices if isSized is false.
type wantedShape struct {
	class, constraint string
	devices           int64
	isSized           bool
}

// in finds the numbers in what a cluster has published. Items with other names are not looked at, and
// those with the same name say the same.
func (w wantedShape) in(object *clusterv1alpha1.AddOnPlacementScore) (counts, error) {
	prefix := setscores.Prefix(w.class, w.constraint)
	sizes := map[int]counts{}
	var quantities map[string]string
	for i := range object.Status.Scores {
		name := object.Status.Scores[i].Name
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		key, ok := setscores.Parse(name)
		if !ok || key.Class != w.class || key.Constraint != w.constraint || w.isSized && int64(key.Devices) != w.devices {
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
			return nil, fmt.Errorf("the annotation %s of AddOnPlacementScore %s/%s must have a whole number that is not negative for %q",
				QuantitiesAnnotation, object.Namespace, object.Name, name)
		}
		if sizes[key.Devices] == nil {
			sizes[key.Devices] = counts{}
		}
		sizes[key.Devices][key.State] = int64(count)
	}
	if len(sizes) == 1 {
		for _, only := range sizes {
			return only, nil
		}
	}
	return nil, w.missing(object, slices.Sorted(maps.Keys(sizes)))
}

// missing says why there is no answer, where there are sets of so many devices.
func (w wantedShape) missing(object *clusterv1alpha1.AddOnPlacementScore, published []int) error {
	what := fmt.Sprintf("class %q and constraint %q", w.class, w.constraint)
	if w.isSized {
		what += fmt.Sprintf(" with %d devices", w.devices)
	}
	if len(published) == 0 {
		return fmt.Errorf("AddOnPlacementScore %s/%s says nothing of sets of %s", object.Namespace, object.Name, what)
	}
	return fmt.Errorf("AddOnPlacementScore %s/%s has sets of %s with %v devices: add a number, as in %s(%q, %q, %d)",
		object.Namespace, object.Name, what, published, setsFunction, w.class, w.constraint, published[0])
}
