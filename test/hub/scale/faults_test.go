// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/faults"
)

const (
	lease  = 6 * time.Second
	outage = 9 * time.Second
	short  = 3 * time.Second
	// checkEvery is the number of faults after which the test waits until all decisions are made, and checks them.
	checkEvery = 6
)

// restarted is an instance of the program that is restarted whenever it ends. Faults are injected into its requests.
type restarted struct {
	faults *faults.Faults
	start  func() *instance

	mutex   sync.Mutex
	current *instance
	starts  int
	ended   chan struct{}
}

// startRestarted starts the program and restarts it until the context ends.
func (h *hub) startRestarted(ctx context.Context, t *testing.T, binary string, seed uint64) *restarted {
	t.Helper()
	config := h.RESTConfig()
	transport, err := rest.TransportFor(config)
	require.NoError(t, err)
	api, err := url.Parse(config.Host)
	require.NoError(t, err)
	k := &restarted{faults: faults.New(seed, transport), ended: make(chan struct{})}
	server := env.Proxy(api, k.faults)
	path := env.Kubeconfig(t, server.URL)
	k.start = func() *instance {
		return start(t, binary, path, "--leader-elect-resource-namespace="+namespace, "--kube-api-qps=1000", "--kube-api-burst=1000",
			fmt.Sprintf("--leader-elect-lease-duration=%v", lease), fmt.Sprintf("--leader-elect-renew-deadline=%v", lease*2/3), "--leader-elect-retry-period=500ms")
	}
	k.current, k.starts = k.start(), 1
	go func() {
		defer close(k.ended)
		for {
			select {
			case <-ctx.Done():
				return
			case <-k.running().done:
			}
			sleep(ctx, time.Second)
			if ctx.Err() == nil {
				k.mutex.Lock()
				k.current, k.starts = k.start(), k.starts+1
				k.mutex.Unlock()
			}
		}
	}()
	t.Cleanup(func() {
		<-k.ended
		k.running().kill()
		server.CloseClientConnections()
		server.Close()
	})
	return k
}

func (k *restarted) running() *instance {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.current
}

// pause stops the program by SIGSTOP for the duration d.
func (k *restarted) pause(ctx context.Context, d time.Duration) {
	process := k.running().command.Process
	_ = process.Signal(syscall.SIGSTOP) // fails if the process has just ended
	sleep(ctx, d)
	_ = process.Signal(syscall.SIGCONT)
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// An action causes a fault. The fault is over when run returns.
type action struct {
	name string
	// apart is set if the API server answers no request during the fault, not even requests of the test.
	apart bool
	run   func(ctx context.Context, one *restarted, all []*restarted) error
}

func (h *hub) actions() []action {
	during := func(ctx context.Context, d time.Duration, begin func(*faults.Faults), programs ...*restarted) error {
		for _, k := range programs {
			begin(k.faults)
			defer k.faults.Set(faults.Usual)
		}
		sleep(ctx, d)
		return ctx.Err()
	}
	storm := func(f *faults.Faults) { f.Set(faults.Storm) }
	paused := func(ctx context.Context, name string) error {
		p := h.Running(name)
		if err := p.Pause(); err != nil {
			return err
		}
		sleep(ctx, short)
		return p.Continue()
	}
	return []action{
		{name: "a storm of faults", run: func(ctx context.Context, _ *restarted, all []*restarted) error {
			return during(ctx, outage, storm, all...)
		}},
		{name: "a storm at one program", run: func(ctx context.Context, one *restarted, _ []*restarted) error {
			return during(ctx, outage, storm, one)
		}},
		{name: "a partition of one program", run: func(ctx context.Context, one *restarted, _ []*restarted) error {
			return during(ctx, outage, (*faults.Faults).Partition, one)
		}},
		{name: "a partition of all programs", run: func(ctx context.Context, _ *restarted, all []*restarted) error {
			return during(ctx, outage, (*faults.Faults).Partition, all...)
		}},
		{name: "a program killed", run: func(_ context.Context, one *restarted, _ []*restarted) error { one.running().kill(); return nil }},
		{name: "all programs killed", run: func(_ context.Context, _ *restarted, all []*restarted) error {
			for _, k := range all {
				k.running().kill()
			}
			return nil
		}},
		{name: "a program paused within its lease", run: func(ctx context.Context, one *restarted, _ []*restarted) error { one.pause(ctx, lease/3); return nil }},
		{name: "a program paused beyond its lease", run: func(ctx context.Context, one *restarted, _ []*restarted) error { one.pause(ctx, outage); return nil }},
		{name: "the API server killed", apart: true, run: func(ctx context.Context, _ *restarted, _ []*restarted) error { return h.RestartAPIServer(ctx, nil) }},
		{name: "the API server down for a while", apart: true, run: func(ctx context.Context, _ *restarted, _ []*restarted) error {
			return h.RestartAPIServer(ctx, func() { sleep(ctx, outage) })
		}},
		{name: "the API server paused", apart: true, run: func(ctx context.Context, _ *restarted, _ []*restarted) error {
			return paused(ctx, controlplane.KubeAPIServer)
		}},
		{name: "etcd killed", apart: true, run: func(ctx context.Context, _ *restarted, _ []*restarted) error { return h.RestartEtcd(ctx, nil) }},
		{name: "etcd paused", apart: true, run: func(ctx context.Context, _ *restarted, _ []*restarted) error { return paused(ctx, controlplane.Etcd) }},
	}
}

// TestFaults runs two instances of the program with faults. Their requests are lost, delayed or refused. The instances, the API
// server and etcd are killed, paused and disconnected. Meanwhile the test changes Placements and clusters, and another writer
// changes PlacementDecisions.
//
// A cluster that stays selected must always be in some PlacementDecision. From time to time the faults stop until all decisions
// are made. They must then equal the decisions of a new scheduler.
func TestFaults(t *testing.T) {
	text := os.Getenv("CELSET_FAULTS")
	if text == "" {
		t.Skip("it takes minutes: make faults")
	}
	duration, err := time.ParseDuration(text)
	require.NoError(t, err, "CELSET_FAULTS is how long things go wrong")
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("CELSET_FAULTS_SEED"); text != "" {
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "CELSET_FAULTS_SEED is a number")
	}
	t.Logf("CELSET_FAULTS_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 23))

	binary, h := build(t), newHub(t, controlplane.Options{})
	const clusters, cores = 260, 5
	h.join(t, 0, clusters)
	h.score(t, clusters)
	members, expected := sets.New[string](), map[string]sets.Set[string]{}
	each(t, cores, func(ctx context.Context, i int) error { return h.relabel(ctx, nameOf(50*i), core, "yes") })
	for i := range cores {
		members.Insert(nameOf(50 * i))
	}
	placements := make([]*clusterv1beta1.Placement, 20)
	for i := range placements {
		placements[i] = h.place(t, fmt.Sprintf("p%d", i), anySpec(random))
		expected[placements[i].Name] = members
	}
	o := h.observeStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	all := []*restarted{h.startRestarted(ctx, t, binary, seed), h.startRestarted(ctx, t, binary, seed+1)}
	t.Cleanup(cancel)
	h.requireSettled(t)
	o.catchUp(t)
	o.expect(expected)

	began, met, meddled, settles, longest := time.Now(), map[string]int{}, 0, 0, time.Duration(0)
	for order := []action(nil); len(order) > 0 || settles == 0 || time.Since(began) < duration; {
		if len(order) == 0 {
			order = h.actions()
			random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
		part := order[:min(checkEvery, len(order))]
		order = order[len(part):]
		for _, a := range part {
			met[a.name]++
			t.Logf("%v: %s", time.Since(began).Round(time.Second), a.name)
			for _, k := range all {
				k.faults.Set(faults.Usual)
			}
			one := all[random.IntN(len(all))]
			meddled += h.whileChanging(t, random, placements, clusters, a, func() error { return a.run(t.Context(), one, all) })
		}
		for _, k := range all {
			k.faults.Set(faults.None)
		}
		since := time.Now()
		listed := h.requireSettled(t)
		settles++
		longest = max(longest, time.Since(since))
		require.Empty(t, listed.difference(t, true), "what was selected before does not matter to these Placements")
		o.requireStayed(t, o.catchUp(t))
		t.Logf("%v: settled after %v", time.Since(began).Round(time.Second), time.Since(since).Round(time.Millisecond))
	}
	for name, n := range met {
		t.Logf("%4d times %s", n, name)
	}
	require.Positive(t, meddled)
	t.Logf("%4d times others meddled with a PlacementDecision", meddled)
	for i, k := range all {
		t.Logf("instance %d was started %d times; requests: %v", i, k.starts, k.faults.Counts())
	}
	t.Logf("%d Placements on %d clusters, %d versions of PlacementDecisions, %d of them to confirm, settled %d times after at most %v", len(placements), clusters, o.events, o.confirmed, settles, longest.Round(time.Millisecond))
}

// whileChanging runs a fault. During the fault it changes Placements and clusters, and another writer changes
// PlacementDecisions. If the API server does not answer during the fault, the changes come after it. whileChanging returns the
// number of changes by the other writer.
func (h *hub) whileChanging(t *testing.T, random *rand.Rand, placements []*clusterv1beta1.Placement, clusters int, a action, run func() error) (meddled int) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var changing errgroup.Group
	meddles := rand.New(rand.NewPCG(random.Uint64(), 1))
	changing.Go(func() error { return h.keepChanging(ctx, random, placements, clusters) })
	changing.Go(func() (err error) {
		meddled, err = h.keepMeddling(ctx, meddles, placements)
		return err
	})
	end := func() {
		stop()
		require.NoError(t, changing.Wait())
	}
	sleep(t.Context(), time.Second)
	if a.apart {
		end()
	}
	require.NoError(t, run(), a.name)
	end()
	return meddled
}
