// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/clusterstate"
	"github.com/celset/celset/internal/clusterstate/reading"
)

const withAttributes = `
apiVersion: celset.dev/v1alpha1
kind: DeviceAttributes
metadata: {name: a}
spec:
  driver: d.example.com
  table:
    key: name
    rows:
    - {key: x, values: {row: {int: 7}}}
---
apiVersion: celset.dev/v1alpha1
kind: DeviceAttributes
metadata: {name: broken}
spec:
  driver: d.example.com
  attributes:
  - {name: rack, expression: "node.lables['rack']"}
---
apiVersion: celset.dev/v1alpha1
kind: DeviceAttributes
metadata: {name: other}
spec:
  driver: d.example.com
  nodeSelector: {matchLabels: {rack: r1}}
  table:
    key: name
    rows:
    - {key: x, values: {row: {int: 8}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s}
spec:
  driver: d.example.com
  nodeName: node-n
  pool: {name: node-n, generation: 1, resourceSliceCount: 1}
  devices: [{name: x}, {name: z}]
`

func readText(t *testing.T, text string) *clusterstate.Objects {
	t.Helper()
	objects, err := reading.Files(resource.FilenameOptions{Filenames: []string{"-"}}, strings.NewReader(text), "default")
	require.NoError(t, err)
	return objects
}

func TestEnrich(t *testing.T) {
	objects := readText(t, withAttributes)
	require.Empty(t, objects.Ignored)
	plain := objects.Slices[0]
	require.NoError(t, objects.Enrich(t.Context()))
	require.EqualValues(t, 7, *objects.Slices[0].Spec.Devices[0].Attributes["topology.celset.dev/row"].IntValue)
	require.Empty(t, plain.Spec.Devices[0].Attributes, "what was read is not changed")
	require.Equal(t, []string{"DeviceAttributes other: spec.nodeSelector selects no device, because no Node was read: add Nodes with -f"}, objects.Warnings)
	from, ok := objects.Origin("d.example.com", "node-n", "x", "topology.celset.dev/row")
	require.True(t, ok)
	require.Equal(t, "a", from)
	_, ok = objects.Origin("d.example.com", "node-n", "z", "topology.celset.dev/row")
	require.False(t, ok)

	// With the node, two objects contradict each other.
	objects = readText(t, withAttributes+"---\napiVersion: v1\nkind: Node\nmetadata: {name: node-n, labels: {rack: r1}}\n")
	require.NoError(t, objects.Enrich(t.Context()))
	require.Empty(t, objects.Slices[0].Spec.Devices[0].Attributes)
	require.Empty(t, objects.Warnings)
	objects.WarnOfAttributes()
	require.Len(t, objects.Warnings, 3)
	require.Equal(t, "DeviceAttributes a: another object defines 1 attributes differently, so no device gets them, such as topology.celset.dev/row on d.example.com/node-n/x by DeviceAttributes other", objects.Warnings[0])
	require.Contains(t, objects.Warnings[1], "DeviceAttributes broken has no effect: InvalidExpression: spec.attributes[0].expression of attribute rack: ")
	state := clusterstate.New(objects)
	require.Len(t, state.Checkable(), 3)
}

// TestAgeOfFiles checks that a file displaces no object of the cluster, unless it updates an older one. The scheduler accepts 64
// objects, the oldest ones.
func TestAgeOfFiles(t *testing.T) {
	attributes := func(name string, created int64) *v1alpha1.DeviceAttributes {
		of := &v1alpha1.DeviceAttributes{Spec: v1alpha1.DeviceAttributesSpec{
			Driver: "d.example.com", Attributes: []v1alpha1.ComputedAttribute{{Name: "x", Expression: "1"}},
		}}
		of.Name = name
		if created > 0 {
			of.CreationTimestamp = metav1.Unix(created, 0)
		}
		return of
	}
	inCluster, inFiles := &clusterstate.Objects{}, &clusterstate.Objects{}
	for i := range v1alpha1.MaxDeviceAttributes {
		inCluster.Attributes = append(inCluster.Attributes, attributes(fmt.Sprint("stored-", i), int64(1+i)))
	}
	inFiles.Attributes = []*v1alpha1.DeviceAttributes{attributes("stored-0", 0), attributes("a-new-one", 0)}
	objects := inCluster.Overlay(inFiles)
	require.NoError(t, objects.Enrich(t.Context()))
	for _, report := range objects.Added.Objects {
		if report.Object.Name == "a-new-one" {
			require.NotNil(t, report.Rejection)
			continue
		}
		require.Nil(t, report.Rejection, report.Object.Name)
	}
	require.True(t, inFiles.Attributes[0].CreationTimestamp.IsZero(), "what was read is not changed")
}

func TestEnrichNothing(t *testing.T) {
	slice := &resourceapi.ResourceSlice{}
	objects := &clusterstate.Objects{Slices: []*resourceapi.ResourceSlice{slice}}
	require.NoError(t, objects.Enrich(t.Context()))
	require.Same(t, slice, objects.Slices[0])
	require.Nil(t, objects.Added)
	objects.WarnOfAttributes()
	require.Empty(t, objects.Warnings)
	_, ok := objects.Origin("d", "p", "x", "a/b")
	require.False(t, ok)
}

func TestAttributesAreStrict(t *testing.T) {
	_, err := reading.Files(resource.FilenameOptions{Filenames: []string{"-"}}, strings.NewReader(strings.Replace(withAttributes, "driver:", "drivers:", 1)), "default")
	require.ErrorContains(t, err, `DeviceAttributes a: strict decoding error: unknown field "spec.drivers"`)
	objects := readText(t, "apiVersion: celset.dev/v1\nkind: DeviceAttribute\nmetadata: {name: a}\n")
	require.Contains(t, objects.Warnings[0], `did you mean kind "DeviceAttributes" in apiVersion "celset.dev/v1alpha1"?`)
}

// TestReadAttributes reads from an API server with and without the kind, and with and without the right to list it.
func TestReadAttributes(t *testing.T) {
	list := `{"apiVersion": "celset.dev/v1alpha1", "kind": "DeviceAttributesList", "items": [{"metadata": {"name": "a"}, "spec": {"driver": "d"}}]}`
	for name, c := range map[string]struct {
		listing, discovery int
		names              []string
		warns, fails       bool
	}{
		"kind":                 {listing: http.StatusOK, names: []string{"a"}},
		"no kind":              {listing: http.StatusNotFound},
		"no right":             {listing: http.StatusForbidden, discovery: http.StatusOK, warns: true},
		"no kind and no right": {listing: http.StatusForbidden, discovery: http.StatusNotFound},
		"failure":              {listing: http.StatusInternalServerError, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				code := c.discovery
				if strings.HasSuffix(r.URL.Path, "/deviceattributes") {
					code = c.listing
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(code)
				if code == http.StatusOK {
					_, _ = w.Write([]byte(list))
					return
				}
				reason := map[int]metav1.StatusReason{http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusNotFound: metav1.StatusReasonNotFound}[code]
				_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Code: int32(code), Reason: reason, Status: metav1.StatusFailure})
			}))
			defer server.Close()
			client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
			require.NoError(t, err)
			objects := &clusterstate.Objects{}
			err = reading.AddAttributes(t.Context(), objects, client.Discovery().RESTClient())
			if c.fails {
				require.ErrorContains(t, err, "list DeviceAttributes: ")
				return
			}
			require.NoError(t, err)
			var names []string
			for _, object := range objects.Attributes {
				names = append(names, object.Name)
			}
			require.Equal(t, c.names, names)
			require.Equal(t, c.warns, len(objects.Warnings) == 1)
			if c.warns {
				require.Contains(t, objects.Warnings[0], "list DeviceAttributes: ")
				require.Contains(t, objects.Warnings[0], "devices are shown without the attributes of such objects")
			}
		})
	}
}
