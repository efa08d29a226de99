// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-base/metrics/testutil"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
)

const (
	// fleetPatience is the limit for steps that take minutes on a small machine. For example, 20,000 clusters need 80,000
	// requests.
	fleetPatience = 15 * time.Minute
	// fleetChanges is the number of clusters that the test changes, one after the other.
	fleetChanges = 40
)

// fleetSize returns the numbers of clusters and Placements in the environment variable CELSET_FLEET, such as 20000/500.
func fleetSize(t *testing.T) (clusters, placements int) {
	t.Helper()
	text := os.Getenv("CELSET_FLEET")
	if text == "" {
		t.Skip("it takes minutes: make fleet")
	}
	_, err := fmt.Sscanf(text, "%d/%d", &clusters, &placements)
	require.NoError(t, err, "CELSET_FLEET is a number of clusters and one of Placements, such as 20000/500")
	return clusters, placements
}

// TestFleet runs celset-placement in its own process with many Placements and clusters: the first decisions, a change of one
// cluster, and a restart. A cluster that stays selected must always be in some PlacementDecision. The test logs durations but
// does not check them.
func TestFleet(t *testing.T) {
	clusters, placements := fleetSize(t)
	binary, h := build(t), newHub(t, controlplane.Options{})
	began := time.Now()
	h.join(t, 0, clusters)
	h.score(t, clusters)
	evaluated := map[string]bool{}
	for i := range placements {
		kind := kindsOfPlacements[i%len(kindsOfPlacements)]
		name := fmt.Sprintf("%s-%d", kind.name, i/len(kindsOfPlacements))
		h.place(t, name, kind.spec(i/len(kindsOfPlacements)))
		// Only a Placement of these kinds selects a cluster without regard to other clusters.
		evaluated[name] = kind.name == "label" || kind.name == "claim"
	}
	t.Logf("%d clusters and scores, %d Placements made in %v", clusters, placements, time.Since(began).Round(time.Second))

	o := h.observe(t)
	p := h.startMeasured(t, binary)
	t.Logf("from nothing to all decisions written: %v", p.decided(t, placements).Round(10*time.Millisecond))
	objects := o.catchUp(t)
	t.Logf("%d PlacementDecisions, %d clusters in them", len(o.versions()), total(objects))
	p.logMemory(t, clusters)

	// For these Placements, expect all selected clusters to stay, except the clusters that the test changes.
	changed := sets.New[string]()
	for i := range fleetChanges {
		changed.Insert(nameOf(fleetIndex(i, clusters)))
	}
	expected := map[string]sets.Set[string]{}
	for name, selected := range objects {
		if evaluated[name] {
			expected[name] = selected.Difference(changed)
		}
	}
	o.expect(expected)

	// PlacementDecisions are slices of one list sorted by name, as in Open Cluster Management. If a cluster is added to the
	// list or removed, all slices after its position change.
	for end, where := range []string{"first", "last"} {
		var took []time.Duration
		before := o.count()
		for i := end; i < fleetChanges; i += 2 {
			took = append(took, h.settle(t, o, fleetIndex(i, clusters), fmt.Sprintf("eu-central-%d", (i/2+1)%4)))
		}
		slices.Sort(took)
		t.Logf("the region of one of the %s clusters changes, %d times: settled after %v in the middle, %v at most; %d PlacementDecisions are written each time",
			where, len(took), took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond), (o.count()-before)/len(took))
	}

	o.catchUp(t)
	before := o.versions()
	p.kill()
	p = h.startMeasured(t, binary)
	t.Logf("from the start of the process to all decisions verified: %v", p.decided(t, placements).Round(10*time.Millisecond))
	o.requireStayed(t, o.catchUp(t))
	require.Equal(t, before, o.versions(), "nothing had to be written")
	p.logMemory(t, clusters)
	h.requireSettled(t)
}

// fleetIndex returns the index of the i-th cluster to change. It alternates between the beginning and the end of the list of
// clusters.
func fleetIndex(i, clusters int) int {
	if i%2 == 0 {
		return i / 2 * 7
	}
	return clusters - 1 - i/2*7
}

func total(selected map[string]sets.Set[string]) int {
	n := 0
	for _, clusters := range selected {
		n += clusters.Len()
	}
	return n
}

// settle changes the region of a cluster. It returns the time until the clusters in PlacementDecisions changed for the last
// time.
func (h *hub) settle(t *testing.T, o *observer, i int, region string) time.Duration {
	t.Helper()
	object := &clusterv1.ManagedCluster{}
	require.NoError(t, h.Get(t.Context(), client.ObjectKey{Name: nameOf(i)}, object))
	if object.Labels["region"] == region {
		region = "eu-central-9"
	}
	began := time.Now()
	require.NoError(t, env.Change(t.Context(), h, object, func(c *clusterv1.ManagedCluster) { c.Labels["region"] = region }))
	require.Eventually(t, func() bool { return o.settled().After(began) }, env.Patience, time.Millisecond, "cluster %s moves", nameOf(i))
	for last := began; !last.Equal(o.settled()); {
		last = o.settled()
		time.Sleep(time.Second)
	}
	return o.settled().Sub(began)
}

// measured is a celset-placement process whose metrics the test reads.
type measured struct {
	*instance
	began time.Time
	url   string
}

func (h *hub) startMeasured(t *testing.T, binary string) *measured {
	t.Helper()
	ports, err := controlplane.FreePorts(1)
	require.NoError(t, err)
	address := "127.0.0.1:" + strconv.Itoa(ports[0])
	began := time.Now()
	return &measured{
		instance: start(t, binary, h.Kubeconfig(), "--leader-elect=false", "--kube-api-qps=1000", "--kube-api-burst=1000", "--metrics-bind-address="+address, "--metrics-secure=false"),
		began:    began, url: "http://" + address + "/metrics",
	}
}

// decided waits until the program has decided every Placement, has written the decisions, and has no work left. It returns the
// time since the start of the process.
func (p *measured) decided(t *testing.T, placements int) time.Duration {
	t.Helper()
	// The work is done when the queues are empty in two readings of the metrics in a row.
	var since time.Time
	require.Eventually(t, func() bool {
		p.running(t)
		values, err := p.values(t.Context())
		if err != nil || values["celset_placement_scheduling_duration_seconds"] < float64(placements) ||
			values["workqueue_depth"] > 0 || values["controller_runtime_active_workers"] > 0 {
			since = time.Time{}
			return false
		}
		if since.IsZero() {
			since = time.Now()
		}
		return time.Since(since) > 2*time.Second
	}, fleetPatience, 20*time.Millisecond)
	return since.Sub(p.began)
}

// values returns the value of each metric, summed over all labels. For a histogram it is the count.
func (p *measured) values(ctx context.Context) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	families, err := testutil.TextToMetricFamilies(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	values := map[string]float64{}
	for name, family := range families {
		for _, metric := range family.GetMetric() {
			values[name] += metric.GetGauge().GetValue() + metric.GetCounter().GetValue() + metric.GetUntyped().GetValue() +
				float64(metric.GetHistogram().GetSampleCount())
		}
	}
	return values, nil
}

func (p *measured) logMemory(t *testing.T, clusters int) {
	t.Helper()
	values, err := p.values(t.Context())
	require.NoError(t, err)
	resident, heap := values["process_resident_memory_bytes"], values["go_memstats_heap_inuse_bytes"]
	require.Positive(t, resident)
	t.Logf("memory: %.0f MiB resident, %.0f MiB of it heap: %.1f KiB resident for each cluster", resident/(1<<20), heap/(1<<20), resident/1024/float64(clusters))
}
