// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
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
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"pgregory.net/rapid"
	profilev1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/internal/testing/cases"
)

// at returns a resource in the API group of ManagedClusters.
func at(version, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: clusterv1.GroupName, Version: version, Resource: resource}
}

var clusters, placements, scored = at("v1", "managedclusters"), at("v1beta1", "placements"), at("v1alpha1", "addonplacementscores")

// kindsOf maps each resource to a function that makes an empty list.
var kindsOf = map[schema.GroupVersionResource]func() client.ObjectList{
	clusters:                            func() client.ObjectList { return &clusterv1.ManagedClusterList{} },
	scored:                              func() client.ObjectList { return &clusterv1alpha1.AddOnPlacementScoreList{} },
	placements:                          func() client.ObjectList { return &clusterv1beta1.PlacementList{} },
	at("v1beta1", "placementdecisions"): func() client.ObjectList { return &clusterv1beta1.PlacementDecisionList{} },
	at("v1beta2", "managedclustersets"): func() client.ObjectList { return &clusterv1beta2.ManagedClusterSetList{} },
	at("v1beta2", "managedclustersetbindings"):                      func() client.ObjectList { return &clusterv1beta2.ManagedClusterSetBindingList{} },
	profilev1alpha1.GroupVersion.WithResource("clusterprofiles"):    func() client.ObjectList { return &profilev1alpha1.ClusterProfileList{} },
	profilev1alpha1.GroupVersion.WithResource("placementdecisions"): func() client.ObjectList { return &profilev1alpha1.PlacementDecisionList{} },
}

// served is a transport that returns the same text for each request. It counts, by resource, the objects passed to observe.
type served struct {
	text     string
	inPieces bool
	observed map[string]int
}

func (s *served) RoundTrip(*http.Request) (*http.Response, error) {
	var body io.Reader = strings.NewReader(s.text)
	if s.inPieces {
		body = iotest.OneByteReader(body)
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(body)}, nil
}

// get returns the body that Guard returns for a response with this text. It requires the same body if the text arrives in small
// pieces.
func get(t require.TestingT, of schema.GroupVersionResource, path, text string) (string, map[string]int, error) {
	var results [2]string
	var observed map[string]int
	var failure error
	for i := range results {
		s := &served{text: text, inPieces: i == 1, observed: map[string]int{}}
		config := &rest.Config{Host: "http://hub", Transport: s}
		Guard(config, func(resource string) { s.observed[resource]++ })
		transport, err := rest.TransportFor(config)
		require.NoError(t, err)
		request, err := http.NewRequest(http.MethodGet, "http://hub/apis/"+of.Group+"/"+of.Version+"/"+of.Resource+path, nil)
		require.NoError(t, err)
		response, err := transport.RoundTrip(request)
		require.NoError(t, err)
		content, err := io.ReadAll(response.Body)
		require.NoError(t, response.Body.Close())
		results[i], observed, failure = string(content), s.observed, err
	}
	require.Equal(t, results[0], results[1], "it does not matter in which pieces it arrives")
	return results[0], observed, failure
}

// templates has objects of each kind with a placeholder for one value.
var templates = map[string]map[schema.GroupVersionResource]string{
	"amount": {clusters: `{"metadata":{"name":"a"},"status":{"capacity":{"cpu":%s,"x":"1Gi"},"allocatable":{"cpu":%[1]s}}}`},
	"time": {
		clusters:                            `{"metadata":{"name":"a"},"status":{"conditions":[{"lastTransitionTime":%s,"type":"a"}]}}`,
		placements:                          `{"metadata":{"name":"a"},"status":{"conditions":[{"type":"a","lastTransitionTime":%s}],"lastScoreUpdateTime":%[1]s}}`,
		scored:                              `{"metadata":{"name":"a"},"status":{"validUntil":%s}}`,
		at("v1beta2", "managedclustersets"): `{"metadata":{"name":"a"},"status":{"conditions":[{"lastTransitionTime":%s}]}}`,
		at("v1beta2", "managedclustersetbindings"): `{"metadata":{"name":"a"},"status":{"conditions":[{"lastTransitionTime":%s}]}}`,
	},
	"time in the spec": {clusters: `{"metadata":{"name":"a"},"spec":{"taints":[{"key":"a","timeAdded":%s}]},"status":{}}`},
	"int32":            {placements: `{"metadata":{"name":"a"},"spec":{"numberOfClusters":%s}}`},
	"int64":            {placements: `{"metadata":{"name":"a"},"spec":{"tolerations":[{"tolerationSeconds":%s}]}}`},
	"group":            {placements: `{"metadata":{"name":"a"},"spec":{"decisionStrategy":{"groupStrategy":{"clustersPerDecisionGroup":%s}}}}`},
}

// TestUndecodableObjectsAreLeftOut runs the commands of a file. A command names a template, and its input lines are values. The
// output shows for each value how Guard passes on an object with this value. "go test ./placement/controller -run Undecodable
// -rewrite" updates the file.
func TestUndecodableObjectsAreLeftOut(t *testing.T) {
	datadriven.RunTest(t, "testdata/guard", func(t *testing.T, d *datadriven.TestData) string {
		var lines []string
		for value := range strings.SplitSeq(d.Input, "\n") {
			for of, template := range templates[strings.ReplaceAll(d.Cmd, "-", " ")] {
				object := fmt.Sprintf(strings.ReplaceAll(template, "%s", "%[1]s"), value)
				const before, after = `{"kind":"List","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"before"}},`, `{"metadata":{"name":"after","labels":{"cpu":"1e999"}}}]}`
				list, observed, err := get(t, of, "", before+object+","+after)
				require.NoError(t, err)
				require.NoError(t, utiljson.Unmarshal([]byte(list), kindsOf[of]()))
				events, _, err := get(t, of, "?watch=true", `{"type":"ADDED","object":`+object+"}\n"+`{"type":"ERROR","object":{"kind":"Status","status":"Failure","code":410}}`)
				require.ErrorIs(t, err, nil)
				event, rest, _ := strings.Cut(events, "\n")
				require.Equal(t, `{"type":"ERROR","object":{"kind":"Status","status":"Failure","code":410}}`+"\n", rest)
				line := "passed"
				switch list {
				case before + object + "," + after:
					require.Empty(t, observed)
					require.Equal(t, `{"type":"ADDED","object":`+object+`}`, event)
				case strings.TrimSuffix(before, ",") + "," + after:
					require.Equal(t, map[string]int{of.Resource: 1}, observed)
					require.Equal(t, `{"type":"DELETED","object":{"metadata":{"name":"a"}}}`, event)
					line = "left out"
				default:
					require.Equal(t, before+`{"metadata":{"name":"a"}},`+after, list)
					require.Equal(t, map[string]int{of.Resource: 1}, observed)
					require.Equal(t, `{"type":"ADDED","object":{"metadata":{"name":"a"}}}`, event)
					line = "without status"
				}
				if line = value + ": " + line; !slices.Contains(lines, line) {
					lines = append(lines, line)
				}
			}
		}
		return strings.Join(lines, "\n")
	})
}

// TestAnswersThatAreNoLists checks responses with unusual text. Truncated text, or text that is not a list, must be an error
// for the reader, not a panic. Harmless text must stay unchanged, even if it is large or deeply nested.
func TestAnswersThatAreNoLists(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: `{}`, `{"items":null}`: `{"items":null}`, `{"items":[]}`: `{"items":[]}`,
		`{"kind":"List","items":[{"metadata":{"annotations":{"a":"` + strings.Repeat("x", 1<<20) + `"}}}]}`: "same",
		`{"items":[{"x":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}]}`:                   "same",
		`{"items":[{"x":` + strings.Repeat("[", 9998) + strings.Repeat("]", 9998) + `},{}]}`:                `{"items":[{}]}`,
		`{"items":[{"status":{"capacity":{"cpu":"` + strings.Repeat("1", 100000) + `"}}},{}]}`:              `{"items":[{},{}]}`,
	} {
		got, _, err := get(t, clusters, "", text)
		require.NoError(t, err)
		if want == "same" {
			want = text
		}
		require.Equal(t, want, got)
	}
	for _, text := range []string{"", "nonsense", "[[[", `"`, `{"items":[{"status":`, `{"items":[{}`, `{"items":[{}]`, `{"a":`} {
		_, _, err := get(t, clusters, "", text)
		require.True(t, err != nil || text == "", text)
	}
}

// drawValue draws a value that may be a quantity, a time, a number or invalid.
func drawValue() *rapid.Generator[any] {
	text := rapid.OneOf(
		rapid.StringMatching(`[+-]?([0-9]{1,25}(\.[0-9]{0,25})?|\.[0-9]{1,25})([KMGTPE]i|[numkMGTPE]|[eE][+-]?([0-9]{1,9}(\.[0-9]?)?|\.[0-9]))?`),
		rapid.StringMatching(`(19|20|00)[0-9]{2}-[01][0-9]-[0-3][0-9][tT ][0-2][0-9]:[0-5][0-9]:[0-6][0-9]([.x][0-9]{1,9})?([zZ]|[+-][0-9]{2}:[0-9]{2}|ZTx)`),
		rapid.String(),
	)
	return rapid.OneOf(rapid.Map(text, func(s string) any { return s }), rapid.Map(rapid.Float64(), func(f float64) any { return f }),
		rapid.Map(rapid.Int64(), func(i int64) any { return i }), rapid.Just[any](map[string]any{"a": []any{"1e999"}}))
}

// TestGuardedListsCanBeDecoded draws random objects. The filtered list must always be decodable, and must contain each
// decodable object unchanged.
func TestGuardedListsCanBeDecoded(t *testing.T) {
	resources := slices.SortedFunc(maps.Keys(kindsOf), func(a, b schema.GroupVersionResource) int { return strings.Compare(a.String(), b.String()) })
	cases.Check(t, func(t *rapid.T) {
		of := rapid.SampledFrom(resources).Draw(t, "resource")
		var objects []string
		for i := range rapid.IntRange(0, 3).Draw(t, "objects") {
			value := drawValue().Draw(t, "value")
			object := map[string]any{"metadata": map[string]any{"name": fmt.Sprint("n", i)}}
			for _, field := range []string{"spec", "status"} {
				if rapid.Bool().Draw(t, field) {
					object[field] = rapid.SampledFrom([]any{
						map[string]any{"capacity": map[string]any{"cpu": value}}, map[string]any{"validUntil": value}, map[string]any{"decisions": value},
						map[string]any{"conditions": []any{map[string]any{"lastTransitionTime": value, "observedGeneration": value}}},
						map[string]any{"taints": []any{map[string]any{"timeAdded": value}}}, map[string]any{"numberOfClusters": value}, value,
					}).Draw(t, "content")
				}
			}
			text, err := json.Marshal(object)
			require.NoError(t, err)
			objects = append(objects, string(text))
		}
		result, _, err := get(t, of, "", `{"items":[`+strings.Join(objects, ",")+`]}`)
		require.NoError(t, err)
		require.NoError(t, utiljson.Unmarshal([]byte(result), kindsOf[of]()), result)
		for _, object := range objects {
			alone := `{"items":[` + object + `]}`
			if checkAmounts([]byte(object)) == nil && utiljson.Unmarshal([]byte(alone), kindsOf[of]()) == nil {
				require.Contains(t, result, object)
			}
		}
		again, observed, err := get(t, of, "", result)
		require.NoError(t, err)
		require.Equal(t, result, again)
		require.Empty(t, observed)
	})
}

func FuzzGuard(f *testing.F) {
	f.Add(`{"items":[{"status":{"capacity":{"cpu":"1e999","x":1e5},"conditions":[{"lastTransitionTime":"x"}]}}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		if result, _, err := get(t, clusters, "", text); err == nil && text != "" {
			require.True(t, json.Valid([]byte(result)), result)
		}
	})
}

// TestGuard checks that Guard filters only responses with objects that the controller reads, and that it passes on each event
// of a watch as soon as the event arrives.
func TestGuard(t *testing.T) {
	const body = `{"metadata":{"name":"a"},"status":{"capacity":{"cpu":"1e999"},"validUntil":"x","conditions":[{"lastTransitionTime":"x"}]}}`
	const without = `{"metadata":{"name":"a"}}`
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Content-Type", request.URL.Query().Get("type"))
		if request.URL.Query().Has("code") {
			w.WriteHeader(http.StatusNotFound)
		}
		if !request.URL.Query().Has("watch") {
			fmt.Fprint(w, body)
			return
		}
		fmt.Fprint(w, `{"type":"ADDED","object":`+body+`}`)
		w.(http.Flusher).Flush()
		<-release
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL}
	Guard(config, nil)
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	do := func(method, path string) *http.Response {
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
		require.NoError(t, err)
		response, err := client.Do(request)
		require.NoError(t, err)
		return response
	}
	const group = "/apis/cluster.open-cluster-management.io/"
	for request, want := range map[string]string{
		"GET " + group + "v1/managedclusters/a?type=application/json":                              without,
		"GET /prefix" + group + "v1/managedclusters/a?type=application/json":                       without,
		"PATCH " + group + "v1/managedclusters/a/status?type=application/json":                     without,
		"POST " + group + "v1/managedclusters?type=application/json%3Bcharset=utf-8":               without,
		"GET " + group + "v1beta2/managedclustersets/a?type=application/json":                      without,
		"GET " + group + "v1beta1/namespaces/placements/placements/a/status?type=application/json": without,
		"GET " + group + "v1alpha1/namespaces/a/addonplacementscores/a?type=application/json":      without,
		"GET " + group + "v1/managedclusters/a?code&type=application/json":                         body,
		"DELETE " + group + "v1/managedclusters/a?type=application/json":                           body,
		"GET " + group + "v1/managedclusters/a?type=text/plain":                                    body,
		"GET " + group + "v1?type=application/json":                                                body,
		"GET /apis/other.example.com/v1/managedclusters/a?type=application/json":                   body,
		"GET /api/v1/nodes/a?type=application/json":                                                body,
		"GET /?type=application/json":                                                              body,
	} {
		method, path, _ := strings.Cut(request, " ")
		response := do(method, path)
		got, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, want, string(got), request)
	}
	response := do(http.MethodGet, group+"v1/managedclusters?watch&type=application/json")
	const want = `{"type":"ADDED","object":` + without + "}\n"
	event := make([]byte, len(want))
	_, err = io.ReadFull(response.Body, event)
	require.NoError(t, err)
	require.Equal(t, want, string(event))
	close(release)
	require.NoError(t, response.Body.Close())
	client.CloseIdleConnections()
}
