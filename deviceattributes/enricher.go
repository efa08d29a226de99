// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package deviceattributes

import (
	"context"
	"fmt"
	"sync"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
)

// CostLimit is the maximum cost of all expressions of an object on one device, in CEL cost units. It is lower than the limit of
// constraints, because each device needs an evaluation.
const CostLimit uint64 = 10_000

// advice tells authors of expressions how to stay within CostLimit.
var advice = cel.Advice{
	Evaluation: "write a cheaper expression",
	Budget:     "write cheaper expressions, or distribute them over several objects",
}

// NodeLabels returns the labels of a node. ok is false if the node is unknown. The caller of NodeLabels must not modify the map.
type NodeLabels func(node string) (labels map[string]string, ok bool)

// Config configures an [Enricher]. The zero Config is valid.
type Config struct {
	// Observer receives the compilations and evaluations of expressions. It may be nil.
	Observer cel.Observer
}

// An Enricher adds the attributes of DeviceAttributes objects to devices. It keeps compiled objects, and the slices of the last
// call of Enrich. It is safe for concurrent use.
type Enricher struct {
	environment *device.ComputedEnvironment

	mutex sync.RWMutex
	// objects are the objects of the last call of Set, in the order of their names. The slice is replaced as a whole.
	objects []*object

	// enriching serializes calls of Enrich, which share memory.
	enriching sync.Mutex
	memory    memory
}

// NewEnricher returns an Enricher without objects.
func NewEnricher(config Config) (*Enricher, error) {
	environment, err := device.NewComputedEnvironment(cel.Config{Observer: config.Observer, CostLimit: CostLimit, Advice: advice, NamesNearest: true})
	if err != nil {
		return nil, err
	}
	return &Enricher{environment: environment}, nil
}

// Set replaces the objects. It compiles the expressions of objects whose spec has changed. A mistake in an object is no error: the
// object has no effect, and the next report contains the mistake. The error is the error of the context; the objects are not
// replaced then. The caller must not modify the objects afterwards.
func (e *Enricher) Set(ctx context.Context, objects []*v1alpha1.DeviceAttributes) error {
	compiled, err := e.compileAll(ctx, objects, e.current())
	if err != nil {
		return err
	}
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.objects = compiled
	return nil
}

func (e *Enricher) current() []*object {
	e.mutex.RLock()
	defer e.mutex.RUnlock()
	return e.objects
}

// Check returns the mistake of an object that Set would reject, or nil. It does not compare the object with others. The error is
// the error of the context.
func (e *Enricher) Check(ctx context.Context, of *v1alpha1.DeviceAttributes) (*Rejection, error) {
	compiled, err := e.compileSpec(ctx, of)
	if err != nil {
		return nil, err
	}
	return compiled.mistake, nil
}

// Touches reports whether an accepted object is for the driver of the slice. Enrich returns any other slice as the same pointer.
func (e *Enricher) Touches(slice *resourceapi.ResourceSlice) bool {
	for _, o := range e.current() {
		if o.rejection == nil && o.driver == slice.Spec.Driver {
			return true
		}
	}
	return false
}

// Affected reports whether a change of a node's labels can change an attribute. Labels that are nil belong to an unknown node, or to
// a node without labels.
func (e *Enricher) Affected(before, after map[string]string) bool {
	for _, o := range e.current() {
		if o.rejection == nil && o.affected(before, after) {
			return true
		}
	}
	return false
}

// Enrich returns the slices with the attributes of the objects. The result has the order of the slices. A slice that no object
// changes is returned as the same pointer; any other slice is a copy that later calls share. The caller must not modify the slices
// or the result. The slices must be all slices of the cluster, because the report and the domains in use depend on them. A nil
// nodes means that no node is known. The error is the error of the context.
func (e *Enricher) Enrich(ctx context.Context, slices []*resourceapi.ResourceSlice, nodes NodeLabels) (enriched []*resourceapi.ResourceSlice, report *Report, err error) {
	if nodes == nil {
		nodes = func(string) (map[string]string, bool) { return nil, false }
	}
	e.enriching.Lock()
	defer e.enriching.Unlock()
	objects := e.current()
	if len(objects) == 0 {
		e.memory = memory{}
		return slices, newReport(nil, slices, make([]*result, len(slices))), nil
	}
	e.memory.begin(len(slices))
	r := run{nodes: nodes, objects: inEffect(objects, e.memory.domains(slices))}
	results := make([]*result, len(slices))
	for i, slice := range slices {
		if results[i], err = e.enrichOne(ctx, &r, slice); err != nil {
			e.memory.abandon()
			return nil, nil, fmt.Errorf("enrich ResourceSlice %s: %w", slice.Name, err)
		}
	}
	e.memory.end()
	enriched = make([]*resourceapi.ResourceSlice, len(slices))
	for i, result := range results {
		enriched[i] = slices[i]
		if result != nil {
			enriched[i] = result.enriched
		}
	}
	return enriched, newReport(r.objects, slices, results), nil
}

func (e *Enricher) enrichOne(ctx context.Context, r *run, slice *resourceapi.ResourceSlice) (*result, error) {
	inputs := r.inputsOf(slice)
	if len(inputs) == 0 {
		return nil, nil
	}
	if known := e.memory.find(slice, inputs); known != nil {
		return known, nil
	}
	result, err := enrichSlice(ctx, slice, inputs)
	if err != nil {
		return nil, err
	}
	e.memory.keep(slice, inputs, result)
	return result, nil
}

// Apply returns the slices with the attributes of the objects, for a program that reads slices once. See [Enricher.Enrich].
func Apply(ctx context.Context, objects []*v1alpha1.DeviceAttributes, slices []*resourceapi.ResourceSlice, nodes NodeLabels) ([]*resourceapi.ResourceSlice, *Report, error) {
	enricher, err := NewEnricher(Config{})
	if err != nil {
		return nil, nil, err
	}
	if err := enricher.Set(ctx, objects); err != nil {
		return nil, nil, err
	}
	return enricher.Enrich(ctx, slices, nodes)
}
