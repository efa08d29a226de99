// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"pgregory.net/rapid"
)

func filtered(t require.TestingT, text string) string {
	result, err := io.ReadAll(&filter{body: io.NopCloser(strings.NewReader(text))})
	require.NoError(t, err)
	inPieces, err := io.ReadAll(&filter{body: io.NopCloser(iotest.OneByteReader(strings.NewReader(text)))})
	require.NoError(t, err)
	require.Equal(t, string(result), string(inPieces), "it does not matter in which pieces it arrives")
	return string(result)
}

func TestHarmfulAmountsAreReplaced(t *testing.T) {
	for _, amount := range []string{
		`"11111111111111111111e2000000"`, `11111111111111111111e2000000`, `"1e100"`, `"1e-100"`, `"-1e100"`, `"1e400.5"`, `"1e1.5"`, `"1e.5"`,
		`"1e99999999999"`, `"..1"`, `""`, `"x"`, `"1\u0065999"`, `true`, `"1 "`, `"` + strings.Repeat("1", 41) + `"`, `"` + strings.Repeat("1", 10000) + `e9999"`,
	} {
		for _, key := range []string{"capacity", "allocatable"} {
			text := fmt.Sprintf(`{"items":[{"status":{"%s":{"cpu":%s,"memory" : %s , "x":"1Gi"},"a":1}}]}`, key, amount, amount)
			want := fmt.Sprintf(`{"items":[{"status":{"%s":{"cpu":"-1","memory" : "-1" , "x":"1Gi"},"a":1}}]}`, key)
			require.Equal(t, want, filtered(t, text))
		}
	}
}

func TestAllElseIsLeft(t *testing.T) {
	for _, text := range []string{
		`{"capacity":{"cpu":"4","memory":"16Gi","a":1,"b":1.5,"c":"1e3","d":"1E","e":"9223372036854775807","f":null,"g":"100m","h":"-5","i":"+1E+2","j":"1.5Ki","k":".5","l":"1n","m":"2u"}}`,
		`{"annotations":{"capacity":"1e999","allocatable":"1e999","x":"{\"capacity\":{\"cpu\":\"1e999\"}}"}}`,
		`{"labels":{"cpu":"1e999"},"f:capacity":{"f:cpu":{}},"list":["capacity",{"cpu":"1e999"}],"xcapacity":{"a":"1e999"}}`,
		`{"capacity":[{"cpu":"1e999"}],"allocatable":null,"a":"1e999"}`,
		`{"capacity":{},"a":"1e999"}`, `{"capacity":{"a":{"b":"1e999"},"c":["1e999"]},"d":"1e999"}`,
		"{\"capacity\" : { }\n}\n{\"type\":\"ADDED\"}\n", ``, `"`, `{"capacity":{"cpu":"1`, `nonsense]]}}}`,
	} {
		if text == `{"capacity":{"cpu":"1` {
			require.Equal(t, `{"capacity":{"cpu":`, strings.TrimSuffix(strings.TrimSuffix(filtered(t, text), `"1`), `"-1"`))
			continue
		}
		require.Equal(t, text, filtered(t, text))
	}
}

// Whatever clusters report can be decoded, and what is no amount is as it was.
func TestFilteredClustersCanBeDecoded(t *testing.T) {
	value := rapid.OneOf(
		rapid.StringMatching(`[+-]?([0-9]{1,25}(\.[0-9]{0,25})?|\.[0-9]{1,25})([KMGTPE]i|[numkMGTPE]|[eE][+-]?([0-9]{1,9}(\.[0-9]?)?|\.[0-9]))?`),
		rapid.StringMatching(`[0-9.eE+-]{0,12}`), rapid.String(),
	)
	rapid.Check(t, func(t *rapid.T) {
		amounts := rapid.MapOfN(rapid.String(), value, 0, 4)
		text, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"annotations": rapid.MapOfN(rapid.String(), rapid.String(), 0, 3).Draw(t, "annotations")},
			"status":   map[string]any{"capacity": amounts.Draw(t, "capacity"), "allocatable": amounts.Draw(t, "allocatable"), "clusterClaims": []any{map[string]string{"name": "capacity", "value": rapid.String().Draw(t, "claim")}}},
		})
		require.NoError(t, err)
		var got, before clusterv1.ManagedCluster
		require.NoError(t, json.Unmarshal([]byte(filtered(t, string(text))), &got), "%s", text)
		harmlessText := filtered(t, string(text))
		require.Equal(t, harmlessText, filtered(t, harmlessText))
		var plain struct {
			Metadata struct{ Annotations map[string]string }
			Status   struct {
				ClusterClaims []clusterv1.ManagedClusterClaim
			}
		}
		require.NoError(t, json.Unmarshal(text, &plain))
		before.Annotations, before.Status.ClusterClaims = plain.Metadata.Annotations, plain.Status.ClusterClaims
		require.Equal(t, before.Status.ClusterClaims, got.Status.ClusterClaims)
		require.Equal(t, len(before.Annotations), len(got.Annotations))
		for key, value := range before.Annotations {
			require.Equal(t, value, got.Annotations[key])
		}
	})
}

func FuzzFilter(f *testing.F) {
	f.Add(`{"capacity":{"cpu":"1e999","x":1e5}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var got any
		if json.Unmarshal([]byte(text), &got) == nil {
			require.NoError(t, json.Unmarshal([]byte(filtered(t, text)), &got))
		}
	})
}

// Only answers with ManagedClusters are looked at, and those of a watch as they come.
func TestGuard(t *testing.T) {
	const body = `{"status":{"capacity":{"cpu":"1e999"}}}`
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
	for path, replaced := range map[string]bool{
		"/apis/cluster.open-cluster-management.io/v1/managedclusters?type=application/json":                 true,
		"/prefix/apis/cluster.open-cluster-management.io/v1/managedclusters/a?type=application/json":        true,
		"/apis/cluster.open-cluster-management.io/v1/managedclusters/a/status?type=application/json":        true,
		"/apis/cluster.open-cluster-management.io/v1/managedclusters?type=application/json%3Bcharset=utf-8": true,
		"/apis/cluster.open-cluster-management.io/v1/managedclusters?type=text/plain":                       false,
		"/apis/cluster.open-cluster-management.io/v1beta2/managedclustersets?type=application/json":         false,
		"/api/v1/nodes?type=application/json":                                                               false,
	} {
		response := get(path)
		var got bytes.Buffer
		_, err := got.ReadFrom(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, replaced, strings.Contains(got.String(), `"-1"`), path)
		require.Equal(t, !replaced, got.String() == body, path)
	}
	response := get("/apis/cluster.open-cluster-management.io/v1/managedclusters?watch&type=application/json")
	event := make([]byte, len(`{"status":{"capacity":{"cpu":"-1"}}}`))
	_, err = io.ReadFull(response.Body, event)
	require.NoError(t, err)
	require.Equal(t, `{"status":{"capacity":{"cpu":"-1"}}}`, string(event))
	close(release)
	require.NoError(t, response.Body.Close())
	client.CloseIdleConnections()
}

func BenchmarkFilter(b *testing.B) {
	text := strings.Repeat(`{"metadata":{"name":"cluster","labels":{"region":"eu-west","cloud":"Amazon"}},"status":{"capacity":{"cpu":"4","memory":"16Gi"}}},`, 1000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := io.Copy(io.Discard, &filter{body: io.NopCloser(strings.NewReader(text))}); err != nil {
			b.Fatal(err)
		}
	}
}
