// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package celsetplacement

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/placement/debug"
)

// TestPage uses the debug page as a user would who asks why a Placement selects its clusters.
func TestPage(t *testing.T) {
	cases.OnlyNightly(t, "needs Chromium")
	chromium := findChromium(t)
	d, c := startDebugged(t)
	for i, name := range []string{"eu-1", "eu-2", "eu-3", "us-1", "us-2", "strange"} {
		version := fmt.Sprintf("v1.%d.0", 29+i%3)
		joined := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"region": name[:2]}}}
		require.NoError(t, c.Create(t.Context(), joined))
		joined.Status = clusterv1.ManagedClusterStatus{
			Version:     clusterv1.ManagedClusterVersion{Kubernetes: version},
			Allocatable: clusterv1.ResourceList{"cpu": *resource.NewQuantity(int64(8*(i+1)), resource.DecimalSI), "memory": resource.MustParse("64Gi")},
			Capacity:    clusterv1.ResourceList{"cpu": *resource.NewQuantity(64, resource.DecimalSI), "memory": resource.MustParse("256Gi")},
			Conditions:  []metav1.Condition{},
		}
		require.NoError(t, c.Status().Update(t.Context(), joined))
	}
	object := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "web", Annotations: map[string]string{"celset.dev/placement": "true"}}}
	object.Spec.NumberOfClusters = ptr.To[int32](2)
	object.Spec.Predicates = []clusterv1beta1.ClusterPredicate{
		{RequiredClusterSelector: clusterv1beta1.ClusterSelector{
			LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"region": "eu"}},
			CelSelector:   clusterv1beta1.ClusterCelSelector{CelExpressions: []string{`semver(managedCluster.status.version.kubernetes, true).isGreaterThan(semver("1.29.5")) && "<img src=x onerror=alert(1)>" != ""`}},
		}},
		{RequiredClusterSelector: clusterv1beta1.ClusterSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"region": "us"}}}},
	}
	object.Spec.PrioritizerPolicy.Mode = clusterv1beta1.PrioritizerPolicyModeExact
	object.Spec.PrioritizerPolicy.Configurations = []clusterv1beta1.PrioritizerConfig{{Weight: 1, ScoreCoordinate: &clusterv1beta1.ScoreCoordinate{Type: clusterv1beta1.ScoreCoordinateTypeBuiltIn, BuiltIn: "ResourceAllocatableCPU"}}}
	require.NoError(t, c.Create(t.Context(), object))
	require.Eventually(t, func() bool {
		code, body := d.call(t, http.MethodGet, "/default/web", "reader", "")
		return code == http.StatusOK && strings.Contains(body, `"us-2"`) && strings.Contains(body, "onerror")
	}, 2*time.Minute, 50*time.Millisecond, "the cache does not have it all")
	url := "https://" + d.address + debug.Path + "/"
	open := func(t *testing.T, fragment, who string) *tab {
		t.Helper()
		page := browse(t, chromium, url+fragment)
		page.fill("#token", d.tokens[who])
		return page
	}

	t.Run("asked", func(t *testing.T) {
		page := open(t, "", "reader")
		page.fill("#namespace", "default")
		page.fill("#name", "web")
		page.click("#ask button")
		page.read("#verdict", "2 of 8 clusters selected")
		for cluster, want := range map[string][]string{
			"us-2": {"selected", "matches predicate 1"}, "eu-2": {"not selected"},
			"eu-1": {"removed by Predicate", "does not match"}, "strange": {"removed by Predicate"},
		} {
			for _, text := range want {
				page.read("[data-cluster="+cluster+"]", text)
			}
		}
		page.click("#try-1")
		require.Equal(t, "2 instead of 2 clusters would be selected.\n\nAdded: eu-3, eu-2\n\nGone: us-2, us-1", page.read("#without-1", "would be selected"))
		page.click("#try-0")
		require.Equal(t, "The same 2 clusters would be selected.", page.read("#without-0", "would be selected"))
		page.shoot("placement-page-dark.png", 1000, "dark")
		page.shoot("placement-page-narrow.png", 420, "light")
		page.shoot("placement-page.png", 1000, "light")
		page.fill("#search", "eu-1")
		page.read("#clusters", "eu-1")
		page.fill("#search", "elsewhere")
		page.read("#clusters", `No cluster to choose from has "elsewhere" in its name: it is in none of the cluster sets global, or does not exist.`)
		page.read("main", `<img src=x onerror=alert(1)>`)
		require.Equal(t, url+"#default/web", page.evaluate(`location.href`), "a link has the name, and not the token")
		require.Empty(t, page.complaints)
		require.Equal(t, []string{
			"GET " + url, "GET " + url + "default/web", "GET " + url + "default/web?without=1", "GET " + url + "default/web?without=0",
		}, page.requests, "it asks this server, and nobody else")
	})
	t.Run("from a link", func(t *testing.T) {
		page := open(t, "#default/web", "reader")
		page.click("#ask button")
		page.read("#verdict", "2 of 8")
		require.Empty(t, page.complaints)
	})
	t.Run("at another time", func(t *testing.T) {
		nightly := placementOf("nightly", `now() > timestamp("2030-01-01T00:00:00Z")`)
		require.NoError(t, c.Create(t.Context(), nightly))
		require.Eventually(t, func() bool {
			code, _ := d.call(t, http.MethodGet, "/default/nightly", "reader", "")
			return code == http.StatusOK
		}, 2*time.Minute, 50*time.Millisecond)
		page := open(t, "#default/nightly", "reader")
		for _, at := range []struct{ time, where, says string }{
			{"2029-12-31T23:59:59+00:00", "#verdict", "0 of 8"},
			{"2030-01-02T00:00:00Z", "#verdict", "8 of 8"},
			{"tomorrow", "#error", `the parameter now is "tomorrow"; use a time`},
		} {
			page.fill("#at", at.time)
			page.click("#ask button")
			page.read(at.where, at.says)
		}
		require.Empty(t, page.complaints)
	})
	for who, want := range map[string]string{
		"stranger": `placements.cluster.open-cluster-management.io "web" is forbidden: user "stranger" cannot get resource "placements"`,
		"forged":   "Unauthorized: send the bearer token of a user or a service account of the hub",
	} {
		t.Run("who may not: "+who, func(t *testing.T) {
			page := open(t, "#default/web", who)
			page.click("#ask button")
			page.read("#error", want)
			require.Equal(t, []string{"GET " + url, "GET " + url + "default/web"}, page.requests)
		})
	}
	var placements clusterv1beta1.PlacementList
	require.NoError(t, c.List(t.Context(), &placements, client.InNamespace(metav1.NamespaceDefault)))
	for _, stored := range placements.Items {
		require.EqualValues(t, 1, stored.Generation, "nothing was written")
		require.Empty(t, stored.Status.Conditions, "nothing was written")
	}
}

// A tab is a page in a headless Chromium, controlled through the DevTools protocol. Its methods find elements by CSS selectors.
type tab struct {
	*testing.T
	connection *websocket.Conn
	calls      int
	// requests lists the URLs that the page requested. complaints lists its console messages and uncaught exceptions.
	requests, complaints []string
}

// findChromium returns the path of Chromium. If Chromium is not installed, it skips the test, or fails it in CI.
func findChromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") == "" {
		t.Skip("needs Chromium")
	}
	t.Fatal("needs Chromium: apt-get install chromium")
	return ""
}

// browse starts a browser for this test and opens a URL.
func browse(t *testing.T, chromium, url string) *tab {
	t.Helper()
	// t.TempDir is unsuitable, because it fails if the browser writes to its directory while the directory is removed.
	dir, err := os.MkdirTemp("", "celset-")
	require.NoError(t, err)
	// Chromium runs as root only without its sandbox. The server's certificate is self-signed.
	command := exec.CommandContext(t.Context(), chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--ignore-certificate-errors", "--remote-debugging-port=0", "--user-data-dir="+dir, "about:blank")
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Wait()
		_ = os.RemoveAll(dir)
	})
	b := &tab{T: t}
	require.Eventually(t, func() bool {
		content, err := os.ReadFile(filepath.Join(dir, "DevToolsActivePort"))
		port, _, found := strings.Cut(string(content), "\n")
		if err != nil || !found {
			return false
		}
		response, err := http.Get("http://127.0.0.1:" + port + "/json/list") //nolint:noctx // it is on this machine
		if err != nil {
			return false
		}
		defer response.Body.Close()
		var pages []struct {
			Type, WebSocketDebuggerURL string
		}
		if json.NewDecoder(response.Body).Decode(&pages) != nil || len(pages) != 1 || pages[0].Type != "page" {
			return false
		}
		b.connection, response, err = websocket.DefaultDialer.DialContext(t.Context(), pages[0].WebSocketDebuggerURL, nil)
		if err != nil {
			return false
		}
		return response.Body.Close() == nil
	}, time.Minute, 50*time.Millisecond, "%s does not start", chromium)
	t.Cleanup(func() { _ = b.connection.Close() })
	for _, domain := range []string{"Network", "Runtime", "Page"} {
		b.call(domain+".enable", nil)
	}
	b.call("Page.navigate", map[string]any{"url": url})
	b.wait(func() bool { return b.evaluate(`location.href !== "about:blank" && document.readyState`) == "complete" }, url)
	return b
}

// call calls a method of the DevTools protocol. While it waits for the response, it records the events that the page sends.
func (b *tab) call(method string, params any) json.RawMessage {
	b.Helper()
	b.calls++
	require.NoError(b, b.connection.SetReadDeadline(time.Now().Add(time.Minute)))
	require.NoError(b, b.connection.WriteJSON(map[string]any{"id": b.calls, "method": method, "params": params}))
	for {
		var message struct {
			ID     int
			Method string
			Error  any
			Result json.RawMessage
			Params struct {
				Type             string
				Request          struct{ Method, URL string }
				ExceptionDetails json.RawMessage
			}
		}
		require.NoError(b, b.connection.ReadJSON(&message), method)
		switch event := message.Params; message.Method {
		case "Network.requestWillBeSent":
			b.requests = append(b.requests, event.Request.Method+" "+event.Request.URL)
		case "Runtime.exceptionThrown":
			b.complaints = append(b.complaints, string(event.ExceptionDetails))
		case "Runtime.consoleAPICalled":
			b.complaints = append(b.complaints, "console."+event.Type)
		}
		if message.ID == b.calls {
			require.Nil(b, message.Error, "%s %v", method, params)
			return message.Result
		}
	}
}

// evaluate runs a script in the page and returns its result. Each argument, as JSON, replaces a %s in the script.
func (b *tab) evaluate(script string, args ...any) any {
	b.Helper()
	for i, arg := range args {
		encoded, err := json.Marshal(arg)
		require.NoError(b, err)
		args[i] = encoded
	}
	var answer struct {
		Result           struct{ Value any }
		ExceptionDetails any
	}
	result := b.call("Runtime.evaluate", map[string]any{"expression": fmt.Sprintf(script, args...), "returnByValue": true})
	require.NoError(b, json.Unmarshal(result, &answer))
	require.Nil(b, answer.ExceptionDetails, script)
	return answer.Result.Value
}

// fill replaces the text of a field.
func (b *tab) fill(selector, text string) {
	b.Helper()
	b.evaluate(`(() => { const e = document.querySelector(%s); e.value = ""; e.focus() })()`, selector)
	b.call("Input.insertText", map[string]any{"text": text})
}

func (b *tab) click(selector string) {
	b.Helper()
	b.evaluate(`document.querySelector(%s).click()`, selector)
}

// read waits until the element contains the text, and returns the whole text of the element.
func (b *tab) read(selector, text string) (said string) {
	b.Helper()
	b.wait(func() bool {
		said, _ = b.evaluate(`document.querySelector(%s)?.innerText`, selector).(string)
		return said != "" && strings.Contains(said, text)
	}, fmt.Sprintf("%s says %q", selector, text))
	return said
}

// wait calls so repeatedly until it returns true. It does so in the goroutine of the test, because so may end the test.
func (b *tab) wait(so func() bool, what string) {
	b.Helper()
	for deadline := time.Now().Add(time.Minute); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.Fatalf("not in time: %s; the page says:\n%s", what, b.evaluate(`document.body.innerText`))
		}
	}
}

// shoot saves a screenshot of the whole page in the directory $CELSET_PICTURES, if that is set.
func (b *tab) shoot(name string, width int, scheme string) {
	b.Helper()
	dir := os.Getenv("CELSET_PICTURES")
	if dir == "" {
		return
	}
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]string{"name": "prefers-color-scheme", "value": scheme}}})
	size := map[string]any{"width": width, "height": 700, "deviceScaleFactor": 1, "mobile": false}
	b.call("Emulation.setDeviceMetricsOverride", size)
	size["height"] = b.evaluate(`document.documentElement.scrollHeight`)
	b.call("Emulation.setDeviceMetricsOverride", size)
	var picture struct{ Data []byte }
	require.NoError(b, json.Unmarshal(b.call("Page.captureScreenshot", nil), &picture))
	require.NoError(b, os.WriteFile(filepath.Join(dir, name), picture.Data, 0o600))
}
