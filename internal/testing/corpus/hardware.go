// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	_ "embed"
	"fmt"
	"reflect"
	"sync"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/internal/topology"
)

//go:embed nodes.yaml
var nodesFile []byte

// part is an entry of nodes.yaml: it describes the devices of one driver.
type part struct {
	Driver, Prefix, As             string
	Count                          int
	Attributes, Versions, Capacity map[resourceapi.QualifiedName]string
}

// nodes maps names to the hardware in nodes.yaml. It panics on mistakes, because the tests of this package read the file.
var nodes = sync.OnceValue(func() map[string]Hardware {
	result := map[string]Hardware{}
	add := func(name string, make func() []Device) {
		made := sync.OnceValue(make)
		result[name] = Hardware{Name: name, Devices: func() []Device {
			var copies []Device
			for _, d := range made() {
				copies = append(copies, Device{d.Driver, *d.DeepCopy()})
			}
			return copies
		}}
	}
	mla, gpu := topology.Family{Driver: "mla.example.com", Prefix: "mla"}, topology.Family{Driver: "gpu.example.com", Prefix: "gpu"}
	nic := topology.Family{Driver: "nic.example.com", Prefix: "nic"}
	for name, wired := range map[string]func() (topology.Topology, error){
		"ring":    func() (topology.Topology, error) { return topology.NewRing(mla, 8) },
		"mesh":    func() (topology.Topology, error) { return topology.NewMesh(mla, 3, 3) },
		"torus":   func() (topology.Topology, error) { return topology.NewTorus(mla, 3, 3) },
		"board":   func() (topology.Topology, error) { return topology.NewMesh(mla, 2, 4) },
		"bridged": func() (topology.Topology, error) { return topology.NewBridgePairs(gpu, 8) },
		"cube": func() (topology.Topology, error) {
			return topology.NewHybridCubeMesh(gpu, topology.PeersAsStringAndList)
		},
		"coupled": func() (topology.Topology, error) { return topology.NewCouples(gpu, nic, 4) },
	} {
		add(name, func() (devices []Device) {
			for _, d := range must(wired()).Devices {
				devices = append(devices, Device{d.Driver, resourceapi.Device{Name: d.Name, Attributes: d.Attributes}})
			}
			return devices
		})
	}
	var written []struct {
		Name  string
		Parts []part
	}
	if err := yaml.UnmarshalStrict(nodesFile, &written); err != nil {
		panic(err)
	}
	for _, node := range written {
		add(node.Name, func() (devices []Device) {
			for _, p := range node.Parts {
				devices = append(devices, p.devices()...)
			}
			return devices
		})
	}
	return result
})

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func (p part) devices() []Device {
	result := make([]Device, p.Count)
	for i := range result {
		result[i] = Device{p.Driver, resourceapi.Device{
			Name:       fmt.Sprintf("%s-%d", p.Prefix, i),
			Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{},
			Capacity:   map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{},
		}}
	}
	p.each(p.Versions, func(i int, name resourceapi.QualifiedName, value ref.Val) {
		result[i].Attributes[name] = resourceapi.DeviceAttribute{VersionValue: new(value.Value().(string))}
	})
	p.each(p.Capacity, func(i int, name resourceapi.QualifiedName, value ref.Val) {
		result[i].Capacity[name] = resourceapi.DeviceCapacity{Value: resource.MustParse(value.Value().(string))}
	})
	p.each(p.Attributes, func(i int, name resourceapi.QualifiedName, value ref.Val) {
		result[i].Attributes[name] = attribute(value)
	})
	return result
}

var environment = sync.OnceValue(func() *celgo.Env {
	printf := celgo.Function("printf", celgo.Overload("printf", []*celgo.Type{celgo.StringType, celgo.ListType(celgo.IntType)}, celgo.StringType,
		celgo.BinaryBinding(func(format, list ref.Val) ref.Val {
			var values []any
			for _, value := range must(list.ConvertToNative(reflect.TypeFor[[]int64]())).([]int64) {
				values = append(values, value)
			}
			return types.String(fmt.Sprintf(format.Value().(string), values...))
		})))
	return must(celgo.NewEnv(celgo.Variable("i", celgo.IntType), printf))
})

// each evaluates expressions for the values of attributes or capacities. It calls f with the value of each name for each device
// i.
func (p part) each(said map[resourceapi.QualifiedName]string, f func(i int, name resourceapi.QualifiedName, value ref.Val)) {
	evaluate := func(expression string) func(i any) ref.Val {
		ast, issues := environment().Compile(expression)
		if issues.Err() != nil {
			panic(issues.Err())
		}
		program := must(environment().Program(ast))
		return func(i any) ref.Val {
			value, _, err := program.Eval(map[string]any{"i": i})
			return must(value, err)
		}
	}
	as := func(i any) ref.Val { return types.Int(i.(int)) }
	if p.As != "" {
		as = evaluate(p.As)
	}
	for name, expression := range said {
		of := evaluate(expression)
		for i := range p.Count {
			f(i, name, of(as(i)))
		}
	}
}

func attribute(value ref.Val) resourceapi.DeviceAttribute {
	switch v := value.Value().(type) {
	case int64:
		return resourceapi.DeviceAttribute{IntValue: &v}
	case bool:
		return resourceapi.DeviceAttribute{BoolValue: &v}
	case string:
		return resourceapi.DeviceAttribute{StringValue: &v}
	}
	if ints, err := value.ConvertToNative(reflect.TypeFor[[]int64]()); err == nil {
		return resourceapi.DeviceAttribute{IntValues: ints.([]int64)}
	}
	return resourceapi.DeviceAttribute{StringValues: must(value.ConvertToNative(reflect.TypeFor[[]string]())).([]string)}
}
