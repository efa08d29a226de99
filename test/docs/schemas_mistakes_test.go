// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/dynamic-resource-allocation/structured"
	"sigs.k8s.io/yaml"

	celsetv1alpha1 "github.com/celset/celset/apis/celset/v1alpha1"
	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/cmd/kubectl-celset/suite"
	"github.com/celset/celset/deviceattributes"
)

// complete maps a kind to parameters of this kind with a value in every field.
var complete = map[string]string{
	"CELDeviceConstraint": `
apiVersion: celset.dev/v1alpha1
kind: CELDeviceConstraint
name: ring
expression: devices.size() > 1
variables:
- name: index
  expression: device.attributes['mla.example.com'].index
enforcement: Always
failurePolicy: NodeDoesNotFit
`,
	"CELDevicePreference": `
apiVersion: celset.dev/v1alpha1
kind: CELDevicePreference
name: near
type: Expression
expression: devices.size()
variables:
- name: index
  expression: device.attributes['mla.example.com'].index
requests: [mla]
`,
	"CELNodeSetConstraint": `
apiVersion: celset.dev/v1alpha1
kind: CELNodeSetConstraint
name: rack
expression: nodes.map(n, n.variables.rack).distinct().size() == 1
preference: nodes.size()
variables:
- name: rack
  expression: node.labels['example.com/rack']
podsPerNode: 2
`,
	"ExpressionTest": `
apiVersion: kubectl.celset.dev/v1alpha1
kind: ExpressionTest
files: [../../../docs/hardware/tests/devices/ring-12.yaml]
objects: [{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: mla.example.com}}]
machine: {name: hgx-h100, nodes: 2}
cases:
- name: ring
  inUse: [{nodes: [node-1], driver: mla.example.com, devices: [mla-1], capacity: {}}, {count: 2}]
  claim: {devices: {requests: [{name: mla, exactly: {deviceClassName: mla.example.com}}]}}
  namespace: team
  nodes: [node-1]
  featureGates: {DRAConsumableCapacity: true}
  now: "2026-01-02T03:04:05Z"
  expect: {devices: [mla-2], requests: {mla: [mla-2]}, nodesThatFit: [node-1], nodes: [], clusters: [], satisfies: "true", steps: {atMost: 9}}
- name: errors
  subject: class/mla.example.com
  expect: {errors: [undeclared]}
- name: none
  subject: template/ring
  expect: {none: no set}
`,
	"DeviceAttributes": `
apiVersion: celset.dev/v1alpha1
kind: DeviceAttributes
metadata: {name: chips}
spec:
  driver: chip.example.com
  nodeSelector: {matchLabels: {example.com/rack: r7}}
  domain: topology.example.com
  attributes:
  - name: column
    expression: device.attributes['chip.example.com'].index % 4
  table:
    key: name
    rows:
    - {key: chip-0, values: {links: {strings: [chip-1]}}}
`,
	"DynamicResourcesCELArgs": `
filterTimeout: 5s
bindingTimeout: 60s
attemptTimeout: 1s
budget: {cost: 100000, steps: 1000}
defaultPreference: KeepWhole
devicePreemption: {minCandidateNodesPercentage: 10, minCandidateNodesAbsolute: 100, holdTimeout: 1m}
cacheSize: 64Mi
backOff: {initial: 1s, max: 1m}
share: {percent: 50, burst: 100ms}
fragmentationInterval: 1m
allocator: All
`,
}

// decoders maps a kind to the decoder that the programs use.
var decoders = map[string]func([]byte) error{
	"CELDeviceConstraint": func(raw []byte) error {
		_, err := celsetv1alpha1.ClassDefinitions(classWith(raw))
		return err
	},
	"CELDevicePreference": func(raw []byte) error {
		claim := &resourceapi.ResourceClaim{Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{
			Requests: []resourceapi.DeviceRequest{{Name: "mla", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "mla.example.com"}}},
			Config:   []resourceapi.DeviceClaimConfiguration{{DeviceConfiguration: classWith(raw).Spec.Config[0].DeviceConfiguration}},
		}}}
		_, err := celsetv1alpha1.ResolvePreferences(claim, noClass{})
		return err
	},
	"CELNodeSetConstraint": func(raw []byte) error {
		_, err := celsetv1alpha1.ClassNodeSets(classWith(raw))
		return err
	},
	"DeviceAttributes": func(raw []byte) error {
		object := &celsetv1alpha1.DeviceAttributes{}
		if err := yaml.UnmarshalStrict(raw, object); err != nil {
			return err
		}
		if object.APIVersion != celsetv1alpha1.SchemeGroupVersion.String() {
			return errors.New("unknown version")
		}
		enricher, err := deviceattributes.NewEnricher(deviceattributes.Config{})
		if err != nil {
			return err
		}
		rejection, err := enricher.Check(context.Background(), object)
		if err != nil || rejection == nil {
			return err
		}
		return errors.New(rejection.Message)
	},
	"ExpressionTest": func(raw []byte) error {
		folder, err := os.MkdirTemp("", "cases")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(folder) }()
		path := filepath.Join(folder, "test.yaml")
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			return err
		}
		noFeatures := func(map[string]bool) (structured.Features, error) { return structured.Features{}, nil }
		report, err := suite.Run(context.Background(), []string{path}, suite.Options{Features: noFeatures, Only: regexp.MustCompile("^none of them$")})
		if err == nil && len(report.Files[0].Mistakes) > 0 {
			err = fmt.Errorf("%v", report.Files[0].Mistakes)
		} else if err != nil && strings.HasPrefix(err.Error(), "--run") {
			err = nil // no case has run, because no name matches
		}
		return err
	},
	"DynamicResourcesCELArgs": func(raw []byte) error {
		args, err := configv1alpha1.DecodeArgs(raw)
		if err != nil {
			return err
		}
		return configv1alpha1.Validate(args, nil).ToAggregate()
	},
}

// noClass is a lister that returns an empty class for every name.
type noClass struct{}

func (noClass) Get(string) (*resourceapi.DeviceClass, error) { return &resourceapi.DeviceClass{}, nil }

func classWith(parameters []byte) *resourceapi.DeviceClass {
	return &resourceapi.DeviceClass{Spec: resourceapi.DeviceClassSpec{Config: []resourceapi.DeviceClassConfiguration{{
		DeviceConfiguration: resourceapi.DeviceConfiguration{
			Opaque: &resourceapi.OpaqueDeviceConfiguration{Driver: celsetv1alpha1.DriverName, Parameters: runtime.RawExtension{Raw: parameters}},
		},
	}}}}
}

// mistakes maps a kind to edits of its complete parameters. After each edit, both the schema and the decoder must reject the
// parameters.
var mistakes = map[string][]struct{ what, old, instead string }{
	"CELDeviceConstraint": {
		{"misspelt field", "expression: devices", "expresion: devices"},
		{"field of a draft", "failurePolicy: NodeDoesNotFit", "onError: NodeDoesNotFit"},
		{"unknown value of an enum", "failurePolicy: NodeDoesNotFit", "failurePolicy: Ignore"},
		{"value in lower case", "enforcement: Always", "enforcement: always"},
		{"bool for an enum", "enforcement: Always", "enforcement: true"},
		{"no name", "name: ring\n", ""},
		{"name with a hyphen", "name: ring", "name: ring-4"},
		{"name that is too long", "name: ring", "name: " + strings.Repeat("r", 33)},
		{"number for a text", "expression: devices.size() > 1", "expression: 4"},
		{"variable without an expression", "\n  expression: device.attributes['mla.example.com'].index", ""},
		{"variables as a map", "variables:\n- name: index\n  expression: ", "variables:\n  index: "},
		{"unknown version", "celset.dev/v1alpha1", "celset.dev/v1"},
	},
	"CELDevicePreference": {
		{"no discriminator", "type: Expression\n", ""},
		{"the other member", "expression: devices.size()", "policy: KeepWhole"},
		{"both members", "expression: devices.size()", "expression: devices.size()\npolicy: KeepWhole"},
		{"unknown policy", "type: Expression\nexpression: devices.size()", "type: Policy\npolicy: Pack"},
		{"requests as a text", "requests: [mla]", "requests: mla"},
	},
	"CELNodeSetConstraint": {
		{"zero", "podsPerNode: 2", "podsPerNode: 0"},
		{"too many", "podsPerNode: 2", "podsPerNode: 257"},
		{"text for a number", "podsPerNode: 2", `podsPerNode: "2"`},
		{"name that is no label key", "name: rack\nexpression", "name: rack_\nexpression"},
		{"field of another kind", "podsPerNode: 2", "failurePolicy: Fail"},
	},
	"DeviceAttributes": {
		{"misspelt field", "nodeSelector:", "nodeSelektor:"},
		{"unknown kind of value", "strings:", "string:"},
		{"number for a list", "strings: [chip-1]", "ints: 1"},
		{"number for a name", "name: column", "name: 4"},
		{"name with a hyphen", "name: column", "name: the-column"},
		{"key that is no attribute", "key: name", "key: serial"},
		{"no rows", "rows:\n    - {key: chip-0, values: {links: {strings: [chip-1]}}}", "rows: []"},
		{"no driver", "driver: chip.example.com", ""},
		{"domain that is none", "domain: topology.example.com", "domain: topology/example"},
		{"unknown version", "celset.dev/v1alpha1", "celset.dev/v1"},
	},
	"ExpressionTest": {
		{"misspelt field", "machine:", "mashine:"},
		{"misspelt expectation", "satisfies:", "satisfy:"},
		{"text for a list", "devices: [mla-2]", "devices: mla-2"},
		{"text for a number", "atMost: 9", "atMost: few"},
		{"no name", "name: ring", "nodes: []"},
		{"no cases", "cases:", "cases: []\nothers:"},
		{"too many nodes", "nodes: 2", "nodes: 1001"},
		{"negative steps", "atMost: 9", "atMost: -1"},
		{"unknown version", "kubectl.celset.dev/v1alpha1", "kubectl.celset.dev/v1"},
	},
	"DynamicResourcesCELArgs": {
		{"misspelt field", "filterTimeout: 5s", "filterTimout: 5s"},
		{"number for a duration", "filterTimeout: 5s", "filterTimeout: 5"},
		{"percent over 100", "percent: 50", "percent: 101"},
		{"budget of zero", "steps: 1000}", "steps: 0}"},
		{"unknown allocator", "allocator: All", "allocator: Ours"},
		{"amount that is none", "cacheSize: 64Mi", "cacheSize: 64MiB"},
	},
}

// TestSchemasAndDecodersRefuseMistakes checks that the schema (for editors) and the decoder (in programs) reject the same
// mistakes.
func TestSchemasAndDecodersRefuseMistakes(t *testing.T) {
	for kind, text := range complete {
		schema, decode := compileSchema(t, "schemas/"+kind+".schema.json"), decoders[kind]
		valid := func(text string) (bySchema, byDecoder error) {
			var value any
			require.NoError(t, yaml.Unmarshal([]byte(text), &value))
			raw, err := json.Marshal(value)
			require.NoError(t, err)
			return schema.Validate(value), decode(raw)
		}
		bySchema, byDecoder := valid(text)
		require.NoError(t, bySchema, kind)
		require.NoError(t, byDecoder, kind)
		for _, mistake := range mistakes[kind] {
			t.Run(kind+"/"+mistake.what, func(t *testing.T) {
				wrong := strings.Replace(text, mistake.old, mistake.instead, 1)
				require.NotEqual(t, text, wrong, "the edit changes nothing")
				bySchema, byDecoder := valid(wrong)
				require.Error(t, bySchema)
				require.Error(t, byDecoder)
				t.Logf("%v\n%v", bySchema, byDecoder)
			})
		}
	}
}

// TestManifestSchemaFindsParameters puts an unknown field into each place in manifests that may contain parameters of celset. The
// schema must reject all of them.
func TestManifestSchemaFindsParameters(t *testing.T) {
	schema := compileSchema(t, manifestSchema)
	const configuration = `config: [{opaque: {driver: celset.dev, parameters: {apiVersion: celset.dev/v1alpha1, kind: CELDeviceConstraint, name: ring, expression: "true"}}}]`
	for name, text := range map[string]string{
		"class":    "{apiVersion: resource.k8s.io/v1, kind: DeviceClass, spec: {" + configuration + "}}",
		"claim":    "{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, spec: {devices: {" + configuration + "}}}",
		"template": "{apiVersion: resource.k8s.io/v1beta1, kind: ResourceClaimTemplate, spec: {spec: {devices: {" + configuration + "}}}}",
		"list":     "{apiVersion: v1, kind: List, items: [{apiVersion: resource.k8s.io/v1, kind: DeviceClass, spec: {" + configuration + "}}]}",
		"scheduler": `{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, profiles: [{pluginConfig: [
			{name: DynamicResourcesCEL, args: {expression: x}}]}]}`,
		"placement": `{apiVersion: cluster.open-cluster-management.io/v1beta1, kind: Placement, spec: {predicates: [{requiredClusterSelector: {celSelector: {
			celExpressions: ["true"]}}}], expression: x}}`,
	} {
		t.Run(name, func(t *testing.T) {
			valid := func(text string) error {
				var value any
				require.NoError(t, yaml.Unmarshal([]byte(strings.ReplaceAll(text, "\t", "")), &value))
				return schema.Validate(value)
			}
			if strings.Contains(text, configuration) {
				require.NoError(t, valid(text))
				require.Error(t, valid(strings.Replace(text, "kind: CELDeviceConstraint", "kind: CELDeviceConstrain", 1)))
				require.NoError(t, valid(strings.Replace(strings.Replace(text, "driver: celset.dev", "driver: other.example.com", 1), "expression", "expresion", 1)),
					"parameters of another driver")
			} else {
				require.NoError(t, valid(strings.NewReplacer("expression: x", "", "], }", "]}").Replace(text)))
			}
			require.Error(t, valid(strings.Replace(text, "expression", "expresion", 1)))
		})
	}
}
