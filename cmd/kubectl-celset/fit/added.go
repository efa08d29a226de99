// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"context"
	"maps"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/internal/clusterstate"
)

// Addition is an attribute that the claims read, and that devices have from DeviceAttributes objects.
type Addition struct {
	// Attribute is the qualified name.
	Attribute string `json:"attribute"`
	// From holds the names of the DeviceAttributes objects that define the attribute.
	From []string `json:"from"`
}

// additions returns the attributes of DeviceAttributes objects that the claims read: in device selectors of requests and classes,
// in constraints and in preferences. An expression that does not compile reads nothing; the search reports it.
func (q *question) additions(ctx context.Context) ([]Addition, error) {
	from := map[string][]string{}
	for _, object := range q.state.Attributes {
		if report, ok := q.state.Added.Object(object.Name); ok && report.Attributes > 0 {
			for name := range namesOf(object) {
				from[name] = append(from[name], object.Name)
			}
		}
	}
	if len(from) == 0 {
		return nil, nil
	}
	read, err := q.read(ctx)
	if err != nil {
		return nil, err
	}
	var result []Addition
	for _, name := range slices.Sorted(maps.Keys(from)) {
		if read.Has(name) {
			result = append(result, Addition{Attribute: name, From: from[name]})
		}
	}
	return result, nil
}

// namesOf returns the qualified names of the attributes of an object.
func namesOf(object *v1alpha1.DeviceAttributes) sets.Set[string] {
	names := sets.New[string]()
	for _, attribute := range object.Spec.Attributes {
		names.Insert(clusterstate.DomainOf(object) + "/" + attribute.Name)
	}
	if object.Spec.Table != nil {
		for _, row := range object.Spec.Table.Rows {
			for name := range row.Values {
				names.Insert(clusterstate.DomainOf(object) + "/" + name)
			}
		}
	}
	return names
}

// read returns the qualified names of the attributes that the claims read.
func (q *question) read(ctx context.Context) (sets.Set[string], error) {
	r := reader{names: sets.New[string]()}
	var err error
	if r.selecting, err = device.NewSelectorEnvironment(cel.Config{}); err != nil {
		return nil, err
	}
	if r.sets, err = device.NewEnvironment(cel.Config{}); err != nil {
		return nil, err
	}
	for _, claim := range q.subject.Claims {
		r.readClaim(ctx, claim, q.state.Classes())
	}
	return r.names, ctx.Err()
}

// A reader collects the attributes that expressions read.
type reader struct {
	selecting, sets *device.Environment
	names           sets.Set[string]
}

func (r *reader) readClaim(ctx context.Context, claim *resourceapi.ResourceClaim, classes clusterstate.ClassLister) {
	class := func(name string) {
		if of, err := classes.Get(name); err == nil {
			r.readSelectors(ctx, of.Spec.Selectors)
		}
	}
	for _, request := range claim.Spec.Devices.Requests {
		if exactly := request.Exactly; exactly != nil {
			class(exactly.DeviceClassName)
			r.readSelectors(ctx, exactly.Selectors)
		}
		for _, alternative := range request.FirstAvailable {
			class(alternative.DeviceClassName)
			r.readSelectors(ctx, alternative.Selectors)
		}
	}
	for _, constraint := range claim.Spec.Devices.Constraints {
		for _, name := range []*resourceapi.FullyQualifiedName{constraint.MatchAttribute, constraint.DistinctAttribute} {
			if name != nil {
				r.names.Insert(string(*name))
			}
		}
	}
	if constraints, err := v1alpha1.Resolve(claim, classes); err == nil {
		for _, c := range constraints {
			r.add(r.sets.Compile(ctx, c.Expression, c.Variables...))
		}
	}
	if preferences, err := v1alpha1.ResolvePreferences(claim, classes); err == nil {
		for _, p := range preferences {
			if p.Policy == "" {
				r.add(r.sets.CompileInt(ctx, p.Expression, p.Variables...))
			}
		}
	}
}

func (r *reader) readSelectors(ctx context.Context, selectors []resourceapi.DeviceSelector) {
	for _, selector := range selectors {
		if selector.CEL != nil {
			r.add(r.selecting.Compile(ctx, selector.CEL.Expression))
		}
	}
}

func (r *reader) add(expression *device.Expression, err error) {
	if err != nil {
		return
	}
	for name := range expression.ReadSet().Attributes {
		r.names.Insert(name.Domain + "/" + name.ID)
	}
}
