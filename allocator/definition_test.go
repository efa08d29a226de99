// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"encoding/json"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel"
)

func definitionOf(name, expression string, variables ...v1alpha1.Variable) resourceapi.DeviceConfiguration {
	raw, err := json.Marshal(v1alpha1.CELDeviceConstraint{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.Kind},
		Name:       name,
		Expression: expression,
		Variables:  variables,
	})
	if err != nil {
		panic(err)
	}
	return parameters(v1alpha1.DriverName, string(raw))
}

func parameters(driver, raw string) resourceapi.DeviceConfiguration {
	return resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
		Driver: driver, Parameters: runtime.RawExtension{Raw: []byte(raw)},
	}}
}

// classWith is a class of all devices that defines a CEL constraint.
func classWith(name, constraint, expression string) *resourceapi.DeviceClass {
	class := classOf(name)
	class.Spec.Config = []resourceapi.DeviceClassConfiguration{{DeviceConfiguration: definitionOf(constraint, expression)}}
	return class
}

func TestWhereDefinitionsAreFound(t *testing.T) {
	last, first := indices+".sum() == 5", indices+".sum() == 1"
	for name, test := range map[string]struct {
		classes []*resourceapi.DeviceClass
		claim   *claimBuilder
		want    []string
	}{
		"claim":             {nil, claim("c").want("x", 2).cel("pair").define("pair", last), []string{"x=mla-2", "x=mla-3"}},
		"class":             {[]*resourceapi.DeviceClass{classWith("vendor", "pair", last)}, claim("c").want("x", 2).class("vendor").cel("pair"), []string{"x=mla-2", "x=mla-3"}},
		"claim beats class": {[]*resourceapi.DeviceClass{classWith("vendor", "pair", last)}, claim("c").want("x", 2).class("vendor").cel("pair").define("pair", first), []string{"x=mla-0", "x=mla-1"}},
		"class of one of the requests": {
			[]*resourceapi.DeviceClass{classWith("vendor", "pair", first)},
			claim("c").want("x", 1).want("y", 1).class("vendor").cel("pair"), []string{"x=mla-0", "y=mla-1"},
		},
		"two classes agree": {
			[]*resourceapi.DeviceClass{classWith("a", "pair", first), classWith("b", "pair", first)},
			claim("c").want("x", 1).class("a").want("y", 1).class("b").cel("pair"), []string{"x=mla-0", "y=mla-1"},
		},
		"never referenced": {nil, claim("c").want("x", 2).define("pair", "false"), []string{"x=mla-0", "x=mla-1"}},
		"referenced twice": {nil, claim("c").want("x", 2).want("y", 1).cel("row", "x").cel("row", "y").define("row", inARow), []string{"x=mla-0", "x=mla-1", "y=mla-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			scenario{slices: []*sliceBuilder{slice("1", ring(4)...)}, classes: test.classes, claims: []*claimBuilder{test.claim}}.requireDevices(t, test.want...)
		})
	}
}

func TestDefinitionErrors(t *testing.T) {
	for name, test := range map[string]struct {
		classes []*resourceapi.DeviceClass
		claim   *claimBuilder
		message []string
	}{
		"nowhere": {
			nil, claim("c").want("x", 1).cel("pair"),
			[]string{"ResourceClaim default/c", "spec.devices.constraints[0].matchAttribute", "celset.dev/pair", "spec.devices.config", "DeviceClass mla.example.com"},
		},
		"class not covered": {
			[]*resourceapi.DeviceClass{classWith("vendor", "pair", "true")}, claim("c").want("x", 1).want("y", 1).class("vendor").cel("pair", "x"),
			[]string{"celset.dev/pair", "DeviceClass mla.example.com"},
		},
		"classes differ": {
			[]*resourceapi.DeviceClass{classWith("a", "pair", "true"), classWith("b", "pair", "false")},
			claim("c").want("x", 1).class("a").want("y", 1).class("b").cel("pair"), []string{"DeviceClass a", "DeviceClass b", "define it differently"},
		},
		"twice":    {nil, claim("c").want("x", 1).cel("pair").define("pair", "true").define("pair", "false"), []string{"already defined at"}},
		"distinct": {nil, claim("c").want("x", 1).distinct("celset.dev/pair").define("pair", "true"), []string{"distinctAttribute", "matchAttribute"}},
		"unknown field": {
			nil, claim("c").want("x", 1).cel("pair").configure(parameters(v1alpha1.DriverName, `{"apiVersion":"celset.dev/v1alpha1","kind":"CELDeviceConstraint","name":"pair","expression":"true","extra":1}`)),
			[]string{"spec.devices.config[0].opaque.parameters", "extra"},
		},
		"does not compile": {
			nil, claim("c").want("x", 1).cel("pair").define("pair", "true &&\n  device"),
			[]string{"claim default/c, constraint pair (ResourceClaim default/c spec.devices.config[0]): ERROR: <input>:2:3: undeclared reference to 'device'", " |   device\n | ..^"},
		},
		"in a class, not bool": {
			[]*resourceapi.DeviceClass{classWith("vendor", "pair", "1")}, claim("c").want("x", 1).class("vendor").cel("pair"),
			[]string{"claim default/c, constraint pair (DeviceClass vendor spec.config[0]): ERROR: <input>:1:1: the expression must return bool, it returns int"},
		},
		"empty": {nil, claim("c").want("x", 1).cel("pair").define("pair", ""), []string{"parameters.expression"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := scenario{classes: test.classes, claims: []*claimBuilder{test.claim}}
			for _, message := range test.message {
				s.requireError(t, message)
			}
			checked := s.allocator(t).CheckConstraints(s.apiClaims())
			_, allocated := s.allocate(t)
			require.EqualError(t, checked, allocated.Error())
		})
	}
}

func TestCheckConstraints(t *testing.T) {
	s := scenario{claims: []*claimBuilder{
		claim("plain").want("x", 1).match(color), claim("good").want("x", 1).cel("any").define("any", "true"), claim("bad").want("x", 1).cel("none"),
	}}
	claims := s.apiClaims()
	require.NoError(t, s.allocator(t).CheckConstraints(nil))
	require.NoError(t, s.allocator(t).CheckConstraints(claims[:2]))
	require.ErrorContains(t, s.allocator(t).CheckConstraints(claims), "ResourceClaim default/bad")
	s.opts = []Option{WithoutCELConstraints()}
	require.NoError(t, s.allocator(t).CheckConstraints(claims))
}

// No device has the attribute: the claim is never allocated, and nothing about
// its definitions is an error.
func TestWithoutCELConstraints(t *testing.T) {
	s := scenario{slices: []*sliceBuilder{slice("1", ring(2)...)}, opts: []Option{WithoutCELConstraints()}}
	for _, c := range []*claimBuilder{
		claim("c").want("x", 1).cel("any").define("any", "true"),
		claim("c").want("x", 1).cel("undefined"),
		claim("c").want("x", 1).cel("broken").define("broken", "("),
	} {
		s.claims = []*claimBuilder{c}
		s.requireNone(t)
	}
	s.claims = []*claimBuilder{claim("c").want("x", 1)}
	s.requireDevices(t, "x=mla-0")
}

// asked counts the look-ups of classes.
type asked struct {
	structured.DeviceClassLister
	mutex sync.Mutex
	names []string
}

func (a *asked) Get(name string) (*resourceapi.DeviceClass, error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.names = append(a.names, name)
	return a.DeviceClassLister.Get(name)
}

// compilations counts what an environment is asked to compile.
type compilations struct {
	cel.Observer
	mutex sync.Mutex
	count int
}

func (c *compilations) ObserveCompilation(string, bool, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.count++
}

func (c *compilations) ObserveEvaluation(string, uint64, error) {}

// A pod is tried on many nodes: its definitions are looked up and compiled once,
// also if that fails.
func TestDefinitionsAreRememberedPerClaim(t *testing.T) {
	seen := &compilations{}
	s := scenario{
		classes: []*resourceapi.DeviceClass{classWith("vendor", "any", "true"), classWith("broken", "none", "(")},
		slices:  []*sliceBuilder{slice("1", ring(2)...)},
		claims:  []*claimBuilder{claim("c").want("x", 1).class("vendor").cel("any")},
		opts:    []Option{WithEnvironment(environmentWith(t, cel.Config{Observer: seen}))},
	}
	a := s.allocator(t)
	classes := &asked{DeviceClassLister: a.classes.DeviceClassLister}
	a.classes.DeviceClassLister = classes
	for range 3 {
		_, err := a.Allocate(t.Context(), s.onNode(), s.apiClaims())
		require.NoError(t, err)
	}
	require.Equal(t, 1, seen.count)
	require.Equal(t, []string{"vendor"}, classes.names, "once for the definition, the content, the readSet and the requests of all calls")

	broken := []*resourceapi.ResourceClaim{claim("c").want("x", 1).class("broken").cel("none").ResourceClaim}
	for range 3 {
		require.ErrorContains(t, a.CheckConstraints(broken), "Syntax error")
	}
	require.Equal(t, 2, seen.count)

	plain := []*resourceapi.ResourceClaim{claim("c").want("x", 1).ResourceClaim}
	require.NoError(t, a.CheckConstraints(plain))
	_, remembered := a.resolvedClaims.byClaim.Load(plain[0])
	require.False(t, remembered, "claims without CEL constraints would pile up")
}
