// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"pgregory.net/rapid"
	profilev1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/internal/testing/cases"
)

// Objects that Go can't decode, or not in hours, are stored by a real API server: amounts, times with an offset of
// a hundred hours in any kind, and sizes of groups that have no room. Without [Guard] nobody can
// list a kind that has one; with it, one stands in nobody's way, and means no more than an
// object that ended long ago.
func TestUnreadableObjectsOnAHub(t *testing.T) {
	const unreadable = "2024-01-01T00:00:00+99:99"
	f := newFleet(t)
	scheme := runtime.NewScheme()
	must(t, AddToScheme(scheme))
	unguarded, err := client.New(f.RESTConfig(), client.Options{Scheme: scheme})
	must(t, err)
	patch := func(object client.Object, list client.ObjectList, subresource bool, text string) {
		t.Helper()
		object = object.DeepCopyObject().(client.Object)
		patch := client.RawPatch(types.MergePatchType, []byte(text))
		if subresource {
			must(t, f.Status().Patch(t.Context(), object, patch))
		} else {
			must(t, f.Patch(t.Context(), object, patch))
		}
		require.Error(t, unguarded.List(t.Context(), list))
		must(t, f.List(t.Context(), list))
	}
	const condition = `{"status":{"conditions":[{"type":"x","status":"True","reason":"x","message":"","lastTransitionTime":"` + unreadable + `"}]}}`

	tainted, scored, reporting := f.join(t, "tainted", nil), f.join(t, "scored", nil), f.join(t, "reporting", nil)
	patch(tainted, &clusterv1.ManagedClusterList{}, false, `{"spec":{"taints":[{"key":"x","effect":"NoSelect","timeAdded":"`+unreadable+`"}]}}`)
	patch(reporting, &clusterv1.ManagedClusterList{}, true, condition)
	for _, amount := range []string{"11111111111111111111e2000000", "1e400.5", "1e16000000"} {
		must(t, f.Status().Patch(t.Context(), reporting, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":{"capacity":{"cpu":%q},"allocatable":{"cpu":%[1]q}}}`, amount))))
	}
	set := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: f.name}}
	patch(set, &clusterv1beta2.ManagedClusterSetList{}, true, condition)
	binding := &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: f.name, Name: f.name}}
	patch(binding, &clusterv1beta2.ManagedClusterSetBindingList{}, true, condition)
	f.create(t, namespaceOf(scored))
	score := &clusterv1alpha1.AddOnPlacementScore{ObjectMeta: metav1.ObjectMeta{Namespace: scored.Name, Name: "room"}}
	f.create(t, score)
	patch(score, &clusterv1alpha1.AddOnPlacementScoreList{}, true, `{"status":{"scores":[{"name":"free","value":50}],"validUntil":"`+unreadable+`"}}`)
	grouped := f.place(t, "grouped")
	f.requireSelected(t, grouped, "reporting", "scored")
	patch(grouped, &clusterv1beta1.PlacementList{}, false, `{"spec":{"decisionStrategy":{"groupStrategy":{"clustersPerDecisionGroup":99999999999}}}}`)
	patch(grouped, &clusterv1beta1.PlacementList{}, true, condition)

	t.Run("the objects", func(t *testing.T) {
		tolerant := f.place(t, "tolerant")
		change(t, f, tolerant, func(p *clusterv1beta1.Placement) {
			p.Spec.Tolerations = []clusterv1beta1.Toleration{{Key: "x", Operator: clusterv1beta1.TolerationOpExists, TolerationSeconds: ptr.To[int64](1 << 30)}}
		})
		f.requireCondition(t, tolerant, clusterv1beta1.PlacementConditionSatisfied, "True AllDecisionsScheduled")
		f.requireSelected(t, tolerant, "reporting", "scored")
		valid := f.place(t, "valid", `managedCluster.metadata.name.endsWith("-reporting") && managedCluster.status.allocatable.cpu == "-1" || managedCluster.scores("room").exists(s, s.value > 10)`)
		f.requireSelected(t, valid, "reporting")
		f.join(t, "new", nil)
		f.requireSelected(t, grouped, "new", "reporting", "scored")
	})
	t.Run("others", func(t *testing.T) {
		other := newFleet(t)
		other.join(t, "a", nil)
		other.requireSelected(t, other.place(t, "p"), "a")
	})
	t.Run("a restart", func(t *testing.T) {
		config := f.RESTConfig()
		Guard(config)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		informers, err := cache.New(config, cache.Options{Scheme: scheme})
		must(t, err)
		done := make(chan error, 1)
		go func() { done <- informers.Start(ctx) }()
		for _, object := range []client.Object{tainted, set, binding, score, grouped} {
			_, err := informers.GetInformer(ctx, object)
			must(t, err)
		}
		cancel()
		must(t, <-done)
	})
}

// clusters, placements and scores are the answers with objects of a kind.
var (
	clusters   = at("v1", "managedclusters")
	placements = at("v1beta1", "placements")
	scored     = at("v1alpha1", "addonplacementscores")
)

func at(version, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: clusterv1.GroupName, Version: version, Resource: resource}
}

func filtered(t require.TestingT, of schema.GroupVersionResource, text string) string {
	root := answers()[of]
	require.NotNil(t, root)
	result, err := io.ReadAll(newFilter(io.NopCloser(strings.NewReader(text)), root))
	require.NoError(t, err)
	inPieces, err := io.ReadAll(newFilter(io.NopCloser(iotest.OneByteReader(strings.NewReader(text))), root))
	require.NoError(t, err)
	require.Equal(t, string(result), string(inPieces), "it does not matter in which pieces it arrives")
	return string(result)
}

// around are the places of an object in what the API server answers.
var around = []string{`%s`, `{"kind":"List","metadata":{"resourceVersion":"1"},"items":[{},%s,{"a":[]}]}`, `{"type":"ADDED","object":%s}` + "\n" + `{"type":"DELETED","object":%[1]s}`}

// templates are objects with a place for a value.
var templates = map[string]map[schema.GroupVersionResource]string{
	"capacity":    {clusters: `{"status":{"capacity":{"cpu":%s,"x":"1Gi"},"a":1}}`},
	"allocatable": {clusters: `{"status":{"allocatable":{"cpu":"1","memory" : %s },"a":1}}`},
	"time": {
		clusters:                            `{"spec":{"taints":[{"key":"a","timeAdded":%s}]},"status":{"conditions":[{"lastTransitionTime": %[1]s ,"type":"a"}]}}`,
		placements:                          `{"status":{"conditions":[{"type":"a","lastTransitionTime":%s}],"lastScoreUpdateTime":%[1]s}}`,
		scored:                              `{"metadata":{"name":"a","managedFields":[{"fieldsV1":{"f:a":{}},"time":%s}]},"status":{"validUntil":%[1]s}}`,
		at("v1beta2", "managedclustersets"): `{"status":{"conditions":[{"lastTransitionTime":%s}]}}`,
		at("v1beta2", "managedclustersetbindings"): `{"status":{"conditions":[{"lastTransitionTime":%s}]}}`,
		at("v1beta1", "placementdecisions"):        `{"metadata":{"creationTimestamp":%s,"deletionTimestamp":%[1]s}}`,
	},
	"int32": {placements: `{"spec":{"numberOfClusters":%s},"a":1}`},
	"int64": {placements: `{"spec":{"tolerations":[{"tolerationSeconds":%s}]},"status":{"conditions":[{"observedGeneration":%[1]s}]}}`},
	"group": {placements: `{"spec":{"decisionStrategy":{"groupStrategy":{"clustersPerDecisionGroup":%s}}}}`},
}

// The file has values, each after the name of a template, and what takes their place in every object and answer. What is
// said of clusters is a whole object. "go test ./placement/controller -run Harmful -rewrite" writes the file anew.
func TestHarmfulValuesAreReplaced(t *testing.T) {
	datadriven.RunTest(t, "testdata/guard", func(t *testing.T, d *datadriven.TestData) string {
		var lines []string
		for value := range strings.SplitSeq(d.Input, "\n") {
			if d.Cmd == "cluster" {
				lines = append(lines, filtered(t, clusters, value))
				continue
			}
			got := map[string]bool{}
			for of, object := range templates[d.Cmd] {
				for _, around := range around {
					place := strings.ReplaceAll(fmt.Sprintf(around, object), "%s", "%[1]s")
					before, after, _ := strings.Cut(place, "%[1]s")
					after, _, _ = strings.Cut(after, "%[1]s")
					result := filtered(t, of, fmt.Sprintf(place, value))
					with, _, _ := strings.Cut(strings.TrimPrefix(result, before), after)
					require.Equal(t, fmt.Sprintf(place, with), result, "all else is left")
					got[with] = true
				}
			}
			lines = append(lines, strings.Join(slices.Sorted(maps.Keys(got)), " or "))
		}
		return strings.Join(lines, "\n")
	})
}

func TestLongValuesAreReplaced(t *testing.T) {
	const amount, moment = `{"status":{"capacity":{"cpu":%s}}}`, `{"status":{"conditions":[{"lastTransitionTime":%s}]}}`
	for value, object := range map[string]string{
		`"` + strings.Repeat("1", 41) + `"`: amount, `"` + strings.Repeat("1", 10000) + `e9999"`: amount, `"2024-01-01T00:00:00ZT` + strings.Repeat("x", 100000) + `"`: moment,
	} {
		want := map[string]string{amount: `"-1"`, moment: `"1970-01-01T00:00:00Z"`}[object]
		require.Equal(t, fmt.Sprintf(object, want), filtered(t, clusters, fmt.Sprintf(object, value)))
	}
	require.Equal(t, `{"spec":{"numberOfClusters":0}}`, filtered(t, placements, `{"spec":{"numberOfClusters":`+strings.Repeat("1", 1000)+`}}`))
	for _, text := range []string{`{"status` + strings.Repeat("s", 100) + `":{"capacity":{"cpu":"1e999"}}}`, strings.Repeat(`{"status":`, 10000) + strings.Repeat("}", 10000)} {
		require.Equal(t, text, filtered(t, clusters, text), "all else is left")
	}
	require.Contains(t, []string{`{"status":{"capacity":{"cpu":"1`, `{"status":{"capacity":{"cpu":"-1"`}, filtered(t, clusters, `{"status":{"capacity":{"cpu":"1`))
}

// value draws what might be in place of an amount, a time or a number.
func drawValue() *rapid.Generator[any] {
	text := rapid.OneOf(
		rapid.StringMatching(`[+-]?([0-9]{1,25}(\.[0-9]{0,25})?|\.[0-9]{1,25})([KMGTPE]i|[numkMGTPE]|[eE][+-]?([0-9]{1,9}(\.[0-9]?)?|\.[0-9]))?`),
		rapid.StringMatching(`[0-9.eE+-]{0,12}`),
		rapid.StringMatching(`(19|20|00)[0-9]{2}-[01][0-9]-[0-3][0-9][tT ][0-2][0-9]:[0-5][0-9]:[0-6][0-9]([.x][0-9]{1,9})?([zZ]|[+-][0-9]{2}:[0-9]{2}|ZTx)`),
		rapid.String(),
	)
	return rapid.OneOf(rapid.Map(text, func(s string) any { return s }), rapid.Map(rapid.Float64(), func(f float64) any { return f }), rapid.Map(rapid.Int64(), func(i int64) any { return i }))
}

// drawObject draws an object of a shape, with a value of any kind where Go wants one of its
// own, and with what has no shape.
func drawObject(t *rapid.T, of *shape) any {
	switch {
	case of == nil:
		return rapid.OneOf(drawValue(), rapid.Just[any](map[string]any{"status": map[string]any{"capacity": map[string]any{"cpu": "1e999"}}}), rapid.Just[any]([]any{"1e999", []any{}})).Draw(t, "other")
	case of.accept != nil:
		return drawValue().Draw(t, "value")
	case of.list:
		result := []any{}
		for range rapid.IntRange(0, 2).Draw(t, "length") {
			result = append(result, drawObject(t, of.elements))
		}
		return result
	case of.elements != nil:
		result := map[string]any{}
		for range rapid.IntRange(0, 2).Draw(t, "size") {
			result[rapid.String().Draw(t, "key")] = drawObject(t, of.elements)
		}
		return result
	}
	result := map[string]any{rapid.SampledFrom([]string{"annotations", "x", "\"", "capacity\\"}).Draw(t, "unknown"): drawObject(t, nil)}
	for _, name := range slices.Sorted(maps.Keys(of.fields)) {
		if rapid.Bool().Draw(t, name) {
			result[name] = drawObject(t, of.fields[name])
		}
	}
	return result
}

// plain is an object without the values of which the shape accepts some.
func plain(of *shape, value any) any {
	switch value := value.(type) {
	case []any:
		for i := range value {
			if of != nil && of.list {
				value[i] = plain(of.elements, value[i])
			}
		}
	case map[string]any:
		for name := range value {
			if of != nil && of.fields != nil {
				value[name] = plain(of.fields[name], value[name])
			} else if of != nil && !of.list && of.elements != nil {
				value[name] = plain(of.elements, value[name])
			}
		}
	default:
		if of != nil && of.accept != nil {
			return "a value"
		}
	}
	return value
}

// Whatever is stored of any kind can be decoded, and what has no shape is as it was.
func TestFilteredObjectsCanBeDecoded(t *testing.T) {
	objects := map[schema.GroupVersionResource]func() client.Object{
		clusters:                            func() client.Object { return &clusterv1.ManagedCluster{} },
		scored:                              func() client.Object { return &clusterv1alpha1.AddOnPlacementScore{} },
		placements:                          func() client.Object { return &clusterv1beta1.Placement{} },
		at("v1beta1", "placementdecisions"): func() client.Object { return &clusterv1beta1.PlacementDecision{} },
		at("v1beta2", "managedclustersets"): func() client.Object { return &clusterv1beta2.ManagedClusterSet{} },
		at("v1beta2", "managedclustersetbindings"): func() client.Object { return &clusterv1beta2.ManagedClusterSetBinding{} },
	}
	for resource, create := range map[string]func() client.Object{
		"clusterprofiles":    func() client.Object { return &profilev1alpha1.ClusterProfile{} },
		"placementdecisions": func() client.Object { return &profilev1alpha1.PlacementDecision{} },
	} {
		objects[profilev1alpha1.GroupVersion.WithResource(resource)] = create
	}
	resources := slices.SortedFunc(maps.Keys(objects), func(a, b schema.GroupVersionResource) int { return strings.Compare(a.String(), b.String()) })
	cases.Check(t, func(t *rapid.T) {
		resource := rapid.SampledFrom(resources).Draw(t, "resource")
		root := answers()[resource].fields["object"]
		require.NotNil(t, root)
		text, err := json.Marshal(drawObject(t, root))
		require.NoError(t, err)
		result := filtered(t, resource, string(text))
		var is any
		require.NoError(t, utiljson.Unmarshal([]byte(result), &is))
		known, err := json.Marshal(shaped(root, is))
		require.NoError(t, err)
		require.NoError(t, utiljson.Unmarshal(known, objects[resource]()), "%s", known)
		require.Equal(t, result, filtered(t, resource, result), "what is harmless is left")
		var was any
		require.NoError(t, utiljson.Unmarshal(text, &was))
		require.Equal(t, plain(root, was), plain(root, is))
	})
}

// shaped is what has a shape: the rest need not be of the kind.
func shaped(of *shape, value any) any {
	switch value := value.(type) {
	case []any:
		result := []any{}
		for _, element := range value {
			if of.elements != nil {
				result = append(result, shaped(of.elements, element))
			}
		}
		return result
	case map[string]any:
		result := map[string]any{}
		for name, element := range value {
			if of.fields == nil {
				result[name] = shaped(of.elements, element)
			} else if field := of.fields[name]; field != nil {
				result[name] = shaped(field, element)
			}
		}
		return result
	}
	return value
}

func FuzzFilter(f *testing.F) {
	f.Add(`{"status":{"capacity":{"cpu":"1e999","x":1e5},"conditions":[{"lastTransitionTime":"x"}]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var got any
		if json.Unmarshal([]byte(text), &got) == nil {
			require.NoError(t, json.Unmarshal([]byte(filtered(t, clusters, text)), &got))
		}
	})
}

// Only answers with objects that the controller reads are looked at, and those of a watch
// as they come.
func TestGuard(t *testing.T) {
	const body = `{"status":{"capacity":{"cpu":"1e999"},"validUntil":"x","conditions":[{"lastTransitionTime":"x"}]}}`
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Content-Type", request.URL.Query().Get("type"))
		fmt.Fprint(w, body)
		if request.URL.Query().Has("watch") {
			w.(http.Flusher).Flush()
			<-release
		}
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL}
	Guard(config)
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	get := func(path string) *http.Response {
		response, err := client.Get(server.URL + path)
		require.NoError(t, err)
		return response
	}
	const amount, moment = `"-1"`, `"1970-01-01T00:00:00Z"`
	for path, replaced := range map[string][]string{
		"/apis/cluster.open-cluster-management.io/v1/managedclusters?type=application/json":                                {amount, moment},
		"/prefix/apis/cluster.open-cluster-management.io/v1/managedclusters/a?type=application/json":                       {amount, moment},
		"/apis/cluster.open-cluster-management.io/v1/managedclusters/a/status?type=application/json":                       {amount, moment},
		"/apis/cluster.open-cluster-management.io/v1/managedclusters?type=application/json%3Bcharset=utf-8":                {amount, moment},
		"/apis/cluster.open-cluster-management.io/v1/managedclusters?type=text/plain":                                      nil,
		"/apis/cluster.open-cluster-management.io/v1beta2/managedclustersets?type=application/json":                        {moment},
		"/apis/cluster.open-cluster-management.io/v1beta1/namespaces/a/placements?type=application/json":                   {moment},
		"/apis/cluster.open-cluster-management.io/v1beta1/namespaces/placements/placements/a/status?type=application/json": {moment},
		"/apis/cluster.open-cluster-management.io/v1alpha1/addonplacementscores?type=application/json":                     {moment, moment},
		"/apis/cluster.open-cluster-management.io/v1?type=application/json":                                                nil,
		"/apis/other.example.com/v1/managedclusters?type=application/json":                                                 nil,
		"/api/v1/nodes?type=application/json":                                                                              nil,
		"/?type=application/json":                                                                                          nil,
	} {
		response := get(path)
		var got bytes.Buffer
		_, err := got.ReadFrom(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, slices.Contains(replaced, amount), strings.Contains(got.String(), amount), path)
		require.Equal(t, slices.Contains(replaced, moment), strings.Contains(got.String(), moment), path)
		require.Equal(t, replaced == nil, got.String() == body, path)
	}
	response := get("/apis/cluster.open-cluster-management.io/v1/managedclusters?watch&type=application/json")
	const want = `{"status":{"capacity":{"cpu":"-1"},"validUntil":"x","conditions":[{"lastTransitionTime":"1970-01-01T00:00:00Z"}]}}`
	event := make([]byte, len(want))
	_, err = io.ReadFull(response.Body, event)
	require.NoError(t, err)
	require.Equal(t, want, string(event))
	close(release)
	require.NoError(t, response.Body.Close())
	client.CloseIdleConnections()
}
